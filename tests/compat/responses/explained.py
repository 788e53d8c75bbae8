"""The scenarios in which Kaspar says in a sentence why it refused a partition of Produce, and Apache Kafka does not.

Kafka does so where single records are at fault, where it cannot even read a batch, and for unknown transactions.
"""

from collections.abc import Sequence

FIRST_VERSION_WITH_MESSAGES = 8

_OF_REQUESTS = (
    *("acks two", "acks minus two", "an unknown topic", "a topic name that may not be"),
    *("an empty topic name or the zero id", "an unknown partition", "a negative partition"),
    "one bad partition does not fail its neighbours",
)
_OF_BATCHES = (
    *("empty records", "a wrong checksum", "a cut batch", "less than a batch header", "less than a size"),
    *("a size below the header s", "a size beyond the end", "two batches", "magic 0", "magic 1"),
    *("a base offset that is not zero", "a control batch", "a transactional batch without a producer"),
    *("a batch above max message bytes", "a batch above segment bytes"),
)
_OF_RECORDS = (
    *("more records counted than there are", "fewer records counted than there are", "a negative count"),
    *("a count that the last offset delta denies", "no records", "no records and a last offset delta of minus one"),
    *("offset deltas with a gap in gzip", "bytes after the last record", "a record that is cut"),
    *("a record of negative size", "gzip that is no gzip", "lz4 that is no lz4", "zstd that is no zstd"),
    *("snappy that is no snappy", "codec 5", "codec 7"),
)
_OF_PRODUCERS = (
    *("a producer id without a sequence", "a duplicate gets its first offset"),
    *("a transactional batch with acks 1", "a transactional batch that would be compressed"),
    *("a part of a batch that is known", "a sequence with a gap", "an older epoch", "a newer epoch begins at zero"),
)

EXPLAINED_REFUSALS: Sequence[str] = [
    f"produce-{name.replace(' ', '-')}" for name in (*_OF_REQUESTS, *_OF_BATCHES, *_OF_RECORDS, *_OF_PRODUCERS)
]
