/* Commits of one offset each, OffsetCommit 9: every connection is a group of its own, without members.
 *
 *   commits HOST PORT TOPIC CONNECTIONS DEPTH SECONDS
 *
 * Every connection keeps DEPTH commits on their way. The first fifth of the time is sent but not counted. Prints one JSON
 * object; a commit that is refused is a failure.
 */
#include <stdio.h>
#include <stdlib.h>

#include "coordination.h"
#include "histogram.h"
#include "loop.h"

enum { GROUP_BYTES = 64 };

static char groups[CONNECTION_LIMIT][GROUP_BYTES];
static int64_t asked_at[CONNECTION_LIMIT][FLIGHT_LIMIT];
static const char *topic;
static int64_t offset, counted_from, counted_until, commits, counted;
static histogram latency;

static void commit(int connection, int slot) {
    append_offset_commit(requests_of(connection), groups[connection], topic, 0, ++offset);
    asked_at[connection][slot] = now_ns();
    ask(connection, slot);
}

static void handle_response(int connection, int slot, reader *response) {
    int error = read_offset_commit(response);
    if (error != NO_ERROR)
        fail("a commit was refused with error %d", error);
    int64_t now = now_ns();
    commits++;
    if (now >= counted_from && now < counted_until) {
        counted++;
        record_value(&latency, now - asked_at[connection][slot]);
    }
    if (now < counted_until)
        commit(connection, slot);
}

int main(int count, char **arguments) {
    if (count != 7)
        fail("usage: commits HOST PORT TOPIC CONNECTIONS DEPTH SECONDS");
    topic = arguments[3];
    int connections = atoi(arguments[4]), depth = atoi(arguments[5]);
    double seconds = atof(arguments[6]);
    if (depth < 1 || depth > FLIGHT_LIMIT)
        fail("1 to %d commits on their way", FLIGHT_LIMIT);
    for (int i = 0; i < connections && i < CONNECTION_LIMIT; i++) {
        snprintf(groups[i], GROUP_BYTES, "bench-commits-%d", i);
        find_coordinator(arguments[1], atoi(arguments[2]), GROUP_COORDINATOR, groups[i]);
    }
    open_connections(arguments[1], atoi(arguments[2]), connections, handle_response);
    int64_t start = now_ns();
    counted_from = start + (int64_t)(seconds * 0.2e9);
    counted_until = start + (int64_t)(seconds * 1e9);
    for (int i = 0; i < connections; i++)
        for (int slot = 0; slot < depth; slot++)
            commit(i, slot);
    serve_until(counted_until);
    for (int i = 0; i < connections; i++)
        while (on_their_way(i) > 0)
            serve_once(now_ns() + 1000000000);
    printf("{\"commits\": %lld, \"rate\": %.1f, \"p50_us\": %.1f, \"p99_us\": %.1f}\n", (long long)commits,
           (double)counted / ((double)(counted_until - counted_from) / 1e9), (double)percentile(&latency, 0.5) / 1e3,
           (double)percentile(&latency, 0.99) / 1e3);
    return 0;
}
