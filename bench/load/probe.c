/* Asks a broker, over and over, until it does what a client needs, and prints when that was.
 *
 *   probe ready    HOST PORT TOPIC PARTITIONS TIMEOUT_SECONDS
 *       Connects as soon as the port is open, has the topic created by its Metadata request if the broker does that,
 *       and sends a record to every partition until each has acknowledged one. Prints the CLOCK_MONOTONIC time of the
 *       last acknowledgement and the sum of the offsets the records got: how many records were there before.
 *   probe metadata HOST PORT TOPIC REQUESTS
 *       Asks for the topic's metadata one request after another; prints the median and 99th percentile.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/socket.h>
#include <unistd.h>

#include "histogram.h"
#include "wire.h"

enum { PAUSE_NS = 1000000, PAUSE_NS_PER_PARTITION = 5000, RECORD_BYTES = 100, PARTITION_LIMIT = 100000 };
enum { RESPONSE_TIMEOUT_SECONDS = 30 };

static char has_leader[PARTITION_LIMIT], acknowledged[PARTITION_LIMIT];
static int with_leader, acknowledgements;
static long long offset_sum;

static void see_leader(const partition_response *response, void *opaque) {
    (void)opaque;
    if (response->partition < 0 || response->partition >= PARTITION_LIMIT || response->leader < 0 || response->error != 0)
        return;
    with_leader += !has_leader[response->partition];
    has_leader[response->partition] = 1;
}

static void see_acknowledgement(const partition_response *response, void *opaque) {
    (void)opaque;
    if (response->partition < 0 || response->partition >= PARTITION_LIMIT || response->error != 0)
        return;
    acknowledgements += !acknowledged[response->partition];
    acknowledged[response->partition] = 1;
    offset_sum += response->base_offset;
}

static int exchange(int socket, const buffer *request, buffer *response) {
    return send_all(socket, request->bytes, request->size) == 0 && receive_frame(socket, response) == 0 ? 0 : -1;
}

/* One try at what is still missing. 0 once every partition has acknowledged, 1 if not yet, -1 if the connection broke. */
static int try_once(int socket, const char *topic, int partitions) {
    static buffer request, response;
    if (with_leader < partitions) {
        request.size = 0;
        append_metadata(&request, topic, 1);
        if (exchange(socket, &request, &response) != 0)
            return -1;
        if (read_metadata(response.bytes, response.size, see_leader, NULL) != 0)
            fail("a response that is not a Metadata response");
        if (with_leader < partitions)
            return 1;
    }
    static int32_t missing[PARTITION_LIMIT];
    int count = 0;
    for (int32_t partition = 0; partition < partitions; partition++)
        if (!acknowledged[partition])
            missing[count++] = partition;
    request.size = 0;
    append_produce(&request, topic, missing, count, RECORD_BYTES, 1);
    if (exchange(socket, &request, &response) != 0)
        return -1;
    if (read_produce(response.bytes, response.size, see_acknowledgement, NULL) != 0)
        fail("a response that is not a Produce response");
    return acknowledgements == partitions ? 0 : 1;
}

static void wait_ready(const char *host, int port, const char *topic, int partitions, double timeout_seconds) {
    int64_t until = now_ns() + (int64_t)(timeout_seconds * 1e9);
    int connected = -1;
    while (now_ns() < until) {
        if (connected == -1) {
            connected = connect_to(host, port);
            struct timeval timeout = {RESPONSE_TIMEOUT_SECONDS, 0};
            if (connected != -1)
                setsockopt(connected, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
        }
        int outcome = connected == -1 ? 1 : try_once(connected, topic, partitions);
        if (outcome == 0) {
            printf("{\"ready_at_ns\": %lld, \"offset_sum\": %lld}\n", (long long)now_ns(), offset_sum);
            return;
        }
        if (outcome == -1) {
            close(connected);
            connected = -1;
        }
        /* Asking about thousands of partitions is work for the broker: it needs time for what it is asked about, too. */
        sleep_ns(PAUSE_NS + (connected == -1 ? 0 : (int64_t)partitions * PAUSE_NS_PER_PARTITION));
    }
    fail("not ready within %.0f s: %d of %d partitions have a leader, %d acknowledged a record", timeout_seconds,
         with_leader, partitions, acknowledgements);
}

static void ask_metadata(const char *host, int port, const char *topic, int requests) {
    static histogram times;
    buffer request = {0}, response = {0};
    append_metadata(&request, topic, 0);
    int connected = connect_to(host, port);
    if (connected == -1)
        fail("cannot connect");
    for (int i = 0; i < requests; i++) {
        int64_t start = now_ns();
        if (exchange(connected, &request, &response) != 0)
            fail("the broker closed the connection");
        record_value(&times, now_ns() - start);
        if (read_metadata(response.bytes, response.size, see_leader, NULL) != 0)
            fail("a response that is not a Metadata response");
    }
    printf("{\"partitions\": %d, \"bytes\": %zu, \"p50_us\": %.1f, \"p99_us\": %.1f}\n", with_leader, response.size,
           (double)percentile(&times, 0.5) / 1e3, (double)percentile(&times, 0.99) / 1e3);
}

int main(int count, char **arguments) {
    signal(SIGPIPE, SIG_IGN);
    if (count == 7 && strcmp(arguments[1], "ready") == 0 && atoi(arguments[5]) <= PARTITION_LIMIT)
        wait_ready(arguments[2], atoi(arguments[3]), arguments[4], atoi(arguments[5]), atof(arguments[6]));
    else if (count == 6 && strcmp(arguments[1], "metadata") == 0)
        ask_metadata(arguments[2], atoi(arguments[3]), arguments[4], atoi(arguments[5]));
    else
        fail("usage: probe ready HOST PORT TOPIC PARTITIONS TIMEOUT_SECONDS | probe metadata HOST PORT TOPIC REQUESTS");
    return 0;
}
