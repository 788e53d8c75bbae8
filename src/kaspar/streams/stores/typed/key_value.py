"""Key-value stores, plain and with timestamps, and their read-only views."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Generic, TypeVar

from kaspar.base.named_tuples import new_tuple
from kaspar.streams.serdes import Serde
from kaspar.streams.serdes.numbers import DOUBLE, LONG
from kaspar.streams.serdes.plain import TEXT
from kaspar.streams.stores.byte_store import ByteStore, Snapshot
from kaspar.streams.stores.typed.values import (
    TIMESTAMP_SIZE,
    ValueAndTimestamp,
    null_key,
    read_timestamp,
    write_timestamp,
)

K = TypeVar("K")
V = TypeVar("V")
Stored = TypeVar("Stored")
"""The type of returned values: the value, or a ValueAndTimestamp."""


class _Reading(Generic[K, Stored]):
    """The reading methods that do not depend on the format of values. Keys are ordered by their bytes."""

    def __init__(self, name: str, store: Snapshot, topic: str, key_serde: Serde[K], value_serde: Serde[Any]) -> None:
        """`topic` is the topic that is passed to the serdes: the changelog."""
        self.name = name
        self._store = store
        self._topic = topic
        self._get = store.get
        self._write_key = key_serde.serialize
        self._read_key: Callable[[str, bytes], Any] = key_serde.deserialize
        self._write_value = value_serde.serialize
        self._read_value: Callable[[str, bytes], Any] = value_serde.deserialize

    def _stored(self, data: bytes) -> Stored:
        raise NotImplementedError

    def get(self, key: K) -> Stored | None:
        raise NotImplementedError

    def range(self, first: K | None, last: K | None) -> Iterator[tuple[K, Stored]]:
        """The rows from `first` to `last`, both inclusive; None means no bound."""
        return self._rows(*self._bounds(first, last))

    def reverse_range(self, first: K | None, last: K | None) -> Iterator[tuple[K, Stored]]:
        return self._rows(*self._bounds(first, last), reverse=True)

    def all(self) -> Iterator[tuple[K, Stored]]:
        return self._rows(None, None)

    def reverse_all(self) -> Iterator[tuple[K, Stored]]:
        return self._rows(None, None, reverse=True)

    def prefix_scan(self, prefix: Any, prefix_serde: Serde[Any]) -> Iterator[tuple[K, Stored]]:
        """The rows whose serialized keys start with the serialized `prefix`."""
        first = prefix_serde.serialize(self._topic, prefix) or b""
        return self._rows(first, _behind_prefix(first))

    def approximate_num_entries(self) -> int:
        return self._store.approximate_num_entries()

    def _bounds(self, first: K | None, last: K | None) -> tuple[bytes | None, bytes | None]:
        last_key = self._write_key(self._topic, last)
        return self._write_key(self._topic, first), None if last_key is None else last_key + b"\x00"

    def _rows(self, first: bytes | None, last: bytes | None, *, reverse: bool = False) -> Iterator[tuple[K, Stored]]:
        rows = self._store.range(first, last, reverse=reverse)
        topic, read_key, stored = self._topic, self._read_key, self._stored
        return ((read_key(topic, key), stored(data)) for key, data in rows)


class ReadOnlyKeyValueStore(_Reading[K, V]):
    """A read-only view of a KeyValueStore, or of a snapshot of one."""

    def get(self, key: K) -> V | None:
        raw_key = self._write_key(self._topic, key)
        if raw_key is None:
            raise null_key(self.name)
        data = self._get(raw_key)
        return None if data is None else self._read_value(self._topic, data)

    def _stored(self, data: bytes) -> V:
        value: V = self._read_value(self._topic, data)
        return value


class ReadOnlyTimestampedKeyValueStore(_Reading[K, ValueAndTimestamp[V]]):
    """A read-only view of a TimestampedKeyValueStore, or of a snapshot of one, such as a global table."""

    def get(self, key: K) -> ValueAndTimestamp[V] | None:
        raw_key = self._write_key(self._topic, key)
        if raw_key is None:
            raise null_key(self.name)
        data = self._get(raw_key)
        if data is None:
            return None
        value = self._read_value(self._topic, data[TIMESTAMP_SIZE:])
        return new_tuple(ValueAndTimestamp, (value, read_timestamp(data)[0]))

    def _stored(self, data: bytes) -> ValueAndTimestamp[V]:
        return ValueAndTimestamp(self._read_value(self._topic, data[TIMESTAMP_SIZE:]), read_timestamp(data)[0])


class _Writing(_Reading[K, Stored]):
    def __init__(self, name: str, store: ByteStore, topic: str, key_serde: Serde[K], value_serde: Serde[Any]) -> None:
        super().__init__(name, store, topic, key_serde, value_serde)
        self._put = store.put

    def put(self, key: K, value: Stored | None) -> None:
        raise NotImplementedError

    def put_if_absent(self, key: K, value: Stored | None) -> Stored | None:
        """Return the existing value. If there is none, put the given one and return None."""
        present = self.get(key)
        if present is None:
            self.put(key, value)
        return present

    def put_all(self, entries: Iterable[tuple[K, Stored | None]]) -> None:
        for key, value in entries:
            self.put(key, value)

    def delete(self, key: K) -> Stored | None:
        """Delete a key. Returns its value."""
        present = self.get(key)
        self.put(key, None)
        return present


class KeyValueStore(_Writing[K, V], ReadOnlyKeyValueStore[K, V]):
    """Kafka's KeyValueStore."""

    def put(self, key: K, value: V | None) -> None:
        """Set the value of a key; None deletes the key."""
        topic = self._topic
        raw_key = self._write_key(topic, key)
        if raw_key is None:
            raise null_key(self.name)
        self._put(raw_key, self._write_value(topic, value))


