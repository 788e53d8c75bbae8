/* Bulk load through librdkafka: what a C program that uses the stock client would do.
 *
 *   client produce BOOTSTRAP TOPIC PARTITIONS RECORDS RECORD_BYTES ACKS CODEC [KEYS]
 *   client consume BOOTSTRAP TOPIC PARTITIONS RECORDS [FETCH_BYTES_OF_A_PARTITION]
 *   client produce-in-transactions BOOTSTRAP TOPIC PARTITIONS RECORDS RECORD_BYTES RECORDS_OF_A_TRANSACTION ABORT_ONE_IN
 *   client outage BOOTSTRAP TOPIC PARTITIONS RATE PROCESS SIGNAL
 *   client -X NAME=VALUE [-X ...] produce|consume ...
 *
 * It prints one JSON object. Rules:
 * - The clock starts once the client is connected and knows the topic, and stops at the last delivery report or the
 *   last record. An undelivered or missing record is a failure, never a faster run.
 * - The client runs with its defaults, but for what is set below and by -X. A consumer's default is read_committed.
 * - Record values are words of a made-up language, taken in turn from a text longer than any compressor's window here,
 *   so that lz4 gains about what it gains on real text (it leaves 0.44). Records go to the partitions in turn.
 * - With KEYS, each record has one of so many keys, drawn at random, the same in every run.
 * - outage: records of 100 bytes with acks=all, RATE of them a second, to the partitions in turn. When every partition has
 *   acknowledged records for two seconds, PROCESS, a broker, gets SIGNAL. The run goes on until that has ended and every
 *   partition has acknowledged a record that was sent a second after its end. The result is the longest time between two
 *   acknowledgements of one partition, from the signal on.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rdkafka.h"

enum { OUTAGE_PARTITIONS = 64, OUTAGE_RECORD_BYTES = 100, OUTAGE_LIMIT_SECONDS = 120 };
enum { TEXT_BYTES = 1 << 20, WORDS = 1024, LONGEST_WORD = 12, KEY_BYTES = 14, METADATA_TIMEOUT_MS = 30000, STALL_SECONDS = 60, SETTINGS_LIMIT = 16 };

static char text[TEXT_BYTES];

static double now_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

/* The same bytes in every run: xorshift with a fixed seed. */
static uint32_t next_random(void) {
    static uint32_t state = 2463534242u;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

static void write_text(void) {
    static char words[WORDS][LONGEST_WORD + 1];
    for (int word = 0; word < WORDS; word++) {
        int length = 3 + (int)(next_random() % (LONGEST_WORD - 2));
        for (int i = 0; i < length; i++)
            words[word][i] = (char)('a' + next_random() % 26);
    }
    size_t written = 0;
    while (written < TEXT_BYTES) {
        /* The smaller of two draws: some words are more common than others, as in any language. */
        uint32_t first = next_random() % WORDS, second = next_random() % WORDS;
        const char *word = words[first < second ? first : second];
        for (size_t i = 0; word[i] != '\0' && written < TEXT_BYTES; i++)
            text[written++] = word[i];
        if (written < TEXT_BYTES)
            text[written++] = ' ';
    }
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char error[256];
    if (rd_kafka_conf_set(conf, name, value, error, sizeof error) != RD_KAFKA_CONF_OK)
        fail(name, error);
}

/* What -X says: names and values in turn. */
static char *settings[2 * SETTINGS_LIMIT];
static int setting_count;

/* Takes the -X options from the front of the arguments, and returns how many words they were. */
static int take_settings(char **arguments) {
    int taken = 0;
    for (; arguments[taken] != NULL && strcmp(arguments[taken], "-X") == 0; taken += 2) {
        char *name = arguments[taken + 1], *value = name == NULL ? NULL : strchr(name, '=');
        if (value == NULL || setting_count == SETTINGS_LIMIT)
            fail("usage", "-X NAME=VALUE, a few times at most");
        *value = '\0';
        settings[2 * setting_count] = name;
        settings[2 * setting_count++ + 1] = value + 1;
    }
    return taken;
}

static rd_kafka_t *new_client(rd_kafka_type_t type, rd_kafka_conf_t *conf, const char *bootstrap) {
    char error[256];
    set(conf, "bootstrap.servers", bootstrap);
    for (int i = 0; i < setting_count; i++)
        set(conf, settings[2 * i], settings[2 * i + 1]);
    rd_kafka_t *client = rd_kafka_new(type, conf, error, sizeof error);
    if (client == NULL)
        fail("cannot make a client", error);
    return client;
}

/* Asks for the topic's metadata, so that the measured time holds no connecting and no looking up. */
static void learn_topic(rd_kafka_t *client, rd_kafka_topic_t *topic, int partitions) {
    const struct rd_kafka_metadata *metadata;
    rd_kafka_resp_err_t error = rd_kafka_metadata(client, 0, topic, &metadata, METADATA_TIMEOUT_MS);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
        fail("metadata", rd_kafka_err2str(error));
    if (metadata->topic_cnt != 1 || metadata->topics[0].partition_cnt != partitions)
        fail("metadata", "the topic does not have the expected number of partitions");
    rd_kafka_metadata_destroy(metadata);
}

static void report(long records, long long bytes, double seconds) {
    printf("{\"records\": %ld, \"bytes\": %lld, \"seconds\": %.6f}\n", records, bytes, seconds);
}

static long delivered;

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    (void)client, (void)opaque;
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR)
        fail("a record was not delivered", rd_kafka_err2str(message->err));
    delivered++;
}

