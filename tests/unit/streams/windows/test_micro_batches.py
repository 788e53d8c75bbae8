"""What windows and suppression do does not depend on how records are divided into micro-batches."""

from collections.abc import Callable
from typing import Any

import pytest

from kaspar.streams import (
    BufferConfig,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    TopologyTestDriver,
)
from tests.unit.streams.windows.micro_batches import MicroBatches

RECORDS = [
    ("a", "1", 5),
    ("b", "2", 3),
    ("a", "3", 17),
    ("ab", "4", 12),
    ("a", "5", 9),
    ("b", "6", 31),
    ("a", "7", 14),
    ("a", "8", 28),
    ("b", "9", 90),
    ("ab", "0", 70),
    ("a", "x", 75),
    ("b", "y", 140),
]
Build = Callable[[StreamsBuilder], Any]


def reduced(windows: Any) -> Build:
    return lambda builder: (
        builder.stream("in").group_by_key().windowed_by(windows).reduce(lambda total, value: total + value)
    )


def suppressed(windows: Any) -> Build:
    return lambda builder: reduced(windows)(builder).suppress(Suppressed.until_window_closes())


def limited(buffer: BufferConfig) -> Build:
    return lambda builder: builder.table("in", "table").suppress(Suppressed.until_time_limit(40, buffer))


TOPOLOGIES: dict[str, Build] = {
    "tumbling": reduced(TimeWindows.of_size(10).grace(10)),
    "hopping": reduced(TimeWindows.of_size(10).advance_by(4).grace(10)),
    "sliding": reduced(SlidingWindows.of_time_difference(10).grace(20)),
    "sessions": reduced(SessionWindows.of_inactivity_gap(8).grace(20)),
    "suppressed-tumbling": suppressed(TimeWindows.of_size(10).grace(10)),
    "suppressed-sliding": suppressed(SlidingWindows.of_time_difference(10).grace(20)),
    "suppressed-sessions": suppressed(SessionWindows.of_inactivity_gap(8).grace(20)),
    "time-limit": limited(BufferConfig.unbounded()),
    "few-records": limited(BufferConfig.max_records(1)),
    "few-bytes": limited(BufferConfig.max_bytes(80)),
}


@pytest.mark.parametrize("name", TOPOLOGIES)
@pytest.mark.parametrize("size", [1, 2, 5, len(RECORDS)])
def test_results_do_not_depend_on_micro_batches(name: str, size: int) -> None:
    builder = StreamsBuilder()
    TOPOLOGIES[name](builder).to_stream().to("out")
    topology = builder.build()
    batches = MicroBatches(topology)
    for start in range(0, len(RECORDS), size):
        batches.run(RECORDS[start : start + size])
    with TopologyTestDriver(topology) as driver:
        source = driver.create_input_topic("in")
        for record in RECORDS:
            source.pipe_input(*record)
        expected = [output[:3] for _, output in driver.produced]
    assert expected, "the records lead to results"
    assert [output[:3] for _, output in batches.written] == expected
