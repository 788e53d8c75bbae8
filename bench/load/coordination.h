/* Requests to coordinators and the responses to them, at the versions that Kafka 4.3's own clients use, or the last ones
 * that say topics by name. Requests are appended whole. */
#ifndef KASPAR_BENCH_COORDINATION_H
#define KASPAR_BENCH_COORDINATION_H

#include "wire.h"

enum {
    NO_ERROR = 0,
    NOT_LEADER_OR_FOLLOWER = 6,
    COORDINATOR_LOAD_IN_PROGRESS = 14,
    COORDINATOR_NOT_AVAILABLE = 15,
    NOT_COORDINATOR = 16,
    ILLEGAL_GENERATION = 22,
    REBALANCE_IN_PROGRESS = 27,
    CONCURRENT_TRANSACTIONS = 51,
    MEMBER_ID_REQUIRED = 79
};
enum coordinator_kind { GROUP_COORDINATOR = 0, TRANSACTION_COORDINATOR = 1 };
enum { ID_BYTES = 128 };

/* Asks for the coordinator until there is one, and a group's until it takes requests: at first use the broker has to make
 * an internal topic, and to load it. Blocks. */
void find_coordinator(const char *host, int port, enum coordinator_kind kind, const char *key);

/* Whether an error may pass by itself. */
int may_pass(int error);

void read_string(reader *from, char *into, size_t capacity); /* compact; null is read as "" */

void append_join_group(buffer *to, const char *group, const char *member_id, const char *topic);
void append_sync_group(buffer *to, const char *group, int generation, const char *member_id, const buffer *assignments);
void append_heartbeat(buffer *to, const char *group, int generation, const char *member_id);
void append_leave_group(buffer *to, const char *group, const char *member_id);
/* The assignments of a leader: each partition to the members in turn, in the form that SyncGroup wants. */
void append_assignments(buffer *to, const char *topic, int partitions, char (*members)[ID_BYTES], int member_count);

void append_offset_commit(buffer *to, const char *group, const char *topic, int partition, int64_t offset);
int read_offset_commit(reader *from); /* the error code of the one partition */

void append_init_producer_id(buffer *to, const char *transactional_id);
void append_transactional_produce(buffer *to, const char *transactional_id, const char *topic, int partition, int records,
                                  size_t record_bytes, const producer *by);
void append_end_transaction(buffer *to, const char *transactional_id, const producer *by);

#endif
