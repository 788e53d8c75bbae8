/* The least of the Kafka protocol that the load programs speak: Produce 9 and Metadata 12 over a plain socket. */
#ifndef KASPAR_BENCH_WIRE_H
#define KASPAR_BENCH_WIRE_H

#include <stddef.h>
#include <stdint.h>

enum { PRODUCE_VERSION = 9, METADATA_VERSION = 12 };

typedef struct {
    uint8_t *bytes;
    size_t size, capacity;
} buffer;

void append(buffer *to, const void *bytes, size_t size);

/* A Produce request, its length prefix included: one batch of one record to each of `count` partitions. The correlation
 * id stands at CORRELATION_AT. */
enum { CORRELATION_AT = 8 };
void append_produce(buffer *to, const char *topic, const int32_t *partitions, int count, size_t record_bytes, int acks);
void append_metadata(buffer *to, const char *topic, int allow_auto_topic_creation);
void put_int32(uint8_t *at, int32_t value);
int32_t get_int32(const uint8_t *at);

/* The part of an answer that is about one partition. */
typedef struct {
    int32_t partition;
    int16_t error;
    int64_t base_offset; /* Produce */
    int32_t leader;      /* Metadata */
} partition_answer;
typedef void on_partition(const partition_answer *answer, void *opaque);

/* Walk an answer (length prefix not included). They return 0, or -1 if the bytes are not such an answer. */
int read_produce(const uint8_t *bytes, size_t size, on_partition *visit, void *opaque);
int read_metadata(const uint8_t *bytes, size_t size, on_partition *visit, void *opaque);

int64_t now_ns(void); /* CLOCK_MONOTONIC, which is also Python's time.monotonic_ns() on Linux */
void sleep_ns(int64_t duration);
int connect_to(const char *host, int port); /* a blocking socket with TCP_NODELAY, or -1 */
int send_all(int socket, const uint8_t *bytes, size_t size);
/* Reads one whole answer into `into` (replacing what was there), without its length prefix. 0, or -1 at the end. */
int receive_frame(int socket, buffer *into);
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#endif
