#define _GNU_SOURCE
#include "coordination.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PRODUCE = 0,
    OFFSET_COMMIT = 8,
    FIND_COORDINATOR = 10,
    JOIN_GROUP = 11,
    HEARTBEAT = 12,
    LEAVE_GROUP = 13,
    SYNC_GROUP = 14,
    INIT_PRODUCER_ID = 22,
    END_TXN = 26
};
enum {
    PATIENCE_SECONDS = 60,
    PAUSE_NS = 20000000,
    SESSION_TIMEOUT_MS = 45000,
    REBALANCE_TIMEOUT_MS = 60000,
    TRANSACTION_TIMEOUT_MS = 60000,
    PRODUCE_TIMEOUT_MS = 30000
};

static void append_null(buffer *to) { append_int(to, 0, 1); }
static void append_no_tags(buffer *to) { append_int(to, 0, 1); }

static void append_compact_bytes(buffer *to, const buffer *bytes) {
    append_unsigned_varint(to, bytes->size + 1);
    append(to, bytes->bytes, bytes->size);
}

static void append_old_string(buffer *to, const char *text) {
    append_int(to, (int64_t)strlen(text), 2);
    append(to, text, strlen(text));
}

void read_string(reader *from, char *into, size_t capacity) {
    uint64_t size = read_compact_count(from);
    const uint8_t *at = from->at;
    skip(from, size);
    if (from->broken || size >= capacity)
        fail("a response with a text of %llu bytes", (unsigned long long)size);
    memcpy(into, at, size);
    into[size] = '\0';
}

int may_pass(int error) {
    return error == COORDINATOR_LOAD_IN_PROGRESS || error == COORDINATOR_NOT_AVAILABLE || error == NOT_COORDINATOR ||
           error == CONCURRENT_TRANSACTIONS || error == NOT_LEADER_OR_FOLLOWER;
}

static int coordinator_error(reader *response) {
    read_int(response, 4); /* throttle time */
    read_compact_count(response);
    skip_compact_string(response); /* key */
    read_int(response, 4);         /* node */
    skip_compact_string(response); /* host */
    read_int(response, 4);         /* port */
    return (int)read_int(response, 2);
}

static int leave_error(reader *response) {
    read_int(response, 4); /* throttle time */
    return (int)read_int(response, 2);
}

/* Sends the request again and again until its response has no error that may pass. */
static void insist(int connected, const buffer *request, int (*error_in)(reader *), const char *key) {
    int64_t until = now_ns() + (int64_t)PATIENCE_SECONDS * 1000000000;
    buffer response = {0};
    for (int error = COORDINATOR_NOT_AVAILABLE; may_pass(error);) {
        if (now_ns() > until)
            fail("no coordinator of '%s' within %d s: error %d", key, PATIENCE_SECONDS, error);
        if (send_all(connected, request->bytes, request->size) != 0 || receive_frame(connected, &response) != 0)
            fail("the broker closed the connection");
        reader from = open_response(response.bytes, response.size);
        error = error_in(&from);
        if (from.broken)
            fail("a response that cannot be read");
        if (may_pass(error))
            sleep_ns(PAUSE_NS);
    }
    free(response.bytes);
}

void find_coordinator(const char *host, int port, enum coordinator_kind kind, const char *key) {
    buffer request = {0};
    size_t start = begin_request(&request, FIND_COORDINATOR, 4);
    append_int(&request, kind, 1);
    append_unsigned_varint(&request, 2);
    append_compact_string(&request, key);
    append_no_tags(&request);
    end_request(&request, start);
    int connected = connect_to(host, port);
    if (connected == -1)
        fail("cannot connect: %s", strerror(errno));
    insist(connected, &request, coordinator_error, key);
    if (kind == GROUP_COORDINATOR) {
        /* No member leaves: while loading it says so (it accepts any heartbeat), when ready it knows no such member. */
        request.size = 0;
        append_leave_group(&request, key, "nobody");
        insist(connected, &request, leave_error, key);
    }
    close(connected);
    free(request.bytes);
}

/* ---- classic groups ---- */

void append_join_group(buffer *to, const char *group, const char *member_id, const char *topic) {
    buffer subscription = {0};
    append_int(&subscription, 0, 2); /* version */
    append_int(&subscription, 1, 4);
    append_old_string(&subscription, topic);
    append_int(&subscription, -1, 4); /* no user data */
    size_t start = begin_request(to, JOIN_GROUP, 9);
    append_compact_string(to, group);
    append_int(to, SESSION_TIMEOUT_MS, 4);
    append_int(to, REBALANCE_TIMEOUT_MS, 4);
    append_compact_string(to, member_id);
    append_null(to); /* instance id */
    append_compact_string(to, "consumer");
    append_unsigned_varint(to, 2);
    append_compact_string(to, "roundrobin");
    append_compact_bytes(to, &subscription);
    append_no_tags(to);
    append_null(to); /* reason */
    append_no_tags(to);
    end_request(to, start);
    free(subscription.bytes);
}