class TimestampedKeyValueStore(_Writing[K, ValueAndTimestamp[V]], ReadOnlyTimestampedKeyValueStore[K, V]):
    """Kafka's TimestampedKeyValueStore: the store of a table.

    If keys are text and values are numbers or text, values that were read or put are cached as objects, because a join
    reads and an aggregate reads and writes one for every record. flush() writes each changed value once, and every scan
    flushes first.
    """

    def __init__(self, name: str, store: ByteStore, topic: str, key_serde: Serde[K], value_serde: Serde[Any]) -> None:
        super().__init__(name, store, topic, key_serde, value_serde)
        self._known: dict[Any, ValueAndTimestamp[V]] = {}
        self._unwritten: dict[Any, ValueAndTimestamp[V]] = {}
        keys: object = key_serde
        self._is_kept = KEPT_VALUES.get(value_serde) if keys is TEXT else None

    def get(self, key: K) -> ValueAndTimestamp[V] | None:
        if key.__class__ is not str:  # other keys may not be hashable
            return super().get(key)
        found = self._known.get(key)
        if found is None:
            found = super().get(key)
            if found is not None and self._is_kept is not None:
                self._known[key] = found
        return found

    def put(self, key: K, value: tuple[V | None, int] | None) -> None:
        """Set the value of a key to any pair of value and timestamp. None, or a pair with the value None, deletes the
        key (ValueAndTimestamp.make)."""
        is_kept, text = self._is_kept, key.__class__ is str
        if is_kept is not None and text:
            if value is not None and is_kept(value[0]) and str.isascii(key):  # type: ignore[arg-type]  # it is a str
                self._known[key] = self._unwritten[key] = new_tuple(ValueAndTimestamp, value)
                return
            self._known.pop(key, None)
            self._unwritten.pop(key, None)
        self._write(key, value)

    def flush(self) -> None:
        """Write all changed values to the ByteStore."""
        unwritten, self._unwritten = self._unwritten, {}
        for key, value in unwritten.items():
            self._write(key, value)

    def approximate_num_entries(self) -> int:
        self.flush()
        return super().approximate_num_entries()

    def _rows(
        self, first: bytes | None, last: bytes | None, *, reverse: bool = False
    ) -> Iterator[tuple[K, ValueAndTimestamp[V]]]:
        self.flush()
        return super()._rows(first, last, reverse=reverse)

    def _write(self, key: K, value: tuple[V | None, int] | None) -> None:
        topic = self._topic
        raw_key = self._write_key(topic, key)
        if raw_key is None:
            raise null_key(self.name)
        if value is not None:
            raw_value = self._write_value(topic, value[0])
            if raw_value is not None:
                self._put(raw_key, write_timestamp(value[1]) + raw_value)
                return
        self._put(raw_key, None)


_LOWEST: Final = -(1 << 63)


def _is_long(value: object) -> bool:
    return type(value) is int and _LOWEST <= value < -_LOWEST


def _is_text(value: object) -> bool:
    return type(value) is str


def _is_double(value: object) -> bool:
    return type(value) is float


KEPT_VALUES: Final[Mapping[object, Callable[[object], bool]]] = {LONG: _is_long, TEXT: _is_text, DOUBLE: _is_double}
"""The serdes of cached values, which must be immutable and always serializable, with a check for such values."""


def _behind_prefix(prefix: bytes) -> bytes | None:
    """The first key that is larger than all keys with the prefix; None if there is none."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes((stem[-1] + 1,)) if stem else None
