/* A histogram of nanoseconds whose buckets are at most 1/128 wide: percentiles come out within 0.8 %. */
#ifndef KASPAR_BENCH_HISTOGRAM_H
#define KASPAR_BENCH_HISTOGRAM_H

#include <stdint.h>

enum { SUB_BITS = 7, SUB_BUCKETS = 1 << SUB_BITS, BUCKETS = (64 - SUB_BITS + 1) * SUB_BUCKETS };

typedef struct {
    uint64_t counts[BUCKETS], total;
    int64_t largest;
} histogram;

static inline int bucket_of(uint64_t value) {
    if (value < SUB_BUCKETS)
        return (int)value;
    int shift = 63 - __builtin_clzll(value) - SUB_BITS;
    return (shift + 1) * SUB_BUCKETS + (int)(value >> shift) - SUB_BUCKETS;
}

static inline int64_t middle_of(int bucket) {
    if (bucket < SUB_BUCKETS)
        return bucket;
    int shift = bucket / SUB_BUCKETS - 1;
    int64_t low = (int64_t)(bucket % SUB_BUCKETS + SUB_BUCKETS) << shift;
    return low + ((int64_t)1 << shift) / 2;
}

static inline void record_value(histogram *into, int64_t nanoseconds) {
    into->counts[bucket_of(nanoseconds < 0 ? 0 : (uint64_t)nanoseconds)]++;
    into->total++;
    if (nanoseconds > into->largest)
        into->largest = nanoseconds;
}

/* The value that this share of all values does not exceed. */
static inline int64_t percentile(const histogram *of, double share) {
    uint64_t rank = (uint64_t)(share * (double)of->total + 0.999999), seen = 0;
    for (int bucket = 0; bucket < BUCKETS; bucket++) {
        seen += of->counts[bucket];
        if (seen >= rank && seen > 0)
            return middle_of(bucket) < of->largest ? middle_of(bucket) : of->largest;
    }
    return of->largest;
}

#endif