static size_t position;

/* The next record of the text goes to the client, which may have to wait for room in its queue. `keys` 0: without a key. */
static void produce_one(rd_kafka_t *client, rd_kafka_topic_t *topic, int32_t partition, size_t record_bytes,
                        uint32_t keys) {
    char key[KEY_BYTES + 1];
    if (keys > 0)
        snprintf(key, sizeof key, "key-%010u", next_random() % keys);
    if (position + record_bytes > TEXT_BYTES)
        position = position + record_bytes - TEXT_BYTES; /* another phase each time round, so no batch repeats */
    while (rd_kafka_produce(topic, partition, 0, text + position, record_bytes, keys > 0 ? key : NULL,
                            keys > 0 ? KEY_BYTES : 0, NULL) == -1) {
        if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL)
            fail("produce", rd_kafka_err2str(rd_kafka_last_error()));
        rd_kafka_poll(client, 10);
    }
    position += record_bytes;
}

static void produce(char **arguments, uint32_t keys) {
    const char *bootstrap = arguments[0], *topic_name = arguments[1];
    int partitions = atoi(arguments[2]);
    long records = atol(arguments[3]);
    size_t record_bytes = (size_t)atol(arguments[4]);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "acks", arguments[5]);
    set(conf, "compression.codec", arguments[6]);
    set(conf, "message.timeout.ms", "60000");
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_t *client = new_client(RD_KAFKA_PRODUCER, conf, bootstrap);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, topic_name, NULL);
    learn_topic(client, topic, partitions);
    write_text();

    double start = now_seconds();
    for (long record = 0; record < records; record++) {
        produce_one(client, topic, (int32_t)(record % partitions), record_bytes, keys);
        if (record % 1000 == 0)
            rd_kafka_poll(client, 0);
    }
    /* A partition's last batch is not full: it waits for its linger time, as it would for anyone. */
    while (delivered < records)
        rd_kafka_poll(client, 100);
    double seconds = now_seconds() - start;
    report(records, (long long)records * (long long)record_bytes, seconds);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(client);
}

/* What one partition's acknowledgements were like. Times are of the monotonic clock, in seconds. */
typedef struct {
    double last_acknowledged_at, longest_gap;
    double last_sent_at; /* of the acknowledged records */
} outage;

static outage outages[OUTAGE_PARTITIONS];
static double signalled_at;

