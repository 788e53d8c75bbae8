"""The stores that programs and operators use: Kafka Streams' stores, with its names in Python's way.

They turn keys and values into bytes by their serdes, and read and write a ByteStore. Iterators are snapshots: what is
put while one is used does not show in it.
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
