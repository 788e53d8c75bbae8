#define _GNU_SOURCE
#include "wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { LENGTH_AT = 8, CRC_AT = 17, AFTER_CRC = 21, TRANSACTIONAL = 0x10, LARGEST_RESPONSE = 64 << 20 };

void fail(const char *format, ...) {
    va_list values;
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fputc('\n', stderr);
    exit(1);
}

/* ---- writing ---- */

void append(buffer *to, const void *bytes, size_t size) {
    if (to->size + size > to->capacity) {
        to->capacity = (to->size + size) * 2;
        to->bytes = realloc(to->bytes, to->capacity);
        if (to->bytes == NULL)
            fail("out of memory");
    }
    memcpy(to->bytes + to->size, bytes, size);
    to->size += size;
}

void put_int32(uint8_t *at, int32_t value) {
    uint32_t ordered = htonl((uint32_t)value);
    memcpy(at, &ordered, 4);
}

int32_t get_int32(const uint8_t *at) {
    uint32_t ordered;
    memcpy(&ordered, at, 4);
    return (int32_t)ntohl(ordered);
}

void append_int(buffer *to, int64_t value, int bytes) {
    uint8_t ordered[8];
    for (int i = 0; i < bytes; i++)
        ordered[i] = (uint8_t)((uint64_t)value >> (8 * (bytes - 1 - i)));
    append(to, ordered, (size_t)bytes);
}

void append_unsigned_varint(buffer *to, uint64_t value) {
    while (value >= 0x80) {
        append_int(to, (int64_t)(value & 0x7f) | 0x80, 1);
        value >>= 7;
    }
    append_int(to, (int64_t)value, 1);
}

void append_varint(buffer *to, int64_t value) {
    append_unsigned_varint(to, ((uint64_t)value << 1) ^ (uint64_t)(value >> 63));
}

void append_compact_string(buffer *to, const char *text) {
    append_unsigned_varint(to, strlen(text) + 1);
    append(to, text, strlen(text));
}

/* The CRC-32C of a record batch. Batches are made once and sent often, so a table is fast enough. */
static uint32_t crc32c(const uint8_t *bytes, size_t size) {
    static uint32_t table[256];
    if (table[1] == 0)
        for (uint32_t value = 0; value < 256; value++) {
            uint32_t crc = value;
            for (int bit = 0; bit < 8; bit++)
                crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78u : 0);
            table[value] = crc;
        }
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < size; i++)
        crc = (crc >> 8) ^ table[(crc ^ bytes[i]) & 0xff];
    return crc ^ 0xffffffffu;
}

