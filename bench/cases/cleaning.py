"""Cleaning a compacted topic of a gigabyte: the rate, the CPU it costs, and its effect on producers.

Both brokers get the same topic and the same cleaner settings: one thread, the same dedupe buffer. The topic is filled
while a minimum dirty ratio of 1 prevents cleaning. Then the ratio is changed, and the clock runs until the broker's own
`cleaner-offset-checkpoint` says that everything before the active segment is clean.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import MappingProxyType

from bench import meters, programs
from bench.bench import Bench, Load
from bench.cases.case import Case
from bench.rows import Better, Row
from bench.sides import Side
from bench.topics import Topics, topic_bytes
from tests.peers.process import BrokerProcess

_SECTION = "Cleaning a compacted topic"
_RATE_GOAL = 1.0
_RISE_GOAL = 1.0

_GIGABYTE = 1e9
_LOG_BYTES = 1_000_000_000  # of values
_RECORDS_OF_A_KEY = 10  # on average, so a tenth of the topic remains
_MOST_LEFT = 0.25  # a topic with more than this share of its size has not been cleaned
_TIMEOUT_SECONDS = 300.0
_POLL_SECONDS = 0.01
_SMALLEST_RISE_MS = 0.05  # two runs without cleaning differ by more
_REQUESTS_TOPIC = "requests"
_REQUEST_BYTES = 100
_WARM_UP_SECONDS = 10.0
_WARM_UP_IN_FLIGHT = 5
_CHECKPOINT = "cleaner-offset-checkpoint"

_CLEANER: Mapping[str, str] = {
    "log.cleaner.threads": "1",
    "log.cleaner.dedupe.buffer.size": str(128 << 20),
    "log.cleaner.backoff.ms": "100",  # how long a cleaner with nothing to do waits before it looks again
}
_TOPIC: Mapping[str, str] = {
    "cleanup.policy": "compact",
    "segment.bytes": str(64 << 20),
    "min.cleanable.dirty.ratio": "1",  # never cleaned: the ratio would have to be greater
}
_DIRTY_RATIO = ("min.cleanable.dirty.ratio", "0.01")


class _OnACleaningBroker(Case):
    """Keeps brokers with the cleaner's settings for all rounds, and fills a topic for each measurement."""

    settings: Mapping[str, str] = _CLEANER
    record_bytes = 100

    def __init__(self, name: str, rows: tuple[Row, ...]) -> None:
        super().__init__(name, rows)
        self._brokers: dict[str, BrokerProcess] = {}
        self._open = ExitStack()

    def set_up(self, bench: Bench, side: Side) -> None:
        broker = self._open.enter_context(bench.fresh_broker(side, self.name, self.settings))
        self._brokers[side.name] = broker
        broker.launch()
        broker.wait_ready()

    def tear_down(self, bench: Bench, side: Side) -> None:
        self._brokers.pop(side.name, None)
        if not self._brokers:
            self._open.close()

    @contextmanager
    def dirty_topic(self, bench: Bench, side: Side) -> Iterator["_DirtyTopic"]:
        broker = self._brokers[side.name]
        topics = Topics(broker)
        topic = topics.create(1, config=_TOPIC)
        records = bench.scaled(_LOG_BYTES // self.record_bytes)
        bench.touch_memory(records * self.record_bytes)
        what = (1, records, self.record_bytes, "1", "none", records // _RECORDS_OF_A_KEY)
        programs.run(bench.tools.client, "produce", broker.bootstrap, topic, *what)
        yield _DirtyTopic(broker, topics, topic)
        topics.delete(topic)


class _DirtyTopic:
    """A topic of one partition, full of records that later ones have replaced."""

    def __init__(self, broker: BrokerProcess, topics: Topics, name: str) -> None:
        self._broker = broker
        self._topics = topics
        self._name = name
        segments = sorted((broker.data_dir / f"{name}-0").glob("*.log"))
        self.records = int(segments[-1].stem)  # the records before the active segment: offsets have no gaps yet
        self.bytes = sum(segment.stat().st_size for segment in segments[:-1])
        self._bytes_before = topic_bytes(broker, name)

    def start_cleaning(self) -> None:
        self._topics.set(self._name, *_DIRTY_RATIO)

    @property
    def clean(self) -> bool:
        """Whether the topic is clean according to the broker's checkpoint."""
        try:
            lines = (self._broker.data_dir / _CHECKPOINT).read_text().splitlines()
        except FileNotFoundError:
            return False
        return any(line.split() == [self._name, "0", str(self.records)] for line in lines)

    def wait_until_clean(self) -> None:
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while not self.clean:
            if time.monotonic() > deadline:
                raise programs.LoadError(f"the topic was not clean after {_TIMEOUT_SECONDS:.0f} s")
            time.sleep(_POLL_SECONDS)
        left = topic_bytes(self._broker, self._name)
        if left > self._bytes_before * _MOST_LEFT:
            raise programs.LoadError(f"said to be clean, the topic holds {left} of {self._bytes_before} bytes")


class Cleaning(_OnACleaningBroker):
    """The rate of one cleaner thread without a throttle."""

    def __init__(self, record_bytes: int) -> None:
        size = {1000: "1k", 100: "100b"}[record_bytes]
        name = f"cleaning_{size}"
        title = f"1 GB of {size.replace('1k', '1 kB').replace('100b', '100 B')} records, a tenth of them stay"
        rows = (
            Row(name, title, _SECTION, "records/s", Better.MORE, _RATE_GOAL),
            Row(f"{name}_cpu", f"{title}: broker CPU per gigabyte", _SECTION, "s/GB", Better.LESS),
        )
        super().__init__(name, rows)
        self.record_bytes = record_bytes

    def measure(self, bench: Bench, side: Side) -> Mapping[str, float]:
        with self.dirty_topic(bench, side) as topic:
            pid = self._brokers[side.name].pid
            machine, cpu, began = meters.MachineUse.now(), meters.cpu_seconds(pid), time.monotonic()
            topic.start_cleaning()
            topic.wait_until_clean()
            seconds, cpu = time.monotonic() - began, meters.cpu_seconds(pid) - cpu
            bench.others_shares.append(meters.MachineUse.now().others_share_since(machine, cpu))
        return {self.name: topic.records / seconds, f"{self.name}_cpu": cpu / (topic.bytes / _GIGABYTE)}


class LatencyWhileCleaning(_OnACleaningBroker):
    """One-record requests to another topic, first without other load and then while a throttled cleaner works.

    The throttle counts the bytes read, twice, and the bytes written, in the same way on both brokers. So both take the
    same time, and the requests end before the cleaning.
    """

    THROTTLE_BYTES = 250_000_000
    RATE = 1000
    CLEANING_SECONDS = 2.0 * _LOG_BYTES / THROTTLE_BYTES
    settings: Mapping[str, str] = MappingProxyType(
        {**_CLEANER, "log.cleaner.io.max.bytes.per.second": str(THROTTLE_BYTES)}
    )
    record_bytes = 1000

    def __init__(self) -> None:
        name = "cleaning_latency"
        title = f"latency at {self.RATE:,}/s beside a cleaner throttled to {self.THROTTLE_BYTES / 1e6:.0f} MB/s"
        rows = (
            Row(f"{name}_before", f"{title}: p99 before", _SECTION, "ms", Better.LESS),
            Row(f"{name}_meanwhile", f"{title}: p99 meanwhile", _SECTION, "ms", Better.LESS),
            Row(f"{name}_rise", f"{title}: rise of p99", _SECTION, "ms", Better.LESS, _RISE_GOAL),
        )
        super().__init__(name, rows)

    def set_up(self, bench: Bench, side: Side) -> None:
        super().set_up(bench, side)
        broker = self._brokers[side.name]
        Topics(broker).create(1, _REQUESTS_TOPIC)
        programs.run(bench.tools.requests, "closed", *self._requests(broker), _WARM_UP_SECONDS, _WARM_UP_IN_FLIGHT)

    def warm_up(self, bench: Bench, side: Side) -> None:
        with self.dirty_topic(bench, side) as topic:
            topic.start_cleaning()
            topic.wait_until_clean()

    def measure(self, bench: Bench, side: Side) -> Mapping[str, float]:
        with self.dirty_topic(bench, side) as topic:
            before = self._load(bench, side)
            topic.start_cleaning()
            meanwhile = self._load(bench, side)
            if topic.clean:
                raise programs.LoadError("the cleaning was over before the requests were: is it throttled?")
            topic.wait_until_clean()
        p99_before, p99_meanwhile = before["p99_us"] / 1000, meanwhile["p99_us"] / 1000
        return {
            f"{self.name}_before": p99_before,
            f"{self.name}_meanwhile": p99_meanwhile,
            f"{self.name}_rise": max(p99_meanwhile - p99_before, _SMALLEST_RISE_MS),
        }

    def _load(self, bench: Bench, side: Side) -> Load:
        broker = self._brokers[side.name]
        seconds = max(1.0, self.CLEANING_SECONDS * bench.scale * 0.9)
        return bench.run_load(broker, bench.tools.requests, "open", *self._requests(broker), seconds, self.RATE)

    def _requests(self, broker: BrokerProcess) -> tuple[object, ...]:
        return (broker.host, broker.port, _REQUESTS_TOPIC, 1, 1, _REQUEST_BYTES, "1")