static void on_steady_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    (void)client, (void)opaque;
    double *sent_at = message->_private, now = now_seconds();
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR)
        fail("a record was not delivered", rd_kafka_err2str(message->err));
    outage *of = &outages[message->partition];
    double from = of->last_acknowledged_at > signalled_at ? of->last_acknowledged_at : signalled_at;
    if (signalled_at > 0 && now - from > of->longest_gap)
        of->longest_gap = now - from;
    of->last_acknowledged_at = now;
    if (*sent_at > of->last_sent_at)
        of->last_sent_at = *sent_at;
    free(sent_at);
}

/* Whether the process has ended; its parent may not know yet. */
static int has_ended(int process) {
    char path[64], state = 'Z';
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return 1;
    if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 'Z';
    fclose(file);
    return state == 'Z' || state == 'X';
}

/* Whether every partition has acknowledged a record that was sent at this time or later. */
static int all_acknowledged_since(double since, int partitions) {
    for (int partition = 0; partition < partitions; partition++)
        if (outages[partition].last_sent_at < since)
            return 0;
    return 1;
}

static void measure_outage(char **arguments) {
    const char *bootstrap = arguments[0], *topic_name = arguments[1];
    int partitions = atoi(arguments[2]), process = atoi(arguments[4]), number = atoi(arguments[5]);
    double interval = 1 / atof(arguments[3]);
    if (partitions > OUTAGE_PARTITIONS)
        fail("usage", "too many partitions");
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "acks", "all");
    set(conf, "message.timeout.ms", "120000");
    rd_kafka_conf_set_dr_msg_cb(conf, on_steady_delivery);
    rd_kafka_t *client = new_client(RD_KAFKA_PRODUCER, conf, bootstrap);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, topic_name, NULL);
    learn_topic(client, topic, partitions);
    write_text();

    double start = now_seconds(), ended_at = 0;
    long record = 0;
    while (ended_at == 0 || !all_acknowledged_since(ended_at + 1, partitions)) {
        double now = now_seconds();
        if (now - start > OUTAGE_LIMIT_SECONDS)
            fail("outage", ended_at == 0 ? "the broker did not end in time" : "a partition acknowledged nothing more");
        for (; start + (double)record * interval <= now; record++) {
            double *sent_at = malloc(sizeof *sent_at);
            *sent_at = now;
            int32_t partition = (int32_t)(record % partitions);
            if (rd_kafka_produce(topic, partition, 0, text, OUTAGE_RECORD_BYTES, NULL, 0, sent_at) == -1)
                fail("produce", rd_kafka_err2str(rd_kafka_last_error()));
        }
        rd_kafka_poll(client, 1);
        if (signalled_at == 0 && all_acknowledged_since(start + 2, partitions)) {
            signalled_at = now_seconds();
            if (kill(process, number) != 0)
                fail("outage", "the broker cannot be signalled");
        } else if (signalled_at > 0 && ended_at == 0 && has_ended(process)) {
            ended_at = now_seconds();
        }
    }
    double longest = 0;
    for (int partition = 0; partition < partitions; partition++)
        if (outages[partition].longest_gap > longest)
            longest = outages[partition].longest_gap;
    printf("{\"records\": %ld, \"longest_gap\": %.6f, \"signalled_at\": %.6f, \"ended_at\": %.6f}\n", record, longest,
           signalled_at, ended_at);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(client);
}

static void check(const char *what, rd_kafka_error_t *error) {
    if (error != NULL)
        fail(what, rd_kafka_error_string(error));
}

/* One transaction after the other, each of so many records; one in so many of them is aborted. Reports what a reader of
 * committed records is to find. */
