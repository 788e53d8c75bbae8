"""State stores: ordered maps of bytes, Kafka Streams' typed stores over them, and their state on disk.

byte_store.py       ordered maps of bytes, which tasks read and change
key_schema.py       the keys of window and session stores, byte-equal to Java's
segments.py         groups entries of these stores by time, so that they expire together
typed/              the typed stores that programs use
time_ordered.py     the buffer of a suppression
declared.py         the declarations of stores in programs
spec.py, kinds.py   the specification of a store, and its kinds
changelog.py        reads changelog topics
disk/               the state of a partition in LMDB, a cache of the changelogs
"""

from kaspar.streams.stores.declared import key_value, session, window

__all__ = ["key_value", "session", "window"]
