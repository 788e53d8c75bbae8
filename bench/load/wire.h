/* The least of the Kafka protocol that the load programs speak: its words, Produce 9 and Metadata 12 over a plain socket.
 * All requests are of flexible versions. */
#ifndef KASPAR_BENCH_WIRE_H
#define KASPAR_BENCH_WIRE_H

#include <stddef.h>
#include <stdint.h>

enum { PRODUCE_VERSION = 9, METADATA_VERSION = 12 };

typedef struct {
    uint8_t *bytes;
    size_t size, capacity;
} buffer;

/* ---- writing ---- */

void append(buffer *to, const void *bytes, size_t size);
void append_int(buffer *to, int64_t value, int bytes);
void append_unsigned_varint(buffer *to, uint64_t value);
void append_varint(buffer *to, int64_t value);
void append_compact_string(buffer *to, const char *text);
size_t begin_request(buffer *to, int api_key, int version); /* returns what end_request wants to know */
void end_request(buffer *to, size_t start);

typedef struct {
    int64_t id;
    int16_t epoch;
    int32_t sequence;
} producer;

/* One batch of equal records, in the transaction of `by` unless that is NULL. */
void append_batch(buffer *to, int records, size_t record_bytes, const producer *by);

/* A Produce request, its length prefix included: one batch of one record to each of `count` partitions. The correlation
 * id stands at CORRELATION_AT. */
enum { CORRELATION_AT = 8 };
void append_produce(buffer *to, const char *topic, const int32_t *partitions, int count, size_t record_bytes, int acks);
void append_metadata(buffer *to, const char *topic, int allow_auto_topic_creation);
void put_int32(uint8_t *at, int32_t value);
int32_t get_int32(const uint8_t *at);

/* ---- reading ---- */

/* What is read beyond the end is 0, and `broken` says so. */
typedef struct {
    const uint8_t *at, *end;
    int broken;
} reader;

reader open_response(const uint8_t *bytes, size_t size); /* at the body of a flexible response */
int64_t read_int(reader *from, int bytes);
uint64_t read_unsigned_varint(reader *from);
uint64_t read_compact_count(reader *from); /* items of a compact array or bytes of a compact string; null counts as 0 */
void skip(reader *from, uint64_t bytes);
void skip_compact_string(reader *from);
void skip_tagged_fields(reader *from);

/* The part of a response that is about one partition. */
typedef struct {
    int32_t partition;
    int16_t error;
    int64_t base_offset; /* Produce */
    int32_t leader;      /* Metadata */
} partition_response;
typedef void on_partition(const partition_response *response, void *opaque);

/* Walk a response (length prefix not included). They return 0, or -1 if the bytes are not such a response. */
int read_produce(const uint8_t *bytes, size_t size, on_partition *visit, void *opaque);
int read_produce_body(reader *from, on_partition *visit, void *opaque);
int read_metadata(const uint8_t *bytes, size_t size, on_partition *visit, void *opaque);

/* ---- time and sockets ---- */

int64_t now_ns(void); /* CLOCK_MONOTONIC, which is also Python's time.monotonic_ns() on Linux */
void sleep_ns(int64_t duration);
int connect_to(const char *host, int port); /* a blocking socket with TCP_NODELAY, or -1 */
int send_all(int socket, const uint8_t *bytes, size_t size);
/* Reads one whole response into `into` (replacing what was there), without its length prefix. 0, or -1 at the end. */
int receive_frame(int socket, buffer *into);
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#endif
