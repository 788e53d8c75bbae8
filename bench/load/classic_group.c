/* Rebalances of a classic group, by members that speak the raw protocol: JoinGroup 9, SyncGroup 5, Heartbeat 4.
 *
 *   classic_group waiting HOST PORT GROUP TOPIC PARTITIONS MEMBERS REBALANCES HEARTBEAT_MS
 *       One member joins the others, who learn of it by their heartbeats, as clients do. The clock runs from its first
 *       JoinGroup until all have their assignment. Then it leaves, and so on. When it joins, the next heartbeats of the
 *       others are spread evenly over one interval, so that chance has no part in it.
 *   classic_group at-once HOST PORT GROUP TOPIC PARTITIONS MEMBERS REBALANCES
 *       The leader joins again; when the broker says that a rebalance is on, all others but one do so at once. When the
 *       broker has had time to add them, the last one joins, too: the clock runs from its JoinGroup to the last SyncGroup
 *       response.
 *
 * Prints one JSON object: the median, and the number of rebalances. A response with an error
 * that a client would not simply go on from is a failure.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordination.h"
#include "histogram.h"
#include "loop.h"

enum { MEMBER_LIMIT = 1000, QUICK_HEARTBEAT_NS = 10000000, TAKE_IN_NS = 20000000, PATIENCE_SECONDS = 120 };
enum state { OUTSIDE, JOINING, SYNCING, STABLE };
enum question { JOIN, SYNC, HEARTBEAT, LEAVE };

typedef struct {
    enum state state;
    char id[ID_BYTES];
    int generation;
    int64_t heartbeat_at;
    int heartbeats_under_way;
} member;

static member members[MEMBER_LIMIT];
static char others[MEMBER_LIMIT][ID_BYTES]; /* as the leader's response lists them */
static const char *group, *topic;
static int member_count, partition_count, leader = -1;
static int64_t last_join_at, last_sync_at, heartbeat_ns;
static long rebalances;
static histogram times;

static void join(int number) {
    members[number].state = JOINING;
    append_join_group(requests_of(number), group, members[number].id, topic);
    last_join_at = now_ns();
    ask(number, JOIN);
}

static void heartbeat(int number) {
    members[number].heartbeats_under_way++;
    append_heartbeat(requests_of(number), group, members[number].generation, members[number].id);
    ask(number, HEARTBEAT);
}

static void leave(int number) {
    members[number].state = OUTSIDE;
    append_leave_group(requests_of(number), group, members[number].id);
    members[number].id[0] = '\0';
    ask(number, LEAVE);
}

static void joined(int number, int error, reader *response) {
    member *me = &members[number];
    int generation = (int)read_int(response, 4);
    char leader_id[ID_BYTES];
    skip_compact_string(response); /* protocol type */
    skip_compact_string(response); /* protocol */
    read_string(response, leader_id, sizeof leader_id);
    read_int(response, 1); /* whether to skip the assignment */
    if (error != NO_ERROR && error != MEMBER_ID_REQUIRED)
        fail("JoinGroup of member %d: error %d", number, error);
    read_string(response, me->id, sizeof me->id);
    if (error == MEMBER_ID_REQUIRED) {
        join(number);
        return;
    }
    me->generation = generation;
    me->state = SYNCING;
    buffer assignments = {0};
    int leads = strcmp(leader_id, me->id) == 0;
    if (leads) {
        leader = number;
        rebalances++;
        int count = (int)read_compact_count(response);
        if (count > MEMBER_LIMIT)
            fail("a group of %d members", count);
        for (int i = 0; i < count; i++) {
            read_string(response, others[i], ID_BYTES);
            skip_compact_string(response); /* instance id */
            skip_compact_string(response); /* metadata, as compact bytes */
            skip_tagged_fields(response);
        }
        append_assignments(&assignments, topic, partition_count, others, count);
    }
    append_sync_group(requests_of(number), group, generation, me->id, leads ? &assignments : NULL);
    ask(number, SYNC);
    free(assignments.bytes);
}

static void handle_response(int number, int what, reader *response) {
    member *me = &members[number];
    read_int(response, 4); /* throttle time */
    int error = (int)read_int(response, 2);
    switch (what) {
    case JOIN:
        joined(number, error, response);
        break;
    case SYNC:
        if (error == REBALANCE_IN_PROGRESS || error == ILLEGAL_GENERATION)
            join(number);
        else if (error != NO_ERROR)
            fail("SyncGroup of member %d: error %d", number, error);
        else {
            me->state = STABLE;
            last_sync_at = now_ns();
        }
        break;
    case HEARTBEAT:
        me->heartbeats_under_way--;
        if (me->state != STABLE)
            break;
        if (error == REBALANCE_IN_PROGRESS || error == ILLEGAL_GENERATION)
            join(number);
        else if (error != NO_ERROR)
            fail("Heartbeat of member %d: error %d", number, error);
        break;
    case LEAVE:
        if (error != NO_ERROR)
            fail("LeaveGroup of member %d: error %d", number, error);
        break;
    }
    if (response->broken)
        fail("a response that cannot be read");
}

