"""What is intended to differ from Kafka Streams, each with its reason. Everything else is compared record by record.

Kafka Streams runs without its cache, so that it emits every update as kaspar.streams does, and without the throttles of
outer joins and final results, which go by the clock of the machine.
"""

from collections.abc import Mapping

CACHE_BYTES = 10 * 1024 * 1024

OLD_VALUES_OF_NEW_KEYS = (
    "The first change of an aggregate has no old value. With its cache, which is the default, Kafka Streams does the "
    "same. Without it, the old value is what the initializer returned (for a new sliding window: the value of another "
    "window; for a session whose only time is seen again: none), so a grouping of the table subtracts what was never "
    "added, or adds a value twice."
)
WITH_CACHE: Mapping[str, str] = {
    "count-table-of-counts": OLD_VALUES_OF_NEW_KEYS,
    "sliding-table-group-by-key": OLD_VALUES_OF_NEW_KEYS,
    "session-table-group-by-key": OLD_VALUES_OF_NEW_KEYS,
}
"""Topologies for which Kafka Streams has its cache, and why. It is emptied after every record, so that it changes no
more than this."""
WITH_ROCKSDB: Mapping[str, str] = {
    "session-on-close": "Final results of sessions with the same end are ordered by their starts and keys, as they "
    "are in Kafka's default store, and not by keys and starts as in its store in memory.",
}
"""Topologies for which Kafka Streams has its default stores, and why. For the others stores in memory do."""
LAST_VALUES_ONLY: Mapping[str, str] = {
    "session-table-group-by-key": "A cache merges the removal of a session and its new value; without one the first "
    "difference of WITH_CACHE shows.",
}
"""Topologies of which only the last value and timestamp of each key is compared, and why."""


def cache_for(topology: str) -> int:
    """The size of Kafka's cache, in bytes."""
    return CACHE_BYTES if topology in WITH_CACHE else 0


def stores_for(topology: str) -> str:
    """The name of Kafka's stores."""
    return "RocksDB" if topology in WITH_ROCKSDB else "InMemory"
