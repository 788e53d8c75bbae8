"""The cases: a program, its load, and the program that it is compared with."""

import itertools
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.rows import Better, Row
from bench.sides import kaspar as our_broker
from bench.streams.load import KEYS, PARTITIONS, WORDS_OF_A_LINE, Batches, Load
from bench.streams.programs import FAUST, KAFKA_STREAMS, OURS, QUIX, Side, running, state_folder
from bench.topics import Topics

EXACTLY_ONCE, AT_LEAST_ONCE = "exactly_once_v2", "at_least_once"
_MOST_SECONDS = 600.0
_NAMES = 10_000
_RATE = 50
_WARM_UP_SECONDS = 60.0
_MEASURED_SECONDS = 20.0
_STATE_KEYS = 1_000_000
_BLOCK_BYTES = 512  # of st_blocks: LMDB's files are sparse
_MB = 1_000_000
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Run:
    """A program of one side, on its own broker."""

    side: Side
    program: str
    guarantee: str
    load: Load
    bootstrap: str
    application: str
    folder: Path

    @contextmanager
    def started(self) -> Iterator[None]:
        """Run the program. It can be started again with its state."""
        with running(
            self.side, self.program, self.bootstrap, self.application, self.guarantee, self.folder
        ) as self.load.check:
            yield

    def process(self, batches: Batches) -> None:
        self.load.send(batches)
        self.wait()

    def wait(self) -> None:
        self.load.wait_until_processed(self.application, {"lines"}, _MOST_SECONDS)

    @property
    def state(self) -> Path:
        return state_folder(self.side, self.folder, self.application)


class Case:
    """Measures its rows for one side at a time."""

    def __init__(self, sides: tuple[Side, Side], rows: tuple[Row, ...], program: str, guarantee: str) -> None:
        self.name = rows[0].name
        self.rows = rows
        self.sides = sides
        self.program = program
        self.guarantee = guarantee

    def measure(self, folder: Path, side: Side, scale: float) -> Mapping[str, float]:
        number = next(_numbers)
        own = folder / f"program{number}"
        with _topics(folder / f"broker{number}") as bootstrap:
            run = Run(side, self.program, self.guarantee, Load(bootstrap), bootstrap, f"bench{number}", own)
            values = self.values(run, scale)
        shutil.rmtree(own)
        return dict(zip((row.name for row in self.rows), values, strict=True))

    def values(self, run: Run, scale: float) -> tuple[float, ...]:
        """Return the values of its rows."""
        raise NotImplementedError


class Throughput(Case):
    """The rate of a warm program. The first records, which warm it up, are processed before the clock runs."""

    def __init__(self, sides: tuple[Side, Side], row: Row, program: str, *, records: int, distinct: int = 0) -> None:
        super().__init__(sides, (row,), program, EXACTLY_ONCE)
        self.records = records
        self.distinct = distinct

    def values(self, run: Run, scale: float) -> tuple[float, ...]:
        if self.program == "table_join":
            names = ((f"key{number}", f"name{number}") for number in range(_NAMES))
            run.load.send(run.load.batches("names", names))
        count = max(100, int(self.records * scale))
        with run.started():
            first, measured = (run.load.batches("lines", self._records(run.load, each)) for each in (count // 2, count))
            run.process(first)
            began = time.monotonic()
            run.process(measured)
            per_record = WORDS_OF_A_LINE if self.program == "word_count" else 1
            return (count * per_record / (time.monotonic() - began),)

    def _records(self, load: Load, count: int) -> Iterator[tuple[str, str]]:
        return load.lines(count, self.distinct) if self.program == "word_count" else load.events(count)


class LargeState(Case):
    """A count by key with a store that has all keys before the clock runs: the rate for records with random keys, the
    files of the state, and how long a restarted program takes until it has processed new records, with these files and
    without, when it restores them from the changelog."""

    def values(self, run: Run, scale: float) -> tuple[float, ...]:
        keys = int(_STATE_KEYS * scale)
        with run.started():
            run.process(run.load.batches("lines", run.load.events(keys, keys)))
            measured = run.load.batches("lines", run.load.random_events(keys, keys))
            began = time.monotonic()
            run.process(measured)
            rate = keys / (time.monotonic() - began)
        used = sum(each.stat().st_blocks * _BLOCK_BYTES for each in run.state.rglob("*")) / _MB
        restarted = self._restart_s(run, keys)
        shutil.rmtree(run.state)
        return rate, used, restarted, self._restart_s(run, keys)

    @staticmethod
    def _restart_s(run: Run, keys: int) -> float:
        run.load.send(run.load.batches("lines", run.load.random_events(KEYS, keys)))
        began = time.monotonic()
        with run.started():
            run.wait()
            return time.monotonic() - began


class Latency(Case):
    """The median time, at a low rate and after a minute, until the result of a record can be read."""

    def values(self, run: Run, scale: float) -> tuple[float, ...]:
        with run.started():
            run.process(run.load.batches("lines", run.load.events(100)))
            return (run.load.latencies(_RATE, _WARM_UP_SECONDS * min(1.0, 2 * scale), _MEASURED_SECONDS),)


@contextmanager
def _topics(folder: Path) -> Iterator[str]:
    """A broker with the topics of the programs. Yields its address."""
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
    return [*_beside_kafka_streams(), _large_state(), *_beside_others(), *_latencies()]


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


def _large_state() -> Case:
    section = "State of a million keys, beside Kafka Streams, exactly_once_v2, every update emitted"
    rows = (
        _row("state_1m", "count of random keys", section, None),
        Row("state_1m_files", "files of the state", section, "MB", Better.LESS),
        Row("state_1m_restart", "restart until new records are processed", section, "s", Better.LESS),
        Row("state_1m_restore", "the same, without the files: restored from the changelog", section, "s", Better.LESS),
    )
    return LargeState((OURS, KAFKA_STREAMS), rows, "key_count", EXACTLY_ONCE)


def _beside_others() -> Iterator[Case]:
    loads = ((QUIX, "quix", 5.0, 40_000), (FAUST, "faust", 2.0, 4_000))  # each takes about a minute for these lines
    for side, name, goal, lines in loads:
        row = _row(f"words_{name}", "word count, 2,000 distinct words", f"Beside {side.title}, exactly once", goal)
        yield Throughput((OURS, side), row, "word_count", records=lines, distinct=2_000)


def _latencies() -> Iterator[Case]:
    section = f"Windowed count at {_RATE} records/s, from the record to its result"
    for guarantee, goal in ((AT_LEAST_ONCE, 200.0), (EXACTLY_ONCE, 300.0)):
        row = Row(f"latency_{guarantee}", f"p50, {guarantee}", section, "ms", Better.LESS, goal, goal_is_value=True)
        yield Latency((OURS, KAFKA_STREAMS), (row,), "windowed_count", guarantee)
