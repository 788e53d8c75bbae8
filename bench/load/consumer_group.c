/* Rebalances of a group on the consumer protocol (KIP-848), by members that speak ConsumerGroupHeartbeat 1.
 *
 *   consumer_group waiting HOST PORT GROUP TOPIC PARTITIONS MEMBERS REBALANCES HEARTBEAT_MS
 *       One member joins the others, and leaves again, and so on. Members send a heartbeat every HEARTBEAT_MS, and as
 *       clients do, one more as soon as they have taken over a new assignment. The clock runs from the first heartbeat of
 *       the one that joins until all members are in one epoch and each partition is held by one of them. When it joins, the
 *       next heartbeats of the others are spread evenly over one interval, so that chance has no part in it.
 *   consumer_group at-once HOST PORT GROUP TOPIC PARTITIONS MEMBERS REBALANCES
 *       The same by members that wait for nothing: their heartbeats come at once, and again a little later as long as they
 *       are behind.
 *
 * Prints one JSON object: the median over the joins, and the number of rebalances. An error is a failure.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordination.h"
#include "histogram.h"
#include "loop.h"

enum { MEMBER_LIMIT = 1000, PARTITION_LIMIT = 10000, PATIENCE_SECONDS = 120, HEARTBEAT_KEY = 68, TOPIC_ID_BYTES = 16 };
enum { REBALANCE_TIMEOUT_MS = 60000, LEAVE_EPOCH = -1, BEHIND_NS = 5000000, AHEAD_NS = 100000000 };
enum question { HEARTBEAT, LEAVE };

typedef struct {
    char id[ID_BYTES];
    int epoch, inside, changed, owned_count;
    uint8_t topic_id[TOPIC_ID_BYTES];
    int32_t *owned;
    int64_t heartbeat_at; /* the last one, or one interval before the first that is due */
} member;

static member members[MEMBER_LIMIT];
static const char *group, *topic;
static int member_count, partition_count, newest_epoch;
static int64_t heartbeat_ns; /* 0: nobody waits */
static histogram times;

/* A heartbeat says everything at the first time, and later only what has changed. */
static void heartbeat(int number, int what) {
    member *me = &members[number];
    buffer *to = requests_of(number);
    int first = me->epoch == 0;
    size_t start = begin_request(to, HEARTBEAT_KEY, 1);
    append_compact_string(to, group);
    append_compact_string(to, me->id);
    append_int(to, me->epoch, 4);
    append_int(to, 0, 1);                                 /* instance id */
    append_int(to, 0, 1);                                 /* rack */
    append_int(to, first ? REBALANCE_TIMEOUT_MS : -1, 4); /* rebalance timeout */
    append_unsigned_varint(to, first ? 2 : 0);            /* subscribed topics */
    if (first)
        append_compact_string(to, topic);
    append_int(to, 0, 1); /* regular expression */
    append_int(to, 0, 1); /* assignor */
    if (first)
        append_unsigned_varint(to, 1);
    else if (me->changed) {
        append_unsigned_varint(to, me->owned_count > 0 ? 2 : 1);
        if (me->owned_count > 0) {
            append(to, me->topic_id, TOPIC_ID_BYTES);
            append_unsigned_varint(to, (uint64_t)me->owned_count + 1);
            for (int i = 0; i < me->owned_count; i++)
                append_int(to, me->owned[i], 4);
            append_int(to, 0, 1);
        }
    } else
        append_unsigned_varint(to, 0);
    append_int(to, 0, 1);
    end_request(to, start);
    me->changed = 0;
    ask(number, what);
}

static void read_assignment(member *me, reader *response) {
    if (read_int(response, 1) < 0)
        return;
    me->owned_count = 0;
    for (uint64_t topics = read_compact_count(response); topics > 0 && !response->broken; topics--) {
        if (response->end - response->at < TOPIC_ID_BYTES)
            fail("an assignment that is cut off");
        memcpy(me->topic_id, response->at, TOPIC_ID_BYTES);
        skip(response, TOPIC_ID_BYTES);
        for (uint64_t count = read_compact_count(response); count > 0 && me->owned_count < partition_count; count--)
            me->owned[me->owned_count++] = (int32_t)read_int(response, 4);
        skip_tagged_fields(response);
    }
    me->changed = 1;
}

static void handle_response(int number, int what, reader *response) {
    member *me = &members[number];
    read_int(response, 4); /* throttle time */
    int error = (int)read_int(response, 2);
    skip_compact_string(response); /* error message */
    if (error != NO_ERROR)
        fail("ConsumerGroupHeartbeat of member %d in epoch %d: error %d", number, me->epoch, error);
    skip_compact_string(response); /* member id */
    int epoch = (int)read_int(response, 4);
    read_int(response, 4); /* heartbeat interval: ours is given */
    if (what == LEAVE || !me->inside)
        return;
    me->epoch = epoch;
    if (epoch > newest_epoch)
        newest_epoch = epoch;
    read_assignment(me, response);
    if (response->broken)
        fail("a response that cannot be read");
    if (me->changed)
        heartbeat(number, HEARTBEAT);
}

