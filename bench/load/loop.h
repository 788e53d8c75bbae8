/* Many connections in one thread: requests are queued, answers are handed to whoever asked, in the order of requests. */
#ifndef KASPAR_BENCH_LOOP_H
#define KASPAR_BENCH_LOOP_H

#include "wire.h"

enum { CONNECTION_LIMIT = 1024, FLIGHT_LIMIT = 64 };

/* Called with an answer at its body, and with what `ask` was told about it. */
typedef void on_answer(int connection, int what, reader *answer);

void open_connections(const char *host, int port, int count, on_answer *handler);

/* A request is appended to what this returns (begin_request, end_request), and then sent by `ask`, which remembers `what`
 * for its answer. */
buffer *requests_of(int connection);
void ask(int connection, int what);
int on_their_way(int connection); /* requests without an answer yet */

void serve_until(int64_t until); /* handles answers until then */
void serve_once(int64_t until);  /* handles what is there, or waits for something until then */

#endif
