"""Runs a windowed topology on records given as (key, value, timestamp), and returns what it emits."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from kaspar.streams import SessionWindows, SlidingWindows, StreamsBuilder, TimeWindows, TopologyTestDriver, serdes
from kaspar.streams.dsl.grouped import KGroupedStream
from kaspar.streams.dsl.streams_and_tables import KTable
from kaspar.streams.serdes import Serde

Input: TypeAlias = tuple[Any, Any, int]
AnyWindows: TypeAlias = TimeWindows | SlidingWindows | SessionWindows


class Emitted(NamedTuple):
    key: Any
    start: int
    end: int
    value: Any
    timestamp: int


class Run:
    """What a topology did with its records."""

    def __init__(self, driver: TopologyTestDriver, emitted: list[Emitted]) -> None:
        self.driver = driver
        self.emitted = emitted

    @property
    def results(self) -> list[tuple[int, int, Any]]:
        """Start, end and value, for topologies with one key."""
        return [(each.start, each.end, each.value) for each in self.emitted]

    @property
    def last_results(self) -> dict[tuple[Any, int, int], Any]:
        last = {(each.key, each.start, each.end): each.value for each in self.emitted}
        return {window: value for window, value in last.items() if value is not None}

    @property
    def dropped(self) -> Mapping[str, int]:
        return self.driver.dropped


def key_serde(windows: AnyWindows) -> Serde[Any]:
    match windows:
        case SessionWindows():
            return serdes.session_windowed(serdes.text())
        case SlidingWindows():
            return serdes.windowed(serdes.text(), windows.difference_ms)
        case TimeWindows():
            return serdes.windowed(serdes.text(), windows.size_ms)


def run(
    windows: AnyWindows,
    records: Sequence[Input],
    aggregated: Callable[[Any], KTable],
    *,
    values: Serde[Any] | None = None,
    config: Mapping[str, Any] | None = None,
) -> Run:
    """`aggregated` makes a table of the windowed stream; its changes are emitted."""
    builder = StreamsBuilder()
    grouped: KGroupedStream[KTable] = builder.stream("in").group_by_key()
    aggregated(grouped.windowed_by(windows)).to_stream().to("out")
    driver = TopologyTestDriver(builder.build(), config)
    return Run(driver, pipe(driver, windows, records, values=values))


def pipe(
    driver: TopologyTestDriver, windows: AnyWindows, records: Sequence[Input], *, values: Serde[Any] | None = None
) -> list[Emitted]:
    source = driver.create_input_topic("in")
    for key, value, timestamp in records:
        source.pipe_input(key, value, timestamp)
    out = driver.create_output_topic("out", key_serde(windows), values)
    return [
        Emitted(record.key.key, record.key.window.start, record.key.window.end, record.value, record.timestamp)
        for record in out.read_records_to_list()
    ]


def counts(windows: AnyWindows, times: Sequence[int], **options: Any) -> Run:
    """Counts records of one key with these timestamps."""
    records = [("a", "x", time) for time in times]
    return run(windows, records, lambda windowed: windowed.count("windowed"), values=serdes.long(), **options)


def joined(windows: AnyWindows, records: Sequence[Input], **options: Any) -> Run:
    """Joins the values of each key and window to one text, in the order of their arrival."""
    return run(windows, records, lambda windowed: windowed.reduce(lambda total, value: total + value), **options)
