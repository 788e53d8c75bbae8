"""Key-value stores, plain and with timestamps."""

import pytest

from kaspar.streams import serdes
from kaspar.streams.errors import StreamsError
from kaspar.streams.stores.byte_store import OverlayStore
from kaspar.streams.stores.typed import (
    KeyValueStore,
    ReadOnlyTimestampedKeyValueStore,
    TimestampedKeyValueStore,
    ValueAndTimestamp,
)


@pytest.fixture
def store() -> KeyValueStore[str, int]:
    return KeyValueStore("counts", OverlayStore(None), "app-counts-changelog", serdes.text(), serdes.long())


@pytest.fixture
def timestamped() -> TimestampedKeyValueStore[str, int]:
    return TimestampedKeyValueStore("counts", OverlayStore(None), "topic", serdes.text(), serdes.long())


def test_what_is_put_is_returned(store: KeyValueStore[str, int]) -> None:
    store.put("a", 1)
    store.put("", 2)
    assert (store.get("a"), store.get(""), store.get("b")) == (1, 2, None)


def test_none_deletes(store: KeyValueStore[str, int]) -> None:
    store.put("a", 1)
    store.put("a", None)
    assert store.get("a") is None
    assert list(store.all()) == []


def test_put_if_absent_keeps_what_is_there(store: KeyValueStore[str, int]) -> None:
    assert store.put_if_absent("a", 1) is None
    assert store.put_if_absent("a", 2) == 1
    assert store.get("a") == 1


def test_delete_returns_what_was_there(store: KeyValueStore[str, int]) -> None:
    store.put_all([("a", 1), ("b", 2)])
    assert store.delete("a") == 1
    assert store.delete("a") is None
    assert list(store.all()) == [("b", 2)]


def test_a_range_includes_both_bounds(store: KeyValueStore[str, int]) -> None:
    store.put_all([(key, number) for number, key in enumerate("dbac")])
    assert [key for key, _ in store.range("b", "c")] == ["b", "c"]
    assert [key for key, _ in store.range(None, "b")] == ["a", "b"]
    assert [key for key, _ in store.reverse_range("b", None)] == ["d", "c", "b"]
    assert [key for key, _ in store.all()] == ["a", "b", "c", "d"]
    assert [key for key, _ in store.reverse_all()] == ["d", "c", "b", "a"]
    assert list(store.range("c", "b")) == []


def test_the_last_key_of_a_range_does_not_include_longer_keys(store: KeyValueStore[str, int]) -> None:
    store.put_all([("a", 1), ("a\x00", 2), ("ab", 3)])
    assert list(store.range("a", "a")) == [("a", 1)]


def test_a_prefix_scan_finds_keys_with_the_bytes_of_the_prefix() -> None:
    store: KeyValueStore[bytes, bytes] = KeyValueStore("s", OverlayStore(None), "topic", serdes.raw(), serdes.raw())
    for key in (b"\xfe\xff", b"\xff", b"\xff\xff", b"\xff\xffa", b"a"):
        store.put(key, b"")
    assert [key for key, _ in store.prefix_scan(b"\xff\xff", serdes.raw())] == [b"\xff\xff", b"\xff\xffa"]
    assert [key for key, _ in store.prefix_scan(b"\xfe\xff", serdes.raw())] == [b"\xfe\xff"]
    assert [key for key, _ in store.prefix_scan("a", serdes.text())] == [b"a"]
    assert len(list(store.prefix_scan(b"", serdes.raw()))) == 5


def test_a_null_key_is_refused_with_the_name_of_the_store(store: KeyValueStore[str | None, int]) -> None:
    with pytest.raises(StreamsError, match="store counts"):
        store.put(None, 1)
    with pytest.raises(StreamsError, match="store counts"):
        store.get(None)


def test_serdes_are_given_the_changelog_topic() -> None:
    topics = set()

    class Watched:
        def serialize(self, topic: str, value: bytes | None) -> bytes | None:
            topics.add(topic)
            return value

        def deserialize(self, topic: str, data: bytes | None) -> bytes | None:
            topics.add(topic)
            return data

    store: KeyValueStore[bytes, bytes]
    store = KeyValueStore("s", OverlayStore(None), "app-s-changelog", Watched(), Watched())
    store.put(b"a", b"b")
    assert list(store.all()) == [(b"a", store.get(b"a"))]
    assert topics == {"app-s-changelog"}


def test_a_timestamped_value_is_kept_behind_its_timestamp() -> None:
    inner = OverlayStore(None)
    store: TimestampedKeyValueStore[str, str]
    store = TimestampedKeyValueStore("s", inner, "topic", serdes.text(), serdes.text())
    store.put("a", ("value", 258))
    store.flush()
    assert inner.changes == {b"a": bytes.fromhex("0000000000000102") + b"value"}
    found = store.get("a")
    assert found == ValueAndTimestamp("value", 258)
    assert found is not None
    assert (found.value, found.timestamp) == ("value", 258)
    assert list(store.all()) == [("a", ValueAndTimestamp("value", 258))]


@pytest.mark.parametrize("nothing", [None, (None, 5)])
def test_a_timestamped_null_deletes(
    timestamped: TimestampedKeyValueStore[str, int], nothing: tuple[None, int] | None
) -> None:
    timestamped.put("a", (1, 2))
    timestamped.put("a", nothing)
    assert timestamped.get("a") is None
    assert timestamped.put_if_absent("a", ValueAndTimestamp(3, 4)) is None
    assert timestamped.delete("a") == (3, 4)


def test_a_negative_timestamp_is_kept(timestamped: TimestampedKeyValueStore[str, int]) -> None:
    timestamped.put("a", (1, -1))
    assert timestamped.get("a") == (1, -1)


def test_a_read_only_view_has_no_way_to_write() -> None:
    inner = OverlayStore(None)
    store: TimestampedKeyValueStore[str, str]
    store = TimestampedKeyValueStore("s", inner, "topic", serdes.text(), serdes.text())
    store.put("a", ("v", 1))
    store.flush()
    view: ReadOnlyTimestampedKeyValueStore[str, str]
    view = ReadOnlyTimestampedKeyValueStore("s", inner, "topic", serdes.text(), serdes.text())
    assert view.get("a") == ("v", 1)
    assert list(view.range("a", "b")) == [("a", ("v", 1))]
    assert view.approximate_num_entries() == 1
    assert not hasattr(view, "put")
