/* Transactions one after the other, by producers that speak the raw protocol of transactions v2 (KIP-890): Produce 12,
 * which adds its partition to the transaction, and EndTxn 5, which gives the epoch of the next one.
 *
 *   transactions HOST PORT TOPIC PARTITIONS PRODUCERS RECORDS RECORD_BYTES SECONDS
 *
 * Every producer has a connection of its own, and writes one batch of RECORDS in each transaction. What the broker asks to
 * try again (a transaction before it is still being ended) is tried again after a millisecond, as long as that takes. The
 * first fifth of the time is not counted. Prints one JSON object; any other refusal is a failure.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordination.h"
#include "histogram.h"
#include "loop.h"

enum { PRODUCER_LIMIT = 100, RETRY_NS = 1000000, PATIENCE_SECONDS = 60 };
enum step { INIT, PRODUCE, END };

typedef struct {
    char id[ID_BYTES];
    producer as;
    enum step step;
    int waits; /* for `retry_at`, to do its step again */
    int64_t retry_at, began_at;
} transactor;

static transactor transactors[PRODUCER_LIMIT];
static const char *topic;
static int partition_count, producer_count, records, ready, stopping;
static size_t record_bytes;
static int64_t counted_from, counted_until;
static long long transactions, counted, retries;
static histogram latency;

static void take_step(int number) {
    transactor *me = &transactors[number];
    buffer *to = requests_of(number);
    me->waits = 0;
    switch (me->step) {
    case INIT:
        append_init_producer_id(to, me->id);
        break;
    case PRODUCE:
        append_transactional_produce(to, me->id, topic, number % partition_count, records, record_bytes, &me->as);
        break;
    case END:
        append_end_transaction(to, me->id, &me->as);
        break;
    }
    ask(number, (int)me->step);
}

static void begin(int number) {
    transactors[number].step = PRODUCE;
    transactors[number].as.sequence = 0; /* of a new epoch */
    transactors[number].began_at = now_ns();
    take_step(number);
}

static void see_error(const partition_response *response, void *error) { *(int *)error = response->error; }

static void handle_response(int number, int what, reader *response) {
    transactor *me = &transactors[number];
    int error = NO_ERROR;
    if (what == PRODUCE) {
        if (read_produce_body(response, see_error, &error) != 0)
            fail("a response that is not a Produce response");
    } else {
        read_int(response, 4); /* throttle time */
        error = (int)read_int(response, 2);
    }
    if (may_pass(error)) {
        retries++;
        me->waits = 1;
        me->retry_at = now_ns() + RETRY_NS;
        return;
    }
    if (error != NO_ERROR)
        fail("%s was refused with error %d", what == INIT ? "InitProducerId" : what == PRODUCE ? "Produce" : "EndTxn", error);
    if (what == PRODUCE) {
        me->step = END;
        take_step(number);
        return;
    }
    me->as.id = read_int(response, 8);
    me->as.epoch = (int16_t)read_int(response, 2);
    if (response->broken)
        fail("a response that cannot be read");
    if (what == INIT) {
        ready++;
        return;
    }
    int64_t now = now_ns();
    transactions++;
    if (now >= counted_from && now < counted_until) {
        counted++;
        record_value(&latency, now - me->began_at);
    }
    if (!stopping)
        begin(number);
}

static void serve(int64_t until) {
    int64_t now = now_ns(), next = until;
    for (int i = 0; i < producer_count; i++) {
        if (transactors[i].waits && transactors[i].retry_at <= now)
            take_step(i);
        else if (transactors[i].waits && transactors[i].retry_at < next)
            next = transactors[i].retry_at;
    }
    serve_once(next);
}

static int under_way(void) {
    int sum = 0;
    for (int i = 0; i < producer_count; i++)
        sum += on_their_way(i) + transactors[i].waits;
    return sum;
}

int main(int count, char **arguments) {
    if (count != 9)
        fail("usage: transactions HOST PORT TOPIC PARTITIONS PRODUCERS RECORDS RECORD_BYTES SECONDS");
    topic = arguments[3];
    partition_count = atoi(arguments[4]);
    producer_count = atoi(arguments[5]);
    records = atoi(arguments[6]);
    record_bytes = (size_t)atol(arguments[7]);
    double seconds = atof(arguments[8]);
    if (producer_count < 1 || producer_count > PRODUCER_LIMIT)
        fail("1 to %d producers", PRODUCER_LIMIT);
    for (int i = 0; i < producer_count; i++) {
        snprintf(transactors[i].id, ID_BYTES, "bench-%s-%d", topic, i);
        find_coordinator(arguments[1], atoi(arguments[2]), TRANSACTION_COORDINATOR, transactors[i].id);
    }
    open_connections(arguments[1], atoi(arguments[2]), producer_count, handle_response);
    int64_t give_up_at = now_ns() + (int64_t)PATIENCE_SECONDS * 1000000000;
    for (int i = 0; i < producer_count; i++)
        take_step(i);
    while (ready < producer_count && now_ns() < give_up_at)
        serve(give_up_at);
    if (ready < producer_count)
        fail("not every producer got its id within %d s", PATIENCE_SECONDS);

    int64_t start = now_ns();
    counted_from = start + (int64_t)(seconds * 0.2e9);
    counted_until = start + (int64_t)(seconds * 1e9);
    retries = 0;
    for (int i = 0; i < producer_count; i++)
        begin(i);
    while (now_ns() < counted_until)
        serve(counted_until);
    stopping = 1;
    give_up_at = now_ns() + (int64_t)PATIENCE_SECONDS * 1000000000;
    while (under_way() > 0 && now_ns() < give_up_at)
        serve(give_up_at);
    if (under_way() > 0)
        fail("transactions were not ended within %d s", PATIENCE_SECONDS);
    printf("{\"transactions\": %lld, \"rate\": %.1f, \"retries\": %lld, \"p50_us\": %.1f, \"p99_us\": %.1f}\n",
           transactions, (double)counted / ((double)(counted_until - counted_from) / 1e9), retries,
           (double)percentile(&latency, 0.5) / 1e3, (double)percentile(&latency, 0.99) / 1e3);
    return 0;
}
