#define _GNU_SOURCE
#include "loop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { RECEIVE_BYTES = 1 << 16 };

typedef struct {
    buffer out, in;
    size_t sent;            /* bytes of `out` that the socket took */
    int what[FLIGHT_LIMIT]; /* of the requests on their way, oldest first: a ring */
    uint32_t first, flying;
} connection;

static connection connections[CONNECTION_LIMIT];
static struct pollfd polled[CONNECTION_LIMIT];
static int connection_count;
static on_response *handle;

void open_connections(const char *host, int port, int count, on_response *handler) {
    if (count < 1 || count > CONNECTION_LIMIT)
        fail("1 to %d connections", CONNECTION_LIMIT);
    connection_count = count;
    handle = handler;
    for (int i = 0; i < count; i++) {
        polled[i].fd = connect_to(host, port);
        if (polled[i].fd == -1)
            fail("cannot connect: %s", strerror(errno));
        fcntl(polled[i].fd, F_SETFL, O_NONBLOCK);
    }
}

buffer *requests_of(int number) { return &connections[number].out; }

int on_their_way(int number) { return (int)connections[number].flying; }

static void flush_out(int number) {
    connection *on = &connections[number];
    while (on->sent < on->out.size) {
        ssize_t sent = send(polled[number].fd, on->out.bytes + on->sent, on->out.size - on->sent, MSG_NOSIGNAL);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (sent < 0)
            fail("the broker closed a connection: %s", strerror(errno));
        on->sent += (size_t)sent;
    }
    on->out.size = on->sent = 0;
}

void ask(int number, int what) {
    connection *on = &connections[number];
    if (on->flying == FLIGHT_LIMIT)
        fail("%d requests wait for a response on one connection", FLIGHT_LIMIT);
    on->what[(on->first + on->flying++) % FLIGHT_LIMIT] = what;
    flush_out(number);
}

static void take_responses(int number) {
    connection *on = &connections[number];
    uint8_t chunk[RECEIVE_BYTES];
    ssize_t received = recv(polled[number].fd, chunk, sizeof chunk, 0);
    if (received == 0)
        fail("the broker closed a connection");
    if (received < 0) {
        if (errno == EAGAIN || errno == EINTR)
            return;
        fail("recv: %s", strerror(errno));
    }
    append(&on->in, chunk, (size_t)received);
    size_t at = 0;
    while (on->in.size - at >= 8) {
        size_t size = (size_t)get_int32(on->in.bytes + at);
        if (on->in.size - at - 4 < size)
            break;
        if (on->flying == 0)
            fail("a response that nobody asked for");
        int what = on->what[on->first];
        on->first = (on->first + 1) % FLIGHT_LIMIT;
        on->flying--;
        reader response = open_response(on->in.bytes + at + 4, size);
        handle(number, what, &response);
        at += 4 + size;
    }
    memmove(on->in.bytes, on->in.bytes + at, on->in.size - at);
    on->in.size -= at;
}

void serve_once(int64_t until) {
    for (int i = 0; i < connection_count; i++)
        polled[i].events = POLLIN | (connections[i].out.size > 0 ? POLLOUT : 0);
    int64_t left = until - now_ns();
    struct timespec timeout = {left > 0 ? left / 1000000000 : 0, left > 0 ? left % 1000000000 : 0};
    if (ppoll(polled, (nfds_t)connection_count, &timeout, NULL) < 0) {
        if (errno == EINTR)
            return;
        fail("ppoll: %s", strerror(errno));
    }
    for (int i = 0; i < connection_count; i++) {
        if (polled[i].revents & (POLLIN | POLLHUP | POLLERR))
            take_responses(i);
        if (polled[i].revents & POLLOUT)
            flush_out(i);
    }
}

void serve_until(int64_t until) {
    do
        serve_once(until);
    while (now_ns() < until);
}
