"""Window stores: segments, retention, duplicates, and keys of any length."""

import pytest

from kaspar.streams import serdes
from kaspar.streams.errors import StreamsError
from kaspar.streams.stores.byte_store import OverlayStore
from kaspar.streams.stores.typed import TimestampedWindowStore, WindowStore
from kaspar.streams.windows import Window, Windowed
from tests.unit.streams.stores.store_task import Clock

RETENTION_MS = 240_000
SEGMENT_MS = 120_000


def window_store(inner: OverlayStore | None = None, *, retain_duplicates: bool = False) -> WindowStore[str, str]:
    return WindowStore(
        "w",
        inner or OverlayStore(None),
        "topic",
        serdes.text(),
        serdes.text(),
        retention_ms=RETENTION_MS,
        window_size_ms=10,
        time=Clock(),
        sequence=Clock() if retain_duplicates else None,
    )


def test_an_entry_is_kept_under_segment_key_start_and_sequence_number() -> None:
    inner = OverlayStore(None)
    window_store(inner).put("k", "v", 2 * SEGMENT_MS + 5)
    assert inner.changes == {
        bytes.fromhex("0000000000000002") + b"k" + (2 * SEGMENT_MS + 5).to_bytes(8) + bytes(4): b"v"
    }


def test_a_window_is_fetched_by_its_start() -> None:
    store = window_store()
    store.put("a", "1", 10)
    store.put("a", "2", 20)
    assert (store.fetch("a", 10), store.fetch("a", 15), store.fetch("b", 10)) == ("1", None, None)
    store.put("a", None, 10)
    assert store.fetch("a", 10) is None


def test_the_windows_of_a_key_are_fetched_by_their_starts() -> None:
    store = window_store()
    for start in (0, 10, SEGMENT_MS - 1, SEGMENT_MS, 2 * SEGMENT_MS - 1):
        store.put("a", str(start), start)
        store.put("b", "other", start)
    starts = [start for start, _ in store.fetch("a", 10, SEGMENT_MS)]
    assert starts == [10, SEGMENT_MS - 1, SEGMENT_MS]
    assert [start for start, _ in store.backward_fetch("a", 10, SEGMENT_MS)] == starts[::-1]
    assert list(store.fetch("a", 11, 12)) == []
    assert list(store.fetch("a", 12, 11)) == []
    assert list(store.fetch("a", -20, -10)) == []


def test_a_fetch_does_not_return_longer_keys_that_start_in_the_same_way() -> None:
    inner = OverlayStore(None)
    store: WindowStore[bytes, bytes] = WindowStore(
        "w", inner, "t", serdes.raw(), serdes.raw(), retention_ms=RETENTION_MS, window_size_ms=1, time=Clock()
    )
    longer = b"a" + (50).to_bytes(8)  # between the key's entries for the times 0 and 100
    store.put(b"a", b"short", 0)
    store.put(longer, b"long", 60)
    store.put(b"a", b"short", 100)
    assert list(store.fetch(b"a", 0, 100)) == [(0, b"short"), (100, b"short")]
    assert list(store.fetch(longer, 0, 100)) == [(60, b"long")]


def test_all_windows_come_by_segment_then_key_then_start() -> None:
    store = window_store()
    for key, start in [("b", 0), ("a", 20), ("a", 10), ("a", SEGMENT_MS), ("b", 10)]:
        store.put(key, "v", start)
    expected = [("a", 10), ("a", 20), ("b", 0), ("b", 10), ("a", SEGMENT_MS)]
    assert [(key, window.start) for (key, window), _ in store.all()] == expected
    assert [(key, window.start) for (key, window), _ in store.backward_all()] == expected[::-1]
    assert [(key, window.start) for (key, window), _ in store.fetch_all(10, 20)] == [("a", 10), ("a", 20), ("b", 10)]
    assert [key for (key, _), _ in store.backward_fetch_all(0, 10)] == ["b", "b", "a"]
    assert next(store.all()) == (Windowed("a", Window(10, 20)), "v")


def test_a_key_range_includes_both_keys() -> None:
    store = window_store()
    for key in ("a", "b", "bb", "c", "d"):
        store.put(key, "v", 10)
        store.put(key, "v", 100)
    assert [key for (key, _), _ in store.fetch_range("b", "c", 0, 50)] == ["b", "bb", "c"]
    assert [key for (key, _), _ in store.backward_fetch_range(None, "b", 0, 50)] == ["b", "a"]
    assert [key for (key, _), _ in store.fetch_range("c", None, 0, 50)] == ["c", "d"]


def test_what_is_older_than_the_retention_is_not_returned() -> None:
    store = window_store()
    store.put("a", "first", 0)
    store.put("a", "second", 1)
    store.put("a", "last", RETENTION_MS)  # 0 is now older than the retention, though its segment lives
    assert store.fetch("a", 0) is None
    assert store.fetch("a", 1) == "second"
    assert [start for start, _ in store.fetch("a", 0, RETENTION_MS)] == [1, RETENTION_MS]
    assert [window.start for (_, window), _ in store.all()] == [1, RETENTION_MS]
    assert [window.start for (_, window), _ in store.fetch_all(0, 1)] == [1]