static void produce_in_transactions(char **arguments) {
    const char *bootstrap = arguments[0], *topic_name = arguments[1];
    int partitions = atoi(arguments[2]);
    long records = atol(arguments[3]), of_a_transaction = atol(arguments[5]), abort_one_in = atol(arguments[6]);
    size_t record_bytes = (size_t)atol(arguments[4]);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "transactional.id", topic_name);
    rd_kafka_t *client = new_client(RD_KAFKA_PRODUCER, conf, bootstrap);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, topic_name, NULL);
    learn_topic(client, topic, partitions);
    write_text();

    check("init_transactions", rd_kafka_init_transactions(client, METADATA_TIMEOUT_MS));
    long committed = 0, sent = 0;
    double start = now_seconds();
    for (long number = 1; sent < records; number++) {
        check("begin_transaction", rd_kafka_begin_transaction(client));
        long first = sent;
        for (; sent < records && sent - first < of_a_transaction; sent++)
            produce_one(client, topic, (int32_t)(sent % partitions), record_bytes, 0);
        if (number % abort_one_in == 0) {
            /* What an abort finds in the client's queue is never sent, and then there is nothing to abort. */
            if (rd_kafka_flush(client, METADATA_TIMEOUT_MS) != RD_KAFKA_RESP_ERR_NO_ERROR)
                fail("flush", "records were not delivered in time");
            check("abort_transaction", rd_kafka_abort_transaction(client, METADATA_TIMEOUT_MS));
        } else {
            check("commit_transaction", rd_kafka_commit_transaction(client, METADATA_TIMEOUT_MS));
            committed += sent - first;
        }
    }
    report(committed, (long long)committed * (long long)record_bytes, now_seconds() - start);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(client);
}

static long consumed;
static long long consumed_bytes;
static long wanted;
static double last_record_at;

static void on_record(rd_kafka_message_t *message, void *opaque) {
    (void)opaque;
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
        return;
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR)
        fail("consume", rd_kafka_message_errstr(message));
    consumed_bytes += (long long)message->len;
    if (++consumed == wanted)
        last_record_at = now_seconds();
}

static void consume(char **arguments, const char *fetch_bytes) {
    const char *bootstrap = arguments[0], *topic_name = arguments[1];
    int partitions = atoi(arguments[2]);
    wanted = atol(arguments[3]);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    /* The client stops fetching while its queue is full, by default for a second: then it would measure that second. */
    set(conf, "queued.min.messages", "1000000");
    set(conf, "queued.max.messages.kbytes", "131072");
    set(conf, "fetch.queue.backoff.ms", "1");
    if (fetch_bytes)
        set(conf, "fetch.message.max.bytes", fetch_bytes);
    rd_kafka_t *client = new_client(RD_KAFKA_CONSUMER, conf, bootstrap);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, topic_name, NULL);
    learn_topic(client, topic, partitions);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);

    double start = now_seconds(), progress_at = start;
    for (int partition = 0; partition < partitions; partition++)
        if (rd_kafka_consume_start_queue(topic, partition, RD_KAFKA_OFFSET_BEGINNING, queue) == -1)
            fail("consume_start", rd_kafka_err2str(rd_kafka_last_error()));
    while (consumed < wanted) {
        long before = consumed;
        rd_kafka_consume_callback_queue(queue, 100, on_record, NULL);
        if (consumed != before)
            progress_at = now_seconds();
        else if (now_seconds() - progress_at > STALL_SECONDS)
            fail("consume", "no record came for a minute");
    }
    report(consumed, consumed_bytes, last_record_at - start);
    for (int partition = 0; partition < partitions; partition++)
        rd_kafka_consume_stop(topic, partition);
    rd_kafka_queue_destroy(queue);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(client);
}

int main(int count, char **arguments) {
    int taken = take_settings(arguments + 1);
    count -= taken;
    arguments += taken;
    if ((count == 9 || count == 10) && strcmp(arguments[1], "produce") == 0)
        produce(arguments + 2, count == 10 ? (uint32_t)atol(arguments[9]) : 0);
    else if ((count == 6 || count == 7) && strcmp(arguments[1], "consume") == 0)
        consume(arguments + 2, count == 7 ? arguments[6] : NULL);
    else if (count == 9 && strcmp(arguments[1], "produce-in-transactions") == 0)
        produce_in_transactions(arguments + 2);
    else if (count == 8 && strcmp(arguments[1], "outage") == 0)
        measure_outage(arguments + 2);
    else
        fail("usage", "client produce|consume|produce-in-transactions|outage BOOTSTRAP TOPIC PARTITIONS [...]");
    return 0;
}