/* Whether the first `count` members are all in one generation, later than `after`. */
static int settled(int count, int after) {
    for (int i = 0; i < count; i++)
        if (members[i].state != STABLE || members[i].generation != members[0].generation)
            return 0;
    return members[0].generation > after;
}

static void wait_until_settled(int count, int after, int64_t interval_ns) {
    int64_t give_up_at = now_ns() + (int64_t)PATIENCE_SECONDS * 1000000000;
    while (!settled(count, after)) {
        int64_t now = now_ns(), next = now + interval_ns;
        if (now > give_up_at)
            fail("no assignment for all %d members within %d s", count, PATIENCE_SECONDS);
        for (int i = 0; i < count; i++) {
            member *me = &members[i];
            if (me->state != STABLE)
                continue;
            if (me->heartbeat_at <= now && me->heartbeats_under_way == 0) {
                me->heartbeat_at = now + interval_ns;
                heartbeat(i);
            }
            if (me->heartbeat_at > now && me->heartbeat_at < next)
                next = me->heartbeat_at;
        }
        serve_once(next);
    }
}

static void spread_heartbeats(int count, int64_t interval_ns) {
    int64_t now = now_ns();
    for (int i = 0; i < count; i++)
        members[i].heartbeat_at = now + interval_ns * (i + 1) / count;
}

/* The first `count` members form the group. */
static void form(int count) {
    for (int i = 0; i < count; i++)
        join(i);
    wait_until_settled(count, 0, QUICK_HEARTBEAT_NS);
}

static void rebalance_by_heartbeats(long wanted) {
    int last = member_count - 1;
    form(last);
    for (long i = 0; i < wanted; i++) {
        int64_t start = now_ns();
        spread_heartbeats(last, heartbeat_ns);
        int before = members[0].generation;
        join(last);
        wait_until_settled(member_count, before, heartbeat_ns);
        record_value(&times, now_ns() - start);
        before = members[0].generation;
        leave(last);
        spread_heartbeats(last, QUICK_HEARTBEAT_NS);
        wait_until_settled(last, before, QUICK_HEARTBEAT_NS);
    }
}

static void rebalance_at_once(long wanted) {
    form(member_count);
    for (long i = 0; i < wanted; i++) {
        int before = members[0].generation, herald = leader == 0 ? 1 : 0;
        join(leader);
        while (members[herald].state == STABLE && members[herald].generation == before) {
            if (members[herald].heartbeats_under_way == 0)
                heartbeat(herald);
            serve_once(now_ns() + QUICK_HEARTBEAT_NS);
        }
        int last = -1;
        for (int number = 0; number < member_count; number++) {
            if (members[number].state != STABLE || members[number].generation != before)
                continue; /* a late response to a heartbeat has made it join */
            if (last >= 0)
                join(last);
            last = number;
        }
        serve_until(now_ns() + TAKE_IN_NS);
        if (last >= 0)
            join(last);
        wait_until_settled(member_count, before, (int64_t)PATIENCE_SECONDS * 1000000000);
        record_value(&times, last_sync_at - last_join_at);
    }
}

int main(int count, char **arguments) {
    int waits = count == 10 && strcmp(arguments[1], "waiting") == 0;
    if (!waits && !(count == 9 && strcmp(arguments[1], "at-once") == 0))
        fail("usage: classic_group waiting|at-once HOST PORT GROUP TOPIC PARTITIONS MEMBERS REBALANCES [HEARTBEAT_MS]");
    group = arguments[4];
    topic = arguments[5];
    partition_count = atoi(arguments[6]);
    member_count = atoi(arguments[7]);
    if (member_count < 3 || member_count > MEMBER_LIMIT)
        fail("3 to %d members", MEMBER_LIMIT);
    find_coordinator(arguments[2], atoi(arguments[3]), GROUP_COORDINATOR, group);
    open_connections(arguments[2], atoi(arguments[3]), member_count, handle_response);
    if (waits) {
        heartbeat_ns = (int64_t)atoi(arguments[9]) * 1000000;
        rebalance_by_heartbeats(atol(arguments[8]));
    } else
        rebalance_at_once(atol(arguments[8]));
    printf("{\"rebalances\": %ld, \"p50_us\": %.1f, \"max_us\": %.1f}\n", rebalances,
           (double)percentile(&times, 0.5) / 1e3, (double)times.largest / 1e3);
    for (int i = 0; i < member_count; i++)
        if (members[i].state != OUTSIDE)
            leave(i);
    int64_t until = now_ns() + (int64_t)PATIENCE_SECONDS * 1000000000;
    for (int i = 0; i < member_count; i++)
        while (on_their_way(i) > 0 && now_ns() < until)
            serve_once(until);
    return 0;
}
