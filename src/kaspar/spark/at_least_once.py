"""A task that writes at least once: what it has sent is published, and sent again by another attempt if it fails.

Within one attempt an idempotent producer keeps the order and stores every batch once. A worker process of Spark runs
one task after the other, so it keeps its producer for the next one: micro-batches are small, and connecting takes time.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import WriterCommitMessage

from kaspar.base.ids import TopicPartition
from kaspar.client.cluster import Client
from kaspar.client.delivery_terms import TopicPartitions
from kaspar.client.producing import RawProducer
from kaspar.client.transactions import init_producer_id
from kaspar.spark.guarantee import RowsWritten
from kaspar.spark.write_options import WriteOptions

_KEPT_S = 600.0  # as Spark's own sink keeps its producers, and brokers their idle connections


@dataclass(slots=True)
class _Kept:
    """A producer with all that is open for it."""

    options: WriteOptions
    client: Client
    producer: RawProducer
    used_s: float

    @classmethod
    def opened(cls, options: WriteOptions) -> "_Kept":
        client = options.connection.client()
        settings = options.producer
        pair = init_producer_id(client, None).producer if settings.enable_idempotence else None
        return cls(options, client, RawProducer(client, producer=pair, terms=settings.terms), time.monotonic())

    def close(self) -> None:
        self.producer.close()
        self.client.close()


_kept: list[_Kept] = []  # one or none: that of this process's last task


def _taken(options: WriteOptions) -> _Kept:
    while _kept:
        kept = _kept.pop()
        if kept.options == options and time.monotonic() - kept.used_s < _KEPT_S:
            return kept
        kept.close()
    return _Kept.opened(options)


class AtLeastOnceTask:
    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._opened: _Kept | None = None  # a task without rows needs no producer

    @property
    def _producer(self) -> RawProducer:
        if self._opened is None:
            self._opened = _taken(self._options)
        return self._opened.producer

    def partitions_of(self, topic: str, at_least: int = 1) -> TopicPartitions:
        return self._producer.partitions_of(topic, at_least)

    def send(self, batches: Sequence[tuple[TopicPartition, memoryview]]) -> None:
        if batches:
            self._producer.send(batches)

    def finish(self, rows: int) -> WriterCommitMessage:
        if self._opened is not None:
            self._opened.producer.flush()
            self._opened.used_s = time.monotonic()
            _kept.append(self._opened)
        return RowsWritten(rows)

    def abandon(self) -> None:
        if self._opened is not None:
            self._opened.close()
