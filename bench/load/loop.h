/* Many connections in one thread: requests are queued, the handler gets responses in the order of requests. */
#ifndef KASPAR_BENCH_LOOP_H
#define KASPAR_BENCH_LOOP_H

#include "wire.h"

enum { CONNECTION_LIMIT = 1024, FLIGHT_LIMIT = 64 };

/* Called with a response at its body, and with the `what` that `ask` was given. */
typedef void on_response(int connection, int what, reader *response);

void open_connections(const char *host, int port, int count, on_response *handler);

/* A request is appended to what this returns (begin_request, end_request), and then sent by `ask`, which remembers `what`
 * for its response. */
buffer *requests_of(int connection);
void ask(int connection, int what);
int on_their_way(int connection); /* requests without a response yet */

void serve_until(int64_t until); /* handles responses until then */
void serve_once(int64_t until);  /* handles what is there, or waits for something until then */

#endif
