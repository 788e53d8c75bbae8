"""At least once: rows are published as soon as a task sends them, and sent again by the next attempt if the task fails.

Within one attempt an idempotent producer keeps the order and stores every batch once. Spark's worker processes run one
task after another, so each keeps its producer for the next task: micro-batches are small, and connecting takes time.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import WriterCommitMessage

from kaspar.spark.writing.guarantee import TaskWriter
from kaspar.spark.writing.options import WriteOptions

if TYPE_CHECKING:
    from kaspar.base.ids import TopicPartition
    from kaspar.client.cluster import Client
    from kaspar.client.delivery_terms import TopicPartitions
    from kaspar.client.producing import RawProducer

_KEPT_S = 600.0  # as long as Spark's own sink keeps its producers, and brokers keep idle connections


@dataclass(frozen=True)
class RowsWritten(WriterCommitMessage):
    """A task's message to the driver, which has nothing left to do."""

    rows: int


class AtLeastOnce:
    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def begin(self) -> TaskWriter:
        return AtLeastOnceTask(self._options)

    def publish(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Do nothing: everything was published when it was sent."""

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Do nothing: what was sent stays, and readers may see it again after the next attempt."""


@dataclass(slots=True)
class _Kept:
    """A producer with its client."""

    options: WriteOptions
    client: "Client"
    producer: "RawProducer"
    used_s: float

    @classmethod
    def opened(cls, options: WriteOptions) -> "_Kept":
        from kaspar.client.producing import RawProducer  # the driver does not need the client
        from kaspar.client.transactions import init_producer_id

        client = options.connection.client()
        settings = options.producer
        pair = init_producer_id(client, None).producer if settings.enable_idempotence else None
        return cls(options, client, RawProducer(client, producer=pair, terms=settings.terms), time.monotonic())

    def close(self) -> None:
        self.producer.close()
        self.client.close()


_kept: list[_Kept] = []  # at most one: the producer of this process's last task


def _taken(options: WriteOptions) -> _Kept:
    while _kept:
        kept = _kept.pop()
        if kept.options == options and time.monotonic() - kept.used_s < _KEPT_S:
            return kept
        kept.close()
    return _Kept.opened(options)


class AtLeastOnceTask:
    def __init__(self, options: WriteOptions) -> None:
        self.end_offsets: Mapping[TopicPartition, int] = {}
        self._options = options
        self._opened: _Kept | None = None  # a task without rows needs no producer

    @property
    def _producer(self) -> "RawProducer":
        if self._opened is None:
            self._opened = _taken(self._options)
        return self._opened.producer

    def partitions_of(self, topic: str, at_least: int = 1) -> "TopicPartitions":
        return self._producer.partitions_of(topic, at_least)

    def send(self, batches: Sequence["tuple[TopicPartition, memoryview]"]) -> None:
        if batches:
            self._producer.send(batches)

    def finish(self, rows: int) -> WriterCommitMessage:
        if self._opened is not None:
            self._opened.producer.flush()
            self.end_offsets = self._opened.producer.take_end_offsets()
            self._opened.used_s = time.monotonic()
            _kept.append(self._opened)
        return RowsWritten(rows)

    def abandon(self) -> None:
        if self._opened is not None:
            self._opened.close()