void append_assignments(buffer *to, const char *topic, int partitions, char (*members)[ID_BYTES], int member_count) {
    append_unsigned_varint(to, (uint64_t)member_count + 1);
    buffer assignment = {0};
    for (int member = 0; member < member_count; member++) {
        int own = partitions / member_count + (member < partitions % member_count);
        assignment.size = 0;
        append_int(&assignment, 0, 2); /* version */
        append_int(&assignment, 1, 4);
        append_old_string(&assignment, topic);
        append_int(&assignment, own, 4);
        for (int i = 0; i < own; i++)
            append_int(&assignment, member + i * member_count, 4);
        append_int(&assignment, -1, 4); /* no user data */
        append_compact_string(to, members[member]);
        append_compact_bytes(to, &assignment);
        append_no_tags(to);
    }
    free(assignment.bytes);
}

void append_sync_group(buffer *to, const char *group, int generation, const char *member_id, const buffer *assignments) {
    size_t start = begin_request(to, SYNC_GROUP, 5);
    append_compact_string(to, group);
    append_int(to, generation, 4);
    append_compact_string(to, member_id);
    append_null(to); /* instance id */
    append_compact_string(to, "consumer");
    append_compact_string(to, "roundrobin");
    if (assignments != NULL)
        append(to, assignments->bytes, assignments->size);
    else
        append_unsigned_varint(to, 1);
    append_no_tags(to);
    end_request(to, start);
}

void append_heartbeat(buffer *to, const char *group, int generation, const char *member_id) {
    size_t start = begin_request(to, HEARTBEAT, 4);
    append_compact_string(to, group);
    append_int(to, generation, 4);
    append_compact_string(to, member_id);
    append_null(to); /* instance id */
    append_no_tags(to);
    end_request(to, start);
}

void append_leave_group(buffer *to, const char *group, const char *member_id) {
    size_t start = begin_request(to, LEAVE_GROUP, 5);
    append_compact_string(to, group);
    append_unsigned_varint(to, 2);
    append_compact_string(to, member_id);
    append_null(to); /* instance id */
    append_null(to); /* reason */
    append_no_tags(to);
    append_no_tags(to);
    end_request(to, start);
}

/* ---- offsets ---- */

void append_offset_commit(buffer *to, const char *group, const char *topic, int partition, int64_t offset) {
    size_t start = begin_request(to, OFFSET_COMMIT, 9);
    append_compact_string(to, group);
    append_int(to, -1, 4); /* no generation: a group without members */
    append_compact_string(to, "");
    append_null(to); /* instance id */
    append_unsigned_varint(to, 2);
    append_compact_string(to, topic);
    append_unsigned_varint(to, 2);
    append_int(to, partition, 4);
    append_int(to, offset, 8);
    append_int(to, -1, 4); /* leader epoch */
    append_compact_string(to, "");
    append_no_tags(to);
    append_no_tags(to);
    append_no_tags(to);
    end_request(to, start);
}

int read_offset_commit(reader *from) {
    read_int(from, 4); /* throttle time */
    if (read_compact_count(from) != 1)
        fail("a response that is not about one topic");
    skip_compact_string(from);
    if (read_compact_count(from) != 1)
        fail("a response that is not about one partition");
    read_int(from, 4);
    int error = (int)read_int(from, 2);
    if (from->broken)
        fail("a response that is not an OffsetCommit response");
    return error;
}

/* ---- transactions ---- */

void append_init_producer_id(buffer *to, const char *transactional_id) {
    size_t start = begin_request(to, INIT_PRODUCER_ID, 5);
    append_compact_string(to, transactional_id);
    append_int(to, TRANSACTION_TIMEOUT_MS, 4);
    append_int(to, -1, 8);
    append_int(to, -1, 2);
    append_no_tags(to);
    end_request(to, start);
}

void append_transactional_produce(buffer *to, const char *transactional_id, const char *topic, int partition, int records,
                                  size_t record_bytes, const producer *by) {
    static buffer batch;
    batch.size = 0;
    append_batch(&batch, records, record_bytes, by);
    size_t start = begin_request(to, PRODUCE, 12);
    append_compact_string(to, transactional_id);
    append_int(to, -1, 2);
    append_int(to, PRODUCE_TIMEOUT_MS, 4);
    append_unsigned_varint(to, 2);
    append_compact_string(to, topic);
    append_unsigned_varint(to, 2);
    append_int(to, partition, 4);
    append_compact_bytes(to, &batch);
    append_no_tags(to);
    append_no_tags(to);
    append_no_tags(to);
    end_request(to, start);
}

void append_end_transaction(buffer *to, const char *transactional_id, const producer *by) {
    size_t start = begin_request(to, END_TXN, 5);
    append_compact_string(to, transactional_id);
    append_int(to, by->id, 8);
    append_int(to, by->epoch, 2);
    append_int(to, 1, 1); /* commit */
    append_no_tags(to);
    end_request(to, start);
}