void append_batch(buffer *to, int records, size_t record_bytes, const producer *by) {
    static const producer nobody = {-1, -1, -1};
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    int64_t timestamp = (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000;
    int transactional = by != NULL;
    if (by == NULL)
        by = &nobody;

    size_t start = to->size;
    append_int(to, 0, 8);                              /* base offset */
    append_int(to, 0, 4);                              /* batch length, set below */
    append_int(to, -1, 4);                             /* partition leader epoch */
    append_int(to, 2, 1);                              /* magic */
    append_int(to, 0, 4);                              /* crc, set below */
    append_int(to, transactional ? TRANSACTIONAL : 0, 2); /* attributes */
    append_int(to, records - 1, 4);                    /* last offset delta */
    append_int(to, timestamp, 8);                      /* base timestamp */
    append_int(to, timestamp, 8);                      /* max timestamp */
    append_int(to, by->id, 8);
    append_int(to, by->epoch, 2);
    append_int(to, by->sequence, 4);
    append_int(to, records, 4);
    buffer record = {0};
    for (int number = 0; number < records; number++) {
        record.size = 0;
        append_int(&record, 0, 1);       /* attributes */
        append_varint(&record, 0);       /* timestamp delta */
        append_varint(&record, number);  /* offset delta */
        append_varint(&record, -1);      /* no key */
        append_varint(&record, (int64_t)record_bytes);
        for (size_t i = 0; i < record_bytes; i++)
            append_int(&record, 'a' + (int64_t)(i % 26), 1);
        append_varint(&record, 0); /* no headers */
        append_varint(to, (int64_t)record.size);
        append(to, record.bytes, record.size);
    }
    free(record.bytes);
    uint8_t *batch = to->bytes + start;
    put_int32(batch + LENGTH_AT, (int32_t)(to->size - start - LENGTH_AT - 4));
    put_int32(batch + CRC_AT, (int32_t)crc32c(batch + AFTER_CRC, to->size - start - AFTER_CRC));
}

size_t begin_request(buffer *to, int api_key, int version) {
    size_t start = to->size;
    append_int(to, 0, 4); /* length, set by end_request */
    append_int(to, api_key, 2);
    append_int(to, version, 2);
    append_int(to, 0, 4); /* correlation id */
    append_int(to, 5, 2); /* client id */
    append(to, "bench", 5);
    append_int(to, 0, 1); /* no tagged fields */
    return start;
}

void end_request(buffer *to, size_t start) {
    put_int32(to->bytes + start, (int32_t)(to->size - start - 4));
}

void append_produce(buffer *to, const char *topic, const int32_t *partitions, int count, size_t record_bytes, int acks) {
    buffer batch = {0};
    append_batch(&batch, 1, record_bytes, NULL);
    size_t start = begin_request(to, 0, PRODUCE_VERSION);
    append_int(to, 0, 1); /* no transactional id */
    append_int(to, acks, 2);
    append_int(to, 30000, 4); /* timeout */
    append_unsigned_varint(to, 2);
    append_compact_string(to, topic);
    append_unsigned_varint(to, (uint64_t)count + 1);
    for (int i = 0; i < count; i++) {
        append_int(to, partitions[i], 4);
        append_unsigned_varint(to, batch.size + 1);
        append(to, batch.bytes, batch.size);
        append_int(to, 0, 1);
    }
    append_int(to, 0, 1);
    append_int(to, 0, 1);
    end_request(to, start);
    free(batch.bytes);
}

void append_metadata(buffer *to, const char *topic, int allow_auto_topic_creation) {
    size_t start = begin_request(to, 3, METADATA_VERSION);
    append_unsigned_varint(to, 2);
    append_int(to, 0, 8); /* no topic id */
    append_int(to, 0, 8);
    append_compact_string(to, topic);
    append_int(to, 0, 1);
    append_int(to, allow_auto_topic_creation, 1);
    append_int(to, 0, 1); /* without authorized operations */
    append_int(to, 0, 1);
    end_request(to, start);
}

/* ---- reading ---- */

int64_t read_int(reader *from, int bytes) {
    if (from->end - from->at < bytes) {
        from->broken = 1;
        return 0;
    }
    uint64_t value = *from->at & 0x80 ? UINT64_MAX : 0;
    for (int i = 0; i < bytes; i++)
        value = value << 8 | *from->at++;
    return (int64_t)value;
}

uint64_t read_unsigned_varint(reader *from) {
    uint64_t value = 0;
    for (int shift = 0; shift < 35; shift += 7) {
        uint64_t byte = (uint64_t)read_int(from, 1) & 0xff;
        value |= (byte & 0x7f) << shift;
        if ((byte & 0x80) == 0)
            return value;
    }
    from->broken = 1;
    return 0;
}

void skip(reader *from, uint64_t bytes) {
    if ((uint64_t)(from->end - from->at) < bytes)
        from->broken = 1;
    else
        from->at += bytes;
}

/* The items of a compact array, or the bytes of a compact string; null counts as none. */
uint64_t read_compact_count(reader *from) {
    uint64_t count = read_unsigned_varint(from);
    return count == 0 ? 0 : count - 1;
}

void skip_compact_string(reader *from) { skip(from, read_compact_count(from)); }
static void skip_compact_int32s(reader *from) { skip(from, read_compact_count(from) * 4); }

void skip_tagged_fields(reader *from) {
    for (uint64_t fields = read_unsigned_varint(from); fields > 0 && !from->broken; fields--) {
        read_unsigned_varint(from);
        skip(from, read_unsigned_varint(from));
    }
}

reader open_response(const uint8_t *bytes, size_t size) {
    reader from = {bytes, bytes + size, 0};
    read_int(&from, 4); /* correlation id */
    skip_tagged_fields(&from);
    return from;
}

int read_produce(const uint8_t *bytes, size_t size, on_partition *visit, void *opaque) {
    reader from = open_response(bytes, size);
    return read_produce_body(&from, visit, opaque);
}

int read_produce_body(reader *from, on_partition *visit, void *opaque) {
    for (uint64_t topics = read_compact_count(from); topics > 0 && !from->broken; topics--) {
        skip_compact_string(from);
        for (uint64_t partitions = read_compact_count(from); partitions > 0 && !from->broken; partitions--) {
            partition_response response = {0};
            response.partition = (int32_t)read_int(from, 4);
            response.error = (int16_t)read_int(from, 2);
            response.base_offset = read_int(from, 8);
            read_int(from, 8); /* log append time */
            read_int(from, 8); /* log start offset */
            for (uint64_t errors = read_compact_count(from); errors > 0 && !from->broken; errors--) {
                read_int(from, 4);
                skip_compact_string(from);
                skip_tagged_fields(from);
            }
            skip_compact_string(from); /* error message */
            skip_tagged_fields(from);
            if (!from->broken)
                visit(&response, opaque);
        }
        skip_tagged_fields(from);
    }
    read_int(from, 4); /* throttle time */
    skip_tagged_fields(from);
    return from->broken || from->at != from->end ? -1 : 0;
}

int read_metadata(const uint8_t *bytes, size_t size, on_partition *visit, void *opaque) {
    reader from = open_response(bytes, size);
    read_int(&from, 4); /* throttle time */
    for (uint64_t brokers = read_compact_count(&from); brokers > 0 && !from.broken; brokers--) {
        read_int(&from, 4);
        skip_compact_string(&from);
        read_int(&from, 4);
        skip_compact_string(&from);
        skip_tagged_fields(&from);
    }
    skip_compact_string(&from); /* cluster id */
    read_int(&from, 4);         /* controller id */
    for (uint64_t topics = read_compact_count(&from); topics > 0 && !from.broken; topics--) {
        read_int(&from, 2);
        skip_compact_string(&from);
        skip(&from, 16);
        read_int(&from, 1);
        for (uint64_t partitions = read_compact_count(&from); partitions > 0 && !from.broken; partitions--) {
            partition_response response = {0};
            response.error = (int16_t)read_int(&from, 2);
            response.partition = (int32_t)read_int(&from, 4);
            response.leader = (int32_t)read_int(&from, 4);
            read_int(&from, 4); /* leader epoch */
            skip_compact_int32s(&from);
            skip_compact_int32s(&from);
            skip_compact_int32s(&from);
            skip_tagged_fields(&from);
            if (!from.broken)
                visit(&response, opaque);
        }
        read_int(&from, 4); /* authorized operations */
        skip_tagged_fields(&from);
    }
    skip_tagged_fields(&from);
    return from.broken || from.at != from.end ? -1 : 0;
}

/* ---- time and sockets ---- */

int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void sleep_ns(int64_t duration) {
    struct timespec wait = {duration / 1000000000, duration % 1000000000};
    nanosleep(&wait, NULL);
}

int connect_to(const char *host, int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1)
        fail("'%s' is not an IPv4 address", host);
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (descriptor == -1)
        fail("socket: %s", strerror(errno));
    if (connect(descriptor, (struct sockaddr *)&address, sizeof address) != 0) {
        close(descriptor);
        return -1;
    }
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return descriptor;
}

int send_all(int descriptor, const uint8_t *bytes, size_t size) {
    while (size > 0) {
        ssize_t sent = send(descriptor, bytes, size, MSG_NOSIGNAL);
        if (sent <= 0)
            return -1;
        bytes += sent;
        size -= (size_t)sent;
    }
    return 0;
}

int receive_frame(int descriptor, buffer *into) {
    uint8_t prefix[4];
    if (recv(descriptor, prefix, 4, MSG_WAITALL) != 4)
        return -1;
    int32_t size = get_int32(prefix);
    if (size < 5 || size > LARGEST_RESPONSE)
        return -1;
    into->size = 0;
    uint8_t chunk[65536];
    while (into->size < (size_t)size) {
        size_t left = (size_t)size - into->size;
        ssize_t received = recv(descriptor, chunk, left < sizeof chunk ? left : sizeof chunk, 0);
        if (received <= 0)
            return -1;
        append(into, chunk, (size_t)received);
    }
    return 0;
}
