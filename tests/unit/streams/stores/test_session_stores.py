"""Session stores: which sessions are found, and when they expire."""

import pytest

from kaspar.streams import serdes
from kaspar.streams.errors import StreamsError
from kaspar.streams.stores.byte_store import OverlayStore
from kaspar.streams.stores.typed import SessionStore
from kaspar.streams.windows import Window, Windowed
from tests.unit.streams.stores.store_task import Clock

RETENTION_MS = 240_000
SEGMENT_MS = 120_000


def session_store(inner: OverlayStore | None = None) -> SessionStore[str, str]:
    return SessionStore(
        "s",
        inner or OverlayStore(None),
        "topic",
        serdes.text(),
        serdes.text(),
        retention_ms=RETENTION_MS,
        time=Clock(),
    )


def session(key: str, start: int, end: int) -> Windowed[str]:
    return Windowed(key, Window(start, end))


def test_a_session_is_kept_in_the_segment_of_its_end() -> None:
    inner = OverlayStore(None)
    session_store(inner).put(session("k", 5, SEGMENT_MS), "v")
    key = bytes.fromhex("0000000000000001") + b"k" + SEGMENT_MS.to_bytes(8) + (5).to_bytes(8)
    assert inner.changes == {key: b"v"}


def test_sessions_are_found_that_end_late_enough_and_start_early_enough() -> None:
    store = session_store()
    for start, end in [(0, 10), (20, 30), (40, 50), (60, SEGMENT_MS + 5)]:
        store.put(session("a", start, end), f"{start}-{end}")
    store.put(session("b", 20, 30), "other")
    assert [value for _, value in store.find_sessions("a", 30, 40)] == ["20-30", "40-50"]
    assert [value for _, value in store.find_sessions("a", 31, 39)] == []
    assert [value for _, value in store.find_sessions("a", 11, 100)] == ["20-30", "40-50", f"60-{SEGMENT_MS + 5}"]
    assert [value for _, value in store.backward_find_sessions("a", 0, 20)] == ["20-30", "0-10"]
    assert list(store.find_sessions("a", 0, -1)) == []
    assert next(store.find_sessions("a", 10, 0)) == (session("a", 0, 10), "0-10")


def test_one_session_is_fetched_by_its_start_and_end() -> None:
    store = session_store()
    store.put(session("a", 0, 10), "v")
    assert store.fetch_session("a", 0, 10) == "v"
    assert store.fetch_session("a", 0, 11) is None


def test_a_removed_session_is_gone() -> None:
    store = session_store()
    store.put(session("a", 0, 10), "v")
    store.put(session("a", 20, 30), "w")
    store.remove(session("a", 0, 10))
    store.put(session("a", 20, 30), None)
    assert list(store.fetch("a")) == []


def test_the_sessions_of_a_key_come_by_their_ends() -> None:
    store = session_store()
    for start, end in [(20, 30), (0, SEGMENT_MS), (0, 10), (5, 30)]:
        store.put(session("a", start, end), "v")
    windows = [(0, 10), (5, 30), (20, 30), (0, SEGMENT_MS)]
    assert [window for (_, window), _ in store.fetch("a")] == windows
    assert [window for (_, window), _ in store.backward_fetch("a")] == windows[::-1]


def test_longer_keys_that_start_in_the_same_way_are_not_found() -> None:
    store = SessionStore(
        "s", OverlayStore(None), "t", serdes.raw(), serdes.raw(), retention_ms=RETENTION_MS, time=Clock()
    )
    longer = b"a" + (5).to_bytes(8)
    store.put(Windowed(b"a", Window(0, 0)), b"short")
    store.put(Windowed(longer, Window(3, 4)), b"long")
    store.put(Windowed(b"a", Window(9, 9)), b"short")
    assert [value for _, value in store.fetch(b"a")] == [b"short", b"short"]
    assert [value for _, value in store.find_sessions(longer, 0, 10)] == [b"long"]


def test_a_key_range_includes_both_keys() -> None:
    store = session_store()
    for key in ("a", "b", "bb", "c"):
        store.put(session(key, 0, 10), key)
        store.put(session(key, 50, 60), key)
    assert [value for _, value in store.find_sessions_range("a", "b", 0, 20)] == ["a", "b"]
    assert [value for _, value in store.backward_find_sessions_range("b", None, 11, 60)] == ["c", "bb", "b"]
    assert [value for _, value in store.fetch_range("bb", "c")] == ["bb", "bb", "c", "c"]
    assert [value for _, value in store.backward_fetch_range(None, "a")] == ["a", "a"]


def test_a_session_that_ended_before_the_retention_is_not_returned() -> None:
    store = session_store()
    store.put(session("a", 0, 0), "first")
    store.put(session("a", 0, 1), "second")
    store.put(session("a", 0, RETENTION_MS), "last")
    assert [value for _, value in store.fetch("a")] == ["second", "last"]
    assert [value for _, value in store.fetch_range(None, None)] == ["second", "last"]
    assert store.fetch_session("a", 0, 0) is None
    assert store.fetch_session("a", 0, 1) == "second"


def test_expired_segments_are_deleted_and_late_sessions_ignored() -> None:
    inner = OverlayStore(None)
    store = session_store(inner)
    store.put(session("a", 0, SEGMENT_MS - 1), "v")
    store.put(session("b", 0, SEGMENT_MS + RETENTION_MS), "v")
    store.put(session("late", 0, SEGMENT_MS - 1), "v")
    assert len(inner.changes) == 1
    assert store.expired_records == 1


def test_a_removal_advances_the_stream_time() -> None:
    store = session_store()
    store.put(session("a", 0, 0), "v")
    store.remove(session("b", 0, RETENTION_MS))
    assert list(store.fetch("a")) == []


def test_sessions_may_be_merged_while_they_are_iterated() -> None:
    store = session_store()
    for start in (0, 20, SEGMENT_MS):
        store.put(session("a", start, start + 5), "v")
    seen = []
    for key, _ in store.find_sessions("a", 0, 2 * SEGMENT_MS):
        seen.append(key.window.start)
        store.remove(key)
        store.put(session("a", 0, key.window.end + 1), "merged")
    assert seen == [0, 20, SEGMENT_MS]


def test_a_null_key_is_refused() -> None:
    key: str = None  # type: ignore[assignment]
    with pytest.raises(StreamsError, match="store s"):
        session_store().fetch(key)
