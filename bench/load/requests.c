/* One-record Produce requests over raw sockets.
 *
 *   requests open   HOST PORT TOPIC PARTITIONS CONNECTIONS RECORD_BYTES ACKS SECONDS RATE
 *   requests closed HOST PORT TOPIC PARTITIONS CONNECTIONS RECORD_BYTES ACKS SECONDS DEPTH
 *
 * open:   request k is due at start + k / RATE, whatever became of those before it; its latency counts from the moment
 *         it was due. So a broker that stalls pays for every request that had to wait (no coordinated omission), and a
 *         generator that is late makes the broker look worse, never better.
 * closed: every connection keeps DEPTH requests on their way: the highest rate this load reaches.
 *
 * The first fifth of the time is sent but not counted. It prints one JSON object; a response with an error code, a
 * closed connection or an unreadable response is a failure.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#include "histogram.h"
#include "wire.h"

enum { CONNECTION_LIMIT = 256, RECEIVE_BYTES = 1 << 16, FLIGHT_LIMIT = 1 << 20, DRAIN_SECONDS = 20 };

typedef struct {
    int socket;
    buffer out;
    size_t sent; /* bytes of `out` that the socket took */
    uint8_t in[RECEIVE_BYTES];
    size_t in_size;
    int64_t *due; /* of the requests on their way, oldest first: a ring, for responses come in the order of requests */
    uint32_t first, flying;
    int32_t next_correlation, next_response;
} connection;

static connection connections[CONNECTION_LIMIT];
static struct pollfd polled[CONNECTION_LIMIT];
static int connection_count, partition_count;
static buffer *templates; /* one whole request for each partition */
static histogram latency, lateness;
static int64_t counted_from;
static uint64_t requests_sent, responses, counted_responses;
static int64_t last_response_at;

static void check_partition(const partition_response *response, void *opaque) {
    (void)opaque;
    if (response->error != 0)
        fail("partition %d was refused with error code %d", response->partition, response->error);
    responses++;
}

static void queue_request(connection *on, int64_t due) {
    if (on->flying == FLIGHT_LIMIT)
        fail("a million requests wait for a response on one connection");
    const buffer *request = &templates[requests_sent % (uint64_t)partition_count];
    size_t start = on->out.size;
    append(&on->out, request->bytes, request->size);
    put_int32(on->out.bytes + start + CORRELATION_AT, on->next_correlation++);
    on->due[(on->first + on->flying++) % FLIGHT_LIMIT] = due;
    requests_sent++;
}

static void flush_out(connection *on) {
    while (on->sent < on->out.size) {
        ssize_t sent = send(on->socket, on->out.bytes + on->sent, on->out.size - on->sent, MSG_NOSIGNAL);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (sent < 0)
            fail("the broker closed a connection: %s", strerror(errno));
        on->sent += (size_t)sent;
    }
    on->out.size = on->sent = 0;
}

/* Takes in what the socket has. Returns how many responses came. */
static int take_responses(connection *on) {
    ssize_t received = recv(on->socket, on->in + on->in_size, RECEIVE_BYTES - on->in_size, 0);
    if (received == 0)
        fail("the broker closed a connection");
    if (received < 0) {
        if (errno == EAGAIN || errno == EINTR)
            return 0;
        fail("recv: %s", strerror(errno));
    }
    on->in_size += (size_t)received;
    int64_t now = now_ns();
    size_t at = 0;
    int came = 0;
    while (on->in_size - at >= 8) {
        size_t size = (size_t)get_int32(on->in + at);
        if (size > RECEIVE_BYTES - 4)
            fail("a response of %zu bytes to a one-record request", size);
        if (on->in_size - at - 4 < size)
            break;
        const uint8_t *response = on->in + at + 4;
        if (get_int32(response) != on->next_response++)
            fail("a response with another request's correlation id");
        if (read_produce(response, size, check_partition, NULL) != 0)
            fail("a response that is not a Produce response");
        int64_t due = on->due[on->first];
        on->first = (on->first + 1) % FLIGHT_LIMIT;
        on->flying--;
        came++;
        if (due >= counted_from) {
            record_value(&latency, now - due);
            counted_responses++;
        }
        last_response_at = now;
        at += 4 + size;
    }
    memmove(on->in, on->in + at, on->in_size - at);
    on->in_size -= at;
    return came;
}

/* Waits for sockets, at most until `until`. */
static void wait_until(int64_t until) {
    for (int i = 0; i < connection_count; i++)
        polled[i].events = POLLIN | (connections[i].out.size > 0 ? POLLOUT : 0);
    int64_t left = until - now_ns();
    struct timespec timeout = {left > 0 ? left / 1000000000 : 0, left > 0 ? left % 1000000000 : 0};
    if (ppoll(polled, (nfds_t)connection_count, &timeout, NULL) < 0 && errno != EINTR)
        fail("ppoll: %s", strerror(errno));
}

static int waiting(void) {
    int sum = 0;
    for (int i = 0; i < connection_count; i++)
        sum += (int)connections[i].flying;
    return sum;
}

