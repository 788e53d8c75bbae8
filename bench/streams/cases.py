"""The cases: a program, its load, and whom it is compared with."""

import itertools
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench.rows import Better, Row
from bench.sides import kaspar as our_broker
from bench.streams.load import PARTITIONS, WORDS_OF_A_LINE, Batches, Load
from bench.streams.programs import FAUST, KAFKA_STREAMS, OURS, QUIX, Side, running
from bench.topics import Topics

EXACTLY_ONCE, AT_LEAST_ONCE = "exactly_once_v2", "at_least_once"
_MOST_SECONDS = 600.0
_NAMES = 10_000
_RATE = 50
_WARM_UP_SECONDS = 60.0
_MEASURED_SECONDS = 30.0
_numbers = itertools.count()


class Case:
    """Measures its rows for one side at a time, each on a broker of its own."""

    def __init__(self, sides: tuple[Side, Side], row: Row, program: str, guarantee: str) -> None:
        self.name = row.name
        self.rows: tuple[Row, ...] = (row,)
        self.sides = sides
        self.program = program
        self.guarantee = guarantee

    def measure(self, folder: Path, side: Side, scale: float) -> Mapping[str, float]:
        number = next(_numbers)
        application = f"bench{number}"
        with _topics(folder / f"broker{number}") as bootstrap:
            load = Load(bootstrap)
            self.prepare(load)
            own = folder / f"program{number}"
            with running(side, self.program, bootstrap, application, self.guarantee, own) as check:
                load.check = check
                return {self.name: self.value(load, application, scale)}

    def prepare(self, load: Load) -> None:
        """What the topics have before the program starts."""

    def value(self, load: Load, application: str, scale: float) -> float:
        raise NotImplementedError


class Throughput(Case):
    """Records a second of a warm program. The first records, which warm it up, are processed before the clock runs."""

    def __init__(self, sides: tuple[Side, Side], row: Row, program: str, *, records: int, distinct: int = 0) -> None:
        super().__init__(sides, row, program, EXACTLY_ONCE)
        self.records = records
        self.distinct = distinct

    def prepare(self, load: Load) -> None:
        if self.program == "table_join":
            load.send(load.batches("names", ((f"key{number}", f"name{number}") for number in range(_NAMES))))

    def value(self, load: Load, application: str, scale: float) -> float:
        count = max(100, int(self.records * scale))
        first, measured = (load.batches("lines", self._records(load, each)) for each in (count // 2, count))
        _process(load, application, first)
        began = time.monotonic()
        _process(load, application, measured)
        per_record = WORDS_OF_A_LINE if self.program == "word_count" else 1
        return count * per_record / (time.monotonic() - began)

    def _records(self, load: Load, count: int) -> Iterator[tuple[str, str]]:
        return load.lines(count, self.distinct) if self.program == "word_count" else load.events(count)


class Latency(Case):
    """The median time until the result of a record can be read, at a low rate, after a minute."""

    def value(self, load: Load, application: str, scale: float) -> float:
        _process(load, application, load.batches("lines", load.events(100)))
        return load.latencies(_RATE, _WARM_UP_SECONDS * min(1.0, 2 * scale), _MEASURED_SECONDS)


def _process(load: Load, application: str, batches: Batches) -> None:
    load.send(batches)
    load.wait_until_processed(application, {"lines"}, _MOST_SECONDS)


@contextmanager
def _topics(folder: Path) -> Iterator[str]:
    """A broker with the topics of the programs."""
    broker = our_broker().make(folder)
    broker.start()
    try:
        topics = Topics(broker)
        for name in ("lines", "names", "results"):
            topics.create(PARTITIONS, name)
        yield broker.bootstrap
    finally:
        broker.kill()


def all_cases() -> list[Case]:
    return [*_beside_kafka_streams(), *_beside_others(), *_latencies()]


def _row(name: str, title: str, section: str, goal: float | None) -> Row:
    return Row(name, title, section, "records/s", Better.MORE, goal)


def _beside_kafka_streams() -> Iterator[Case]:
    section = "Beside Kafka Streams, exactly_once_v2, every update emitted"
    sides = (OURS, KAFKA_STREAMS)
    few = _row("words_2000", "word count, 2,000 distinct words", section, 1.5)
    yield Throughput(sides, few, "word_count", records=300_000, distinct=2_000)
    many = _row("words_1m", "word count, a million distinct words", section, 1.5)
    yield Throughput(sides, many, "word_count", records=200_000, distinct=1_000_000)
    windowed = _row("windowed_count", "tumbling windows of 10 s, 1,000 keys", section, 1.5)
    yield Throughput(sides, windowed, "windowed_count", records=2_000_000)
    joined = _row("table_join", "stream joined to a table of 10,000 rows", section, 1.5)
    yield Throughput(sides, joined, "table_join", records=2_000_000)


def _beside_others() -> Iterator[Case]:
    loads = ((QUIX, "quix", 5.0, 40_000), (FAUST, "faust", 2.0, 4_000))  # lines that take each about a minute
    for side, name, goal, lines in loads:
        row = _row(f"words_{name}", "word count, 2,000 distinct words", f"Beside {side.title}, exactly once", goal)
        yield Throughput((OURS, side), row, "word_count", records=lines, distinct=2_000)


def _latencies() -> Iterator[Case]:
    section = f"Windowed count at {_RATE} records/s, from the record to its result"
    for guarantee, goal in ((AT_LEAST_ONCE, 200.0), (EXACTLY_ONCE, 300.0)):
        row = Row(f"latency_{guarantee}", f"p50, {guarantee}", section, "ms", Better.LESS, goal, goal_is_value=True)
        yield Latency((OURS, KAFKA_STREAMS), row, "windowed_count", guarantee)
