"""Streaming queries at a low rate: what feeds them, and the duration of their batches."""

import statistics
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import Producer
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from bench.programs import LoadError
from bench.spark.noop import PAUSE_SECONDS
from bench.spark.stage import Stage
from tests.peers.process import BrokerProcess

_WARM_UP_BATCHES = 10
_MOST_SECONDS = 120.0


class Feed:
    """Sends one record of 100 bytes at a time, at the rate of the no-op source."""

    def __init__(self, broker: BrokerProcess, topic: str) -> None:
        self._topic = topic
        self._producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0, "log_level": 0})
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._stop.wait(PAUSE_SECONDS):
            self._producer.produce(self._topic, b"x" * 100)
            self._producer.poll(0)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._producer.flush()


def batch_milliseconds(stage: Stage, writer: DataStreamWriter, checkpoint: Path, batches: int) -> float:
    """The median time of batches with rows, from their trigger until they were committed."""
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(processingTime="0 seconds").start()
    try:
        stage.timed(lambda: _wait(query, _WARM_UP_BATCHES + batches))
        durations = [float(progress["durationMs"]["triggerExecution"]) for progress in _with_rows(query)]
        return statistics.median(durations[-batches:])
    finally:
        query.stop()


def _with_rows(query: StreamingQuery) -> list[dict[str, dict[str, float]]]:
    return [progress for progress in query.recentProgress if progress["numInputRows"]]


def _wait(query: StreamingQuery, batches: int) -> None:
    deadline = time.monotonic() + _MOST_SECONDS
    while len(_with_rows(query)) < batches:
        if not query.isActive:
            raise LoadError(f"the query ended: {query.exception()}")
        if time.monotonic() > deadline:
            raise LoadError(f"{batches} batches took more than {_MOST_SECONDS:.0f} s")
        time.sleep(PAUSE_SECONDS)
