"""Start, idle use, memory and recovery, each with its own brokers except for the memory after all load."""

import time
from collections.abc import Mapping
from contextlib import ExitStack

from bench import meters, programs
from bench.bench import Bench
from bench.cases.case import Case
from bench.rows import Better, Row
from bench.sides import Side
from bench.topics import Topics
from tests.peers.process import BrokerProcess

READY_TIMEOUT_SECONDS = 180

_START_GOAL = 0.15
_MEMORY_GOAL = 0.15
_RECOVERY_GOAL = 1.0
_MEGABYTE = 1e6


def seconds_until_ready(bench: Bench, broker: BrokerProcess, topic: str, partitions: int) -> tuple[float, int]:
    """Start the prepared broker. Returns the time from its exec until every partition has acknowledged a record.

    Also returns how many records the topic contained before. The probe is started first, so that it misses nothing.
    """
    arguments = (broker.host, broker.port, topic, partitions, READY_TIMEOUT_SECONDS)
    probe = programs.start(bench.tools.probe, "ready", *arguments)
    started_at = time.monotonic_ns()
    broker.launch()
    measured = programs.finish(probe)
    if not broker.running:
        raise programs.LoadError("something responded on the broker's port, but the broker had ended")
    return (measured["ready_at_ns"] - started_at) / 1e9, int(measured["offset_sum"])


class Start(Case):
    def __init__(self) -> None:
        title = "start on a new data folder to the first acknowledged record"
        super().__init__("start", (Row("start", title, "Start, memory, recovery", "s", Better.LESS, _START_GOAL),))

    def measure(self, bench: Bench, side: Side) -> Mapping[str, float]:
        with bench.fresh_broker(side, "start") as broker:
            seconds, _ = seconds_until_ready(bench, broker, "first", 1)
        return {"start": seconds}


class Idle(Case):
    """A broker that has received one record and is then left alone."""

    SETTLE_SECONDS = 4.0
    WATCH_SECONDS = 8.0

    def __init__(self) -> None:
        section = "Start, memory, recovery"
        rows = (
            Row("idle_memory", "idle: resident memory", section, "MB", Better.LESS, _MEMORY_GOAL),
            Row("idle_cpu", "idle: CPU, of one core", section, "%", Better.LESS),
        )
        super().__init__("idle", rows)

    def warm_up(self, bench: Bench, side: Side) -> None:
        """Does nothing, because a fresh broker is measured."""

    def measure(self, bench: Bench, side: Side) -> Mapping[str, float]:
        with bench.fresh_broker(side, "idle") as broker:
            seconds_until_ready(bench, broker, "first", 1)
            time.sleep(self.SETTLE_SECONDS)
            before, began = meters.cpu_seconds(broker.pid), time.monotonic()
            time.sleep(self.WATCH_SECONDS)
            used, passed = meters.cpu_seconds(broker.pid) - before, time.monotonic() - began
            memory = meters.resident_bytes(broker.pid)
        return {"idle_memory": memory / _MEGABYTE, "idle_cpu": used / passed * 100}


class MemoryAfterLoad(Case):
    """The warm brokers' memory after all other load has run on them. This case comes last."""

    def __init__(self) -> None:
        section = "Start, memory, recovery"
        title = "resident memory after all load"
        super().__init__(
            "memory_after_load", (Row("memory_after_load", title, section, "MB", Better.LESS, _MEMORY_GOAL),)
        )

    def measure(self, bench: Bench, side: Side) -> Mapping[str, float]:
        return {"memory_after_load": meters.resident_bytes(bench.warm_broker(side).pid) / _MEGABYTE}


class Recovery(Case):
    """Recovery after kill -9 with nothing flushed: the time from exec until every partition acknowledges again.

    No partition fills a segment, so neither broker has flushed or checkpointed any of the data. Between rounds the
    recovery-point checkpoint is removed, so that a broker that wrote one after its recovery has to repeat all of it.
    """

    TOPIC = "recovery"
    PARTITIONS = 8
    RECORD_BYTES = 1000
    RECORDS = 4_000_000
    FORGET = ("recovery-point-offset-checkpoint", ".kafka_cleanshutdown")

    def __init__(self) -> None:
        title = f"recovery of 4 GB in {self.PARTITIONS} partitions after kill -9"
        super().__init__(
            "recovery", (Row("recovery", title, "Start, memory, recovery", "s", Better.LESS, _RECOVERY_GOAL),)
        )
        self._brokers: dict[str, BrokerProcess] = {}
        self._open = ExitStack()

    def set_up(self, bench: Bench, side: Side) -> None:
        broker = self._open.enter_context(bench.fresh_broker(side, "recovery"))
        self._brokers[side.name] = broker
        broker.launch()
        broker.wait_ready()
        Topics(broker).create(self.PARTITIONS, self.TOPIC)
        arguments = (broker.bootstrap, self.TOPIC, self.PARTITIONS, self.RECORDS, self.RECORD_BYTES, "1", "none")
        bench.touch_memory(self.RECORDS * self.RECORD_BYTES)
        programs.run(bench.tools.client, "produce", *arguments)
        broker.kill()

    def measure(self, bench: Bench, side: Side) -> Mapping[str, float]:
        broker = self._brokers[side.name]
        for name in self.FORGET:
            (broker.data_dir / name).unlink(missing_ok=True)
        seconds, records = seconds_until_ready(bench, broker, self.TOPIC, self.PARTITIONS)
        broker.kill()
        if records < self.RECORDS:
            raise programs.LoadError(f"only {records} of {self.RECORDS} records were there after recovery")
        return {"recovery": seconds}

    def tear_down(self, bench: Bench, side: Side) -> None:
        self._brokers.pop(side.name, None)
        if not self._brokers:
            self._open.close()
