"""The stores that programs and operators use: Kafka Streams' stores, with its names in snake case.

They serialize keys and values with their serdes, and read and write a ByteStore. Iterators are snapshots: they do not
show later changes.
"""

from kaspar.streams.stores.typed.key_value import (
    KeyValueStore,
    ReadOnlyKeyValueStore,
    ReadOnlyTimestampedKeyValueStore,
    TimestampedKeyValueStore,
)
from kaspar.streams.stores.typed.session import SessionStore
from kaspar.streams.stores.typed.values import ValueAndTimestamp
from kaspar.streams.stores.typed.window import TimestampedWindowStore, WindowStore

__all__ = [
    "KeyValueStore",
    "ReadOnlyKeyValueStore",
    "ReadOnlyTimestampedKeyValueStore",
    "SessionStore",
    "TimestampedKeyValueStore",
    "TimestampedWindowStore",
    "ValueAndTimestamp",
    "WindowStore",
]
