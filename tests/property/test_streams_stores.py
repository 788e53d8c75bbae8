"""Every kind of store beside a model: in memory, and on disk, where micro-batches end in between.

A batch on disk ends as one of a program does: with changelog records and a delta. The next one finds the delta, or has
to read the changelog from where LMDB is, or everything from the beginning.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kaspar.streams import serdes
from kaspar.streams.stores import kinds
from kaspar.streams.stores.byte_store import OverlayStore
from kaspar.streams.stores.disk.deltas import delta_of, write_delta
from kaspar.streams.stores.disk.ensure import ensure
from kaspar.streams.stores.disk.opened import close_environment
from kaspar.streams.stores.spec import StoreKind, StoreSpec
from kaspar.streams.stores.typed import ValueAndTimestamp
from kaspar.streams.windows import Window, Windowed
from tests.property.store_models import KeyValueModel, SegmentedModel
from tests.unit.streams.stores.disk.changelog_in_memory import ChangelogInMemory
from tests.unit.streams.stores.store_task import StoreTask, task_with

RETENTION_MS = 150_000
WINDOW_SIZE_MS = 1000
MAX_TIME = (1 << 63) - 1

LONG = b"long" * 200
keys = st.sampled_from(
    [
        *(b"", b"\x00", b"a", b"a\x00", b"a" + (70_000).to_bytes(8), b"aa", b"b", b"\xff", b"\xff\xff"),
        *(LONG, LONG + b"a", LONG + b"\x00", LONG[:480], LONG[:493], LONG[:494], LONG[:500], LONG[:509]),
    ]
)
bounds = st.none() | keys
times = st.sampled_from([0, 1, 2, 59_999, 60_000, 74_999, 75_000, 150_000, 150_001, 225_000, 300_000, 449_999, 600_000])
values = st.none() | st.binary(max_size=3)
endings = st.sampled_from(["delta", "changelog", "rebuild"])


class InMemory:
    """One store for all batches, as in the test driver."""

    def __init__(self, spec: StoreSpec) -> None:
        self.bytes = OverlayStore(None)
        self.typed = spec.open(self.bytes, StoreTask())

    def end_batch(self, ending: str) -> None:
        pass


class OnDisk:
    """A version also has the number of its batch, so that one without changelog records is a version, too."""

    def __init__(self, spec: StoreSpec, directory: Path) -> None:
        self._spec = spec
        self._directory = directory
        self._changelog = ChangelogInMemory()
        self._batch = 0
        self._begin()

    def _version(self) -> dict[str, int]:
        return {**self._changelog.ends([self._spec]), "batch": self._batch}

    def _begin(self) -> None:
        self._state = ensure(self._directory, 0, [self._spec], self._version(), self._changelog)
        self._task = task_with(dict(self._state.meta))
        self.bytes = OverlayStore(self._state.snapshot(self._spec.name))
        self.typed = self._spec.open(self.bytes, self._task)

    def end_batch(self, ending: str) -> None:
        if hasattr(self.typed, "flush"):
            self.typed.flush()
        stores, meta, parent = {self._spec.name: self.bytes}, self._task.meta(), self._version()
        self._changelog.write([self._spec], stores, meta)
        self._batch += 1
        self.close()
        if ending == "delta":
            write_delta(self._directory, delta_of(parent, self._version(), meta, stores))
        elif ending == "rebuild":
            close_environment(self._directory, sync=False)
            shutil.rmtree(self._directory)
            self._changelog.compact(self._spec.name)
        self._begin()

    def close(self) -> None:
        self._state.close()


@contextmanager
def stores(spec: StoreSpec) -> Iterator[list[InMemory | OnDisk]]:
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "0"
        on_disk = OnDisk(spec, directory)
        try:
            yield [InMemory(spec), on_disk]
        finally:
            on_disk.close()
            close_environment(directory, sync=False)


def check(found: list[InMemory | OnDisk], method: str, arguments: tuple[Any, ...], expected: Any) -> None:
    for store in found:
        result = getattr(store.typed, method)(*arguments)
        assert (list(result) if isinstance(result, Iterator) else result) == expected


# --- key-value stores -------------------------------------------------------------------------------------------------

key_value_steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), keys, values),
        st.tuples(st.just("put_if_absent"), keys, values),
        st.tuples(st.just("delete"), keys),
        st.tuples(st.just("get"), keys),
        st.tuples(st.just("range"), bounds, bounds),
        st.tuples(st.just("prefix"), keys),
        st.tuples(st.just("end"), endings),
    ),
    max_size=40,
)


@settings(deadline=None)
@given(key_value_steps)
def test_a_key_value_store_is_a_map(steps: list[Any]) -> None:
    run_key_value(StoreSpec("s", kinds.KEY_VALUE, serdes.raw(), serdes.raw()), steps, lambda value: value)


@settings(deadline=None)
@given(key_value_steps)
def test_a_timestamped_key_value_store_is_a_map(steps: list[Any]) -> None:
    spec = StoreSpec("s", kinds.TIMESTAMPED_KEY_VALUE, serdes.raw(), serdes.raw())
    run_key_value(spec, steps, lambda value: None if value is None else ValueAndTimestamp(value, len(value)))


def run_key_value(spec: StoreSpec, steps: list[Any], stored: Callable[[Any], Any]) -> None:
    model = KeyValueModel()
    with stores(spec) as found:
        for step in [*steps, ("range", None, None), ("end", "changelog"), ("range", None, None)]:
            match step:
                case "put", key, value:
                    check(
                        found,
                        "put",
                        (
                            key,
                            stored(value),
                        ),
                        None,
                    )
                    model.put(key, stored(value))
                case "put_if_absent", key, value:
                    check(
                        found,
                        "put_if_absent",
                        (
                            key,
                            stored(value),
                        ),
                        model.get(key),
                    )
                    if model.get(key) is None:
                        model.put(key, stored(value))
                case "delete", key:
                    check(found, "delete", (key,), model.get(key))
                    model.put(key, None)
                case "get", key:
                    check(found, "get", (key,), model.get(key))
                case "range", first, last:
                    check(
                        found,
                        "range",
                        (
                            first,
                            last,
                        ),
                        model.range(first, last),
                    )
                    check(
                        found,
                        "reverse_range",
                        (
                            first,
                            last,
                        ),
                        model.range(first, last)[::-1],
                    )
                case "prefix", prefix:
                    expected = [row for row in model.range(None, None) if row[0].startswith(prefix)]
                    check(
                        found,
                        "prefix_scan",
                        (
                            prefix,
                            serdes.raw(),
                        ),
                        expected,
                    )
                case "end", ending:
                    for store in found:
                        store.end_batch(ending)


# --- window stores ----------------------------------------------------------------------------------------------------

window_steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), keys, times, values),
        st.tuples(st.just("get"), keys, times),
        st.tuples(st.just("fetch"), keys, times, times),
        st.tuples(st.just("fetch_range"), bounds, bounds, times, times),
        st.tuples(st.just("end"), endings),
    ),
    max_size=40,
)


def window_spec(kind: StoreKind, *, retain_duplicates: bool = False) -> StoreSpec:
    return StoreSpec(
        "s",
        kind,
        serdes.raw(),
        serdes.raw(),
        retention_ms=RETENTION_MS,
        window_size_ms=WINDOW_SIZE_MS,
        retain_duplicates=retain_duplicates,
    )


@settings(deadline=None)
@given(window_steps)
def test_a_window_store_keeps_windows_until_they_expire(steps: list[Any]) -> None:
    run_windows(window_spec(kinds.WINDOW), steps, lambda value: value)


@settings(deadline=None)
@given(window_steps)
def test_a_timestamped_window_store_keeps_windows_until_they_expire(steps: list[Any]) -> None:
    run_windows(
        window_spec(kinds.TIMESTAMPED_WINDOW),
        steps,
        lambda value: None if value is None else ValueAndTimestamp(value, len(value)),
    )


@settings(deadline=None)
@given(window_steps)
def test_a_window_store_retains_duplicates(steps: list[Any]) -> None:
    run_windows(window_spec(kinds.WINDOW, retain_duplicates=True), steps, lambda value: value)


def run_windows(spec: StoreSpec, steps: list[Any], stored: Callable[[Any], Any]) -> None:
    model = SegmentedModel(RETENTION_MS)
    sequence_number = 0
    with stores(spec) as found:
        everything = ("fetch_range", None, None, 0, MAX_TIME)
        for step in [*steps, everything, ("end", "changelog"), everything]:
            match step:
                case "put", key, time, value:
                    check(
                        found,
                        "put",
                        (
                            key,
                            stored(value),
                            time,
                        ),
                        None,
                    )
                    if spec.retain_duplicates and value is None:
                        continue
                    sequence_number += spec.retain_duplicates
                    model.put(key, time, sequence_number, stored(value))
                case "get", key, time:
                    check(
                        found,
                        "fetch",
                        (
                            key,
                            time,
                        ),
                        model.get(key, time, 0),
                    )
                case "fetch", key, first, last:
                    expected = [
                        (time, value)
                        for entry_key, time, _, value in model.visible()
                        if entry_key == key and first <= time <= last
                    ]
                    check(
                        found,
                        "fetch",
                        (
                            key,
                            first,
                            last,
                        ),
                        expected,
                    )
                    check(
                        found,
                        "backward_fetch",
                        (
                            key,
                            first,
                            last,
                        ),
                        expected[::-1],
                    )
                case "fetch_range", key_from, key_to, first, last:
                    windowed = [
                        (Windowed(key, Window(time, time + WINDOW_SIZE_MS)), value)
                        for key, time, _, value in model.visible()
                        if first <= time <= last and is_within(key, key_from, key_to)
                    ]
                    check(
                        found,
                        "fetch_range",
                        (
                            key_from,
                            key_to,
                            first,
                            last,
                        ),
                        windowed,
                    )
                    check(
                        found,
                        "backward_fetch_range",
                        (
                            key_from,
                            key_to,
                            first,
                            last,
                        ),
                        windowed[::-1],
                    )
                case "end", ending:
                    for store in found:
                        store.end_batch(ending)


def is_within(key: bytes, first: bytes | None, last: bytes | None) -> bool:
    return (first is None or key >= first) and (last is None or key <= last)


# --- session stores ---------------------------------------------------------------------------------------------------

session_steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), keys, times, times, values),
        st.tuples(st.just("get"), keys, times, times),
        st.tuples(st.just("find"), keys, times, times),
        st.tuples(st.just("find_range"), bounds, bounds, times, times),
        st.tuples(st.just("end"), endings),
    ),
    max_size=40,
)


@settings(deadline=None)
@given(session_steps)
def test_a_session_store_keeps_sessions_until_they_expire(steps: list[Any]) -> None:
    spec = StoreSpec("s", kinds.SESSION, serdes.raw(), serdes.raw(), retention_ms=RETENTION_MS)
    model = SegmentedModel(RETENTION_MS)

    def sessions(earliest_end: int, latest_start: int) -> list[tuple[Windowed[bytes], bytes]]:
        return [
            (Windowed(key, Window(start, end)), value)
            for key, end, start, value in model.visible()
            if end >= earliest_end and start <= latest_start
        ]

    with stores(spec) as found:
        everything = ("find_range", None, None, 0, MAX_TIME)
        for step in [*steps, everything, ("end", "changelog"), everything]:
            match step:
                case "put", key, one, other, value:
                    start, end = min(one, other), max(one, other)
                    check(
                        found,
                        "put",
                        (
                            Windowed(key, Window(start, end)),
                            value,
                        ),
                        None,
                    )
                    model.put(key, end, start, value)
                case "get", key, one, other:
                    start, end = min(one, other), max(one, other)
                    check(
                        found,
                        "fetch_session",
                        (
                            key,
                            start,
                            end,
                        ),
                        model.get(key, end, start),
                    )
                case "find", key, first, last:
                    expected = [each for each in sessions(first, last) if each[0].key == key]
                    check(
                        found,
                        "find_sessions",
                        (
                            key,
                            first,
                            last,
                        ),
                        expected,
                    )
                    check(
                        found,
                        "backward_find_sessions",
                        (
                            key,
                            first,
                            last,
                        ),
                        expected[::-1],
                    )
                case "find_range", key_from, key_to, first, last:
                    expected = [each for each in sessions(first, last) if is_within(each[0].key, key_from, key_to)]
                    check(
                        found,
                        "find_sessions_range",
                        (
                            key_from,
                            key_to,
                            first,
                            last,
                        ),
                        expected,
                    )
                    check(found, "backward_find_sessions_range", (key_from, key_to, first, last), expected[::-1])
                case "end", ending:
                    for store in found:
                        store.end_batch(ending)


# --- bytes ------------------------------------------------------------------------------------------------------------

byte_steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), keys, values),
        st.tuples(st.just("delete_range"), bounds, bounds),
        st.tuples(st.just("range"), bounds, bounds),
        st.tuples(st.just("end")),
    ),
    max_size=40,
)


@settings(deadline=None)
@given(byte_steps)
def test_a_byte_store_is_a_map_also_when_ranges_are_deleted(steps: list[Any]) -> None:
    model: dict[bytes, bytes] = {}
    spec = StoreSpec("s", kinds.KEY_VALUE, serdes.raw(), serdes.raw())
    with stores(spec) as found:
        for step in [*steps, ("range", None, None), ("end",), ("range", None, None)]:
            match step:
                case "put", key, value:
                    for store in found:
                        store.bytes.put(key, value)
                    model = {k: v for k, v in model.items() if k != key} | ({} if value is None else {key: value})
                case "delete_range", first, last:
                    for store in found:
                        store.bytes.delete_range(first, last)
                    model = {k: v for k, v in model.items() if not is_below(k, first, last)}
                case "range", first, last:
                    rows = sorted(row for row in model.items() if is_below(row[0], first, last))
                    for store in found:
                        assert list(store.bytes.range(first, last)) == rows
                        assert list(store.bytes.range(first, last, reverse=True)) == rows[::-1]
                        assert [store.bytes.get(key) for key, _ in rows] == [value for _, value in rows]
                case ("end",):
                    for store in found:
                        store.end_batch("delta")


def is_below(key: bytes, first: bytes | None, last: bytes | None) -> bool:
    return (first is None or key >= first) and (last is None or key < last)