/* Whether the first `count` members are in one epoch, later than `after`, and each partition has one owner. */
static int settled(int count, int after) {
    static char has_owner[PARTITION_LIMIT];
    int owned = 0;
    memset(has_owner, 0, (size_t)partition_count);
    for (int i = 0; i < count; i++) {
        if (members[i].epoch != members[0].epoch || members[i].epoch <= after)
            return 0;
        for (int k = 0; k < members[i].owned_count; k++) {
            int32_t partition = members[i].owned[k];
            if (partition < 0 || partition >= partition_count || has_owner[partition]++)
                return 0;
            owned++;
        }
    }
    return owned == partition_count;
}

/* How long a member waits until its next heartbeat, in a group of `count`. */
static int64_t interval_of(const member *of, int count) {
    if (heartbeat_ns > 0)
        return heartbeat_ns;
    return of->epoch < newest_epoch || of->owned_count < partition_count / count ? BEHIND_NS : AHEAD_NS;
}

static void wait_until_settled(int count, int after) {
    int64_t give_up_at = now_ns() + (int64_t)PATIENCE_SECONDS * 1000000000;
    while (!settled(count, after)) {
        int64_t now = now_ns(), next = give_up_at;
        if (now > give_up_at)
            fail("no assignment for all %d members within %d s", count, PATIENCE_SECONDS);
        for (int i = 0; i < count; i++) {
            member *me = &members[i];
            int64_t due = me->heartbeat_at + interval_of(me, count);
            if (due <= now) {
                me->heartbeat_at = now;
                if (on_their_way(i) == 0)
                    heartbeat(i, HEARTBEAT);
            } else if (due < next)
                next = due;
        }
        serve_once(next);
    }
}

static void drain(void) {
    int64_t until = now_ns() + (int64_t)PATIENCE_SECONDS * 1000000000;
    for (int i = 0; i < member_count; i++)
        while (on_their_way(i) > 0 && now_ns() < until)
            serve_once(until);
}

static void enter(int number) {
    static int lives;
    member *me = &members[number];
    snprintf(me->id, sizeof me->id, "%s-member-%d-%d", group, number, lives++);
    me->epoch = me->changed = me->owned_count = 0;
    me->inside = 1;
    me->heartbeat_at = now_ns();
    heartbeat(number, HEARTBEAT);
}

static void leave(int number) {
    members[number].epoch = LEAVE_EPOCH;
    members[number].inside = members[number].owned_count = 0;
    heartbeat(number, LEAVE);
}

/* Evenly over one interval; at once if nobody waits. */
static void spread_heartbeats(int count) {
    int64_t now = now_ns();
    for (int i = 0; i < count; i++)
        members[i].heartbeat_at = heartbeat_ns > 0 ? now - heartbeat_ns * (count - 1 - i) / count : now - AHEAD_NS;
}

int main(int count, char **arguments) {
    int waits = count == 10 && strcmp(arguments[1], "waiting") == 0;
    if (!waits && !(count == 9 && strcmp(arguments[1], "at-once") == 0))
        fail("usage: consumer_group waiting|at-once HOST PORT GROUP TOPIC PARTITIONS MEMBERS REBALANCES [HEARTBEAT_MS]");
    group = arguments[4];
    topic = arguments[5];
    partition_count = atoi(arguments[6]);
    member_count = atoi(arguments[7]);
    long wanted = atol(arguments[8]);
    heartbeat_ns = waits ? (int64_t)atoi(arguments[9]) * 1000000 : 0;
    if (member_count < 2 || member_count > MEMBER_LIMIT || partition_count > PARTITION_LIMIT)
        fail("2 to %d members, at most %d partitions", MEMBER_LIMIT, PARTITION_LIMIT);
    find_coordinator(arguments[2], atoi(arguments[3]), GROUP_COORDINATOR, group);
    open_connections(arguments[2], atoi(arguments[3]), member_count, handle_response);
    for (int i = 0; i < member_count; i++)
        members[i].owned = calloc((size_t)partition_count, sizeof(int32_t));

    int last = member_count - 1;
    for (int i = 0; i < last; i++)
        enter(i);
    wait_until_settled(last, 0);
    for (long i = 0; i < wanted; i++) {
        drain();
        int before = members[0].epoch;
        int64_t start = now_ns();
        enter(last);
        spread_heartbeats(last);
        wait_until_settled(member_count, before);
        record_value(&times, now_ns() - start);
        drain();
        before = members[0].epoch;
        leave(last);
        spread_heartbeats(last);
        wait_until_settled(last, before);
    }
    printf("{\"rebalances\": %ld, \"p50_us\": %.1f, \"max_us\": %.1f}\n", 2 * wanted,
           (double)percentile(&times, 0.5) / 1e3, (double)times.largest / 1e3);
    drain();
    for (int i = 0; i < last; i++)
        leave(i);
    drain();
    return 0;
}