def test_a_segment_is_deleted_when_all_of_it_has_expired() -> None:
    inner = OverlayStore(None)
    store = window_store(inner)
    store.put("a", "v", SEGMENT_MS - 1)
    store.put("a", "v", SEGMENT_MS + RETENTION_MS - 1)
    assert len(inner.changes) == 2
    store.put("b", "v", SEGMENT_MS + RETENTION_MS)
    assert len(inner.changes) == 2
    assert [key for (key, _), _ in store.all()] == ["a", "b"]


def test_a_put_into_an_expired_segment_is_ignored_and_counted() -> None:
    inner = OverlayStore(None)
    store = window_store(inner)
    store.put("a", "v", SEGMENT_MS + RETENTION_MS)
    store.put("late", "v", SEGMENT_MS - 1)
    assert len(inner.changes) == 1
    assert store.expired_records == 1
    store.put("late", "v", SEGMENT_MS)
    assert store.expired_records == 1


def test_the_stream_time_is_that_of_the_task_before() -> None:
    inner = OverlayStore(None)
    time = Clock(RETENTION_MS + SEGMENT_MS)
    store: TimestampedWindowStore[str, str] = TimestampedWindowStore(
        "w", inner, "t", serdes.text(), serdes.text(), retention_ms=RETENTION_MS, window_size_ms=1, time=time
    )
    store.put("late", ("v", 1), SEGMENT_MS - 1)
    assert not inner.changes
    store.put("a", ("v", 1), RETENTION_MS + SEGMENT_MS + 7)
    assert time.now == RETENTION_MS + SEGMENT_MS + 7


def test_a_segment_is_at_least_a_minute() -> None:
    inner = OverlayStore(None)
    store: WindowStore[str, str] = WindowStore(
        "w", inner, "t", serdes.text(), serdes.text(), retention_ms=1000, window_size_ms=1, time=Clock()
    )
    store.put("a", "v", 59_999)
    store.put("a", "v", 60_000)
    assert sorted(key[:8] for key in inner.changes) == [bytes(8), bytes(7) + b"\x01"]


def test_duplicates_are_retained_in_the_order_of_their_arrival() -> None:
    store = window_store(retain_duplicates=True)
    for value in ("first", "second", "first"):
        store.put("a", value, 10)
    assert list(store.fetch("a", 0, 20)) == [(10, "first"), (10, "second"), (10, "first")]


def test_a_null_is_ignored_where_duplicates_are_retained() -> None:
    inner = OverlayStore(None)
    store = window_store(inner, retain_duplicates=True)
    store.put("a", "v", 10)
    store.put("a", None, 10)
    assert list(store.fetch("a", 0, 20)) == [(10, "v")]


def test_sequence_numbers_start_with_1_and_go_on_in_the_next_task() -> None:
    inner, sequence = OverlayStore(None), Clock()
    for _ in range(2):
        store: WindowStore[str, str] = WindowStore(
            "w",
            inner,
            "t",
            serdes.text(),
            serdes.text(),
            retention_ms=RETENTION_MS,
            window_size_ms=1,
            time=Clock(),
            sequence=sequence,
        )
        store.put("a", "v", 0)
    assert sorted(int.from_bytes(key[-4:]) for key in inner.changes) == [1, 2]


def test_timestamped_windows_return_value_and_timestamp() -> None:
    inner = OverlayStore(None)
    store: TimestampedWindowStore[str, int] = TimestampedWindowStore(
        "w", inner, "t", serdes.text(), serdes.long(), retention_ms=RETENTION_MS, window_size_ms=10, time=Clock()
    )
    store.put("a", (7, 12), 10)
    assert store.fetch("a", 10) == (7, 12)
    assert list(store.fetch("a", 0, 10)) == [(10, (7, 12))]
    assert list(store.all()) == [(Windowed("a", Window(10, 20)), (7, 12))]
    store.put("a", (None, 13), 10)
    assert store.fetch("a", 10) is None


def test_puts_while_iterating_do_not_show() -> None:
    store = window_store()
    for start in (0, SEGMENT_MS):
        store.put("a", "v", start)
    seen = []
    for start, _ in store.fetch("a", 0, 2 * SEGMENT_MS):
        seen.append(start)
        store.put("a", "new", start + 1)
    assert seen == [0, SEGMENT_MS]


def test_a_null_key_is_refused() -> None:
    store: WindowStore[bytes, bytes] = WindowStore(
        "w", OverlayStore(None), "t", serdes.raw(), serdes.raw(), retention_ms=1, window_size_ms=1, time=Clock()
    )
    key: bytes = None  # type: ignore[assignment]
    for call in (lambda: store.put(key, b"v", 0), lambda: store.fetch(key, 0), lambda: store.fetch(key, 0, 1)):
        with pytest.raises(StreamsError, match="store w"):
            call()