static void serve_sockets(void) {
    for (int i = 0; i < connection_count; i++) {
        if (polled[i].revents & (POLLIN | POLLHUP | POLLERR))
            take_responses(&connections[i]);
        if (polled[i].revents & POLLOUT)
            flush_out(&connections[i]);
    }
}

static void drain(void) {
    int64_t until = now_ns() + (int64_t)DRAIN_SECONDS * 1000000000;
    while (waiting() > 0 && now_ns() < until) {
        wait_until(until);
        serve_sockets();
    }
    /* What never came back waited at least until now. */
    for (int i = 0; i < connection_count; i++)
        for (connection *on = &connections[i]; on->flying > 0; on->flying--) {
            record_value(&latency, now_ns() - on->due[on->first]);
            on->first = (on->first + 1) % FLIGHT_LIMIT;
        }
}

static void run_open(int64_t start, int64_t end, double rate) {
    uint64_t due_count = (uint64_t)((double)(end - start) / 1e9 * rate);
    while (requests_sent < due_count) {
        int64_t now = now_ns();
        uint64_t due_until_now = (uint64_t)((double)(now - start) / 1e9 * rate) + 1;
        uint64_t first = requests_sent;
        while (requests_sent < due_until_now && requests_sent < due_count) {
            int64_t due = start + (int64_t)((double)requests_sent / rate * 1e9);
            if (due >= counted_from)
                record_value(&lateness, now - due);
            queue_request(&connections[requests_sent % (uint64_t)connection_count], due);
        }
        uint64_t fresh = requests_sent - first;
        for (uint64_t i = 0; i < fresh && i < (uint64_t)connection_count; i++)
            flush_out(&connections[(first + i) % (uint64_t)connection_count]);
        wait_until(start + (int64_t)((double)requests_sent / rate * 1e9));
        serve_sockets();
    }
}

static void run_closed(int64_t end, int depth) {
    for (int i = 0; i < connection_count; i++) {
        for (int request = 0; request < depth; request++)
            queue_request(&connections[i], now_ns());
        flush_out(&connections[i]);
    }
    while (now_ns() < end) {
        wait_until(end);
        for (int i = 0; i < connection_count; i++) {
            connection *on = &connections[i];
            if (polled[i].revents & (POLLIN | POLLHUP | POLLERR))
                for (int came = take_responses(on); came > 0; came--)
                    queue_request(on, now_ns());
            flush_out(on);
        }
    }
}

int main(int count, char **arguments) {
    if (count != 11)
        fail("usage: requests open|closed HOST PORT TOPIC PARTITIONS CONNECTIONS RECORD_BYTES ACKS SECONDS RATE|DEPTH");
    int open_loop = strcmp(arguments[1], "open") == 0;
    partition_count = atoi(arguments[5]);
    connection_count = atoi(arguments[6]);
    double seconds = atof(arguments[9]);
    if (connection_count < 1 || connection_count > CONNECTION_LIMIT || partition_count < 1)
        fail("1 to %d connections and at least one partition", CONNECTION_LIMIT);
    prctl(PR_SET_TIMERSLACK, 1); /* wake when a request is due, not up to 50 us later */

    templates = calloc((size_t)partition_count, sizeof *templates);
    for (int32_t partition = 0; partition < partition_count; partition++)
        append_produce(&templates[partition], arguments[4], &partition, 1, (size_t)atol(arguments[7]),
                       strcmp(arguments[8], "all") == 0 ? -1 : atoi(arguments[8]));
    for (int i = 0; i < connection_count; i++) {
        connections[i].socket = connect_to(arguments[2], atoi(arguments[3]));
        if (connections[i].socket == -1)
            fail("cannot connect: %s", strerror(errno));
        fcntl(connections[i].socket, F_SETFL, O_NONBLOCK);
        connections[i].due = malloc(FLIGHT_LIMIT * sizeof(int64_t));
        polled[i].fd = connections[i].socket;
    }

    int64_t start = now_ns(), end = start + (int64_t)(seconds * 1e9);
    counted_from = start + (int64_t)(seconds * 0.2e9);
    if (open_loop)
        run_open(start, end, atof(arguments[10]));
    else
        run_closed(end, atoi(arguments[10]));
    uint64_t counted_in_time = counted_responses;
    double counted_seconds = (double)((open_loop ? now_ns() : end) - counted_from) / 1e9;
    drain();
    printf("{\"requests\": %llu, \"responses\": %llu, \"rate\": %.1f, \"drain_seconds\": %.3f, \"p50_us\": %.1f, "
           "\"p99_us\": %.1f, \"p999_us\": %.1f, \"max_us\": %.1f, \"generator_late_p99_us\": %.1f}\n",
           (unsigned long long)requests_sent, (unsigned long long)responses, (double)counted_in_time / counted_seconds,
           last_response_at > end ? (double)(last_response_at - end) / 1e9 : 0.0, (double)percentile(&latency, 0.5) / 1e3,
           (double)percentile(&latency, 0.99) / 1e3, (double)percentile(&latency, 0.999) / 1e3,
           (double)latency.largest / 1e3, (double)percentile(&lateness, 0.99) / 1e3);
    return responses == requests_sent ? 0 : 3;
}
