"""Joins of two streams against a model by brute force, on random records, some of them late."""

from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kaspar.streams import JoinWindows, KStream, StreamsBuilder, TopologyTestDriver
from kaspar.streams.operators.waiting_records import WaitingRecords
from kaspar.streams.stores.byte_store import OverlayStore
from kaspar.streams.topology.context import Clock
from kaspar.streams.topology.open_stores import open_stores
from kaspar.streams.topology.task import Task
from tests.property.stream_join_model import Arrival, Result, StreamJoinModel

KINDS = ("join", "left_join", "outer_join")
UNITS = (1, 7000)
"""Milliseconds of a tick: with the long ones whole segments of the stores expire."""
SEEDS = st.integers(0, 2**32)  # not lists that Hypothesis likes best: short ones tell little of a join


def some_windows(rng: Random, unit: int) -> JoinWindows:
    after = rng.choice([-3, 0, 1, 2, 5, 8])
    before = max(-after, rng.choice([-1, 0, 1, 2, 5, 8]))
    return JoinWindows(before * unit, after * unit, rng.choice([0, 1, 5]) * unit)


def some_arrivals(rng: Random, unit: int, *, late: bool = True) -> list[Arrival]:
    """Time goes on in small steps, with jumps; late records are before it."""
    now, result = 0, []
    pace = rng.choice([[0, 0, 1], [0, 1, 2, 3, 20]])
    for number in range(rng.randint(1, 40)):
        now += rng.choice(pace)
        timestamp = max(0, now - rng.choice([0, 0, 0, 1, 4, 9, 25])) if late else now
        key = rng.choice(["a", "a", "b", "ab", *([None] if late else [])])
        value = None if late and rng.random() < 0.05 else str(number)
        result.append(Arrival(rng.random() < 0.5, key, value, timestamp * unit))
    return result


def driven(kind: str, windows: JoinWindows) -> TopologyTestDriver:
    builder = StreamsBuilder()
    join: Callable[..., KStream] = getattr(builder.stream("left"), kind)
    join(builder.stream("right"), lambda left, right: f"{left} {right}", windows).to("out")
    return TopologyTestDriver(builder.build())


class Program:
    def __init__(self, driver: TopologyTestDriver) -> None:
        self._topics = {True: driver.create_input_topic("left"), False: driver.create_input_topic("right")}
        self._out = driver.create_output_topic("out")

    def receive(self, record: Arrival) -> list[Result]:
        self._topics[record.is_left].pipe_input(record.key, record.value, record.timestamp)
        results = []
        for key, value, timestamp, _ in self._out.read_records_to_list():
            left, right = (None if side == "None" else side for side in value.split())
            results.append(Result(key, left, right, timestamp))
        return results


@settings(max_examples=300, deadline=None)
@given(seed=SEEDS, kind=st.sampled_from(KINDS), unit=st.sampled_from(UNITS))
def test_a_join_emits_what_the_model_does_record_by_record(seed: int, kind: str, unit: int) -> None:
    rng = Random(seed)
    chosen = some_windows(rng, unit)
    model = StreamJoinModel(kind, chosen)
    with driven(kind, chosen) as driver:
        program = Program(driver)
        for record in some_arrivals(rng, unit):
            assert program.receive(record) == model.receive(record)
        waiting = [each for name in _stores(driver) if isinstance(each := driver.store(name), WaitingRecords)]
        assert sorted(Arrival(*each) for store in waiting for each in store.all()) == sorted(model.waiting)


@settings(deadline=None)
@given(seed=SEEDS, kind=st.sampled_from(KINDS))
def test_records_in_order_meet_all_partners_and_are_alone_only_without(seed: int, kind: str) -> None:
    """What a join means, apart from how and when: each pair once, and what has no partner once."""
    rng = Random(seed)
    chosen = JoinWindows(rng.randint(0, 6), rng.randint(0, 6), rng.randint(1, 5))
    records = some_arrivals(rng, 1, late=False)
    last = Arrival(True, "end", "end", 10_000)
    with driven(kind, chosen) as driver:
        program = Program(driver)
        emitted = [result for record in [*records, last] for result in program.receive(record)]
    pairs = [
        Result(left.key, left.value, right.value, max(left.timestamp, right.timestamp))
        for left in records
        for right in records
        if left.is_left and not right.is_left and left.key == right.key and _are_partners(left, right, chosen)
    ]
    alone = [
        Result(each.key, each.value if each.is_left else None, None if each.is_left else each.value, each.timestamp)
        for each in records
        if each.value not in {value for pair in pairs for value in pair[1:3]}
        and (kind == "outer_join" or (kind == "left_join" and each.is_left))
    ]
    assert sorted(emitted, key=str) == sorted(pairs + alone, key=str)


def _are_partners(left: Arrival, right: Arrival, windows: JoinWindows) -> bool:
    return left.timestamp - windows.before_ms <= right.timestamp <= left.timestamp + windows.after_ms


def _stores(driver: TopologyTestDriver) -> list[Any]:
    return [name for part in driver._parts for name in part.stores]


class Batches:
    """The same program in micro-batches: its state is what the batches before have left, and clocks."""

    def __init__(self, kind: str, windows: JoinWindows) -> None:
        self._driver = driven(kind, windows)
        self._plan = self._driver._parts[0].plan
        self._clocks: dict[str, Clock] = {}
        self._state = {store.name: OverlayStore(None) for store in self._plan.stores}

    def run(self, records: list[Arrival]) -> list[Result]:
        overlays = {name: OverlayStore(state) for name, state in self._state.items()}
        stores = open_stores(self._plan.stores, self._driver.settings, self._clocks, lambda spec: overlays[spec.name])
        self._driver._parts[0].task = Task(self._plan, self._driver.settings, 0, stores, self._driver, self._clocks)
        program = Program(self._driver)
        results = [result for record in records for result in program.receive(record)]
        for name, overlay in overlays.items():
            for bounds in overlay.deleted_ranges:
                self._state[name].delete_range(*bounds)
            for key, value in overlay.changes.items():
                self._state[name].put(key, value)
        return results


@settings(deadline=None)
@given(seed=SEEDS, kind=st.sampled_from(KINDS), unit=st.sampled_from(UNITS))
def test_results_do_not_depend_on_where_batches_end(seed: int, kind: str, unit: int) -> None:
    """But when a record without partner is emitted does: a batch begins with a look. So records are in order here."""
    rng = Random(seed)
    windows = some_windows(rng, unit)
    records = some_arrivals(rng, unit, late=kind == "join")
    end = [Arrival(True, "end", "end", 10_000 * unit)]
    batches = Batches(kind, windows)
    emitted = []
    rest = records
    while rest:
        size = rng.randint(1, 10)
        emitted += batches.run(rest[:size])
        rest = rest[size:]
    emitted += batches.run(end)
    with driven(kind, windows) as driver:
        program = Program(driver)
        expected = [result for record in records + end for result in program.receive(record)]
    if kind != "join":
        emitted, expected = sorted(emitted, key=str), sorted(expected, key=str)
    assert emitted == expected
