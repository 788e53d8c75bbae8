"""State stores: ordered maps of bytes, Kafka Streams' typed stores over them, and their state on disk.

byte_store.py       what a task reads and changes
key_schema.py       the keys of window and session stores, byte-equal to Java's
segments.py         how they are grouped by time, so that they expire together
typed/              the stores that programs use
time_ordered.py     the buffer of a suppression
spec.py, kinds.py   the declaration of a store, and what depends on its kind
changelog.py        reads changelog topics
disk/               the state of a partition in LMDB, a cache of the changelogs
"""

from kaspar.streams.stores.declared import key_value, session, window

__all__ = ["key_value", "session", "window"]
