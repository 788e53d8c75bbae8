"""Plain values of a table are written to the store of bytes once, when somebody needs the bytes."""

import pytest

from kaspar.streams import serdes
from kaspar.streams.serdes import SerializationError
from kaspar.streams.stores.byte_store import OverlayStore
from kaspar.streams.stores.typed import TimestampedKeyValueStore, ValueAndTimestamp

Counts = TimestampedKeyValueStore[str, int]


@pytest.fixture
def bytes_store() -> OverlayStore:
    return OverlayStore(None)


@pytest.fixture
def counts(bytes_store: OverlayStore) -> Counts:
    return TimestampedKeyValueStore("counts", bytes_store, "changelog", serdes.text(), serdes.long())


def test_a_value_is_there_before_it_is_written(counts: Counts, bytes_store: OverlayStore) -> None:
    counts.put("a", (1, 10))
    assert counts.get("a") == ValueAndTimestamp(1, 10)
    assert bytes_store.changes == {}
    counts.flush()
    assert list(bytes_store.changes) == [b"a"]
    assert counts.get("a") == ValueAndTimestamp(1, 10)


def test_a_scan_sees_what_is_not_written(counts: Counts) -> None:
    counts.put("b", (2, 0))
    counts.put("a", (1, 0))
    assert [key for key, _ in counts.all()] == ["a", "b"]
    assert counts.approximate_num_entries() == 2


def test_a_deletion_takes_back_what_is_not_written(counts: Counts) -> None:
    counts.put("a", (1, 0))
    counts.put("a", None)
    assert counts.get("a") is None
    counts.flush()
    assert list(counts.all()) == []


def test_keys_whose_bytes_may_be_those_of_others_are_written_at_once(counts: Counts) -> None:
    counts.put("\ud800", (1, 0))  # written as a question mark, as Java does
    assert counts.get("?") == ValueAndTimestamp(1, 0)
    counts.put("?", (2, 0))
    counts.flush()
    assert counts.get("\ud800") == ValueAndTimestamp(2, 0)


@pytest.mark.parametrize("value", ["text", 1 << 63])
def test_a_value_that_cannot_be_written_is_refused_at_once(counts: Counts, value: int) -> None:
    counts.put("a", (1, 0))
    with pytest.raises(SerializationError):
        counts.put("a", (value, 1))


def test_values_that_can_change_are_written_at_once(bytes_store: OverlayStore) -> None:
    lists: TimestampedKeyValueStore[str, list[int]]
    lists = TimestampedKeyValueStore("lists", bytes_store, "changelog", serdes.text(), serdes.json())
    given = [1]
    lists.put("a", (given, 0))
    given.append(2)
    assert lists.get("a") == ValueAndTimestamp([1], 0)
