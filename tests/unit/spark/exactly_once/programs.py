"""Programs that write in foreachBatch, against the model of a cluster: a driver process with one run of a stream."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kaspar.exactly_once.attempt import Attempt
from kaspar.exactly_once.blocks import Blocks
from kaspar.exactly_once.names import BatchName
from kaspar.spark.exactly_once import foreach_batch
from kaspar.spark.exactly_once.foreach_batch import Batch
from kaspar.spark.exactly_once.task import TaskWritten
from tests.property.exactly_once_model import Cluster, Fuse, Row
from tests.unit.exactly_once.scenes import DriverProcess, decided

SERVERS = {"kafka.bootstrap.servers": "h:9092"}
TOPICS = ("large", "totals", "new")
QUERY = "orders"


class Program:
    """A driver process with one run of a stream. A row is its batch and the number of its topic."""

    def __init__(self, cluster: Cluster, run_id: str, *, stream: str | None = "stream") -> None:
        self.cluster = cluster
        self.fuse = Fuse()
        self.process = DriverProcess(cluster.process(f"driver of {run_id}", self.fuse))
        self.blocks = Blocks()
        self.ids = (stream, run_id if stream else None)

    @contextmanager
    def block(self, batch_id: int, query: str | None = QUERY) -> Iterator[Batch]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(foreach_batch, "this_process", lambda _: self.process)
            patch.setattr(foreach_batch, "_blocks", self.blocks)
            patch.setattr(foreach_batch, "_running_query", lambda: self.ids)
            with foreach_batch.batch(batch_id, query=query, options=SERVERS) as batch:
                yield batch

    def row(self, batch: BatchName, topic: str) -> Row:
        return batch.batch_id, TOPICS.index(topic)

    def write(self, batch: Batch, topic: str) -> None:
        """As Batch.write, without Spark: one task with one row."""
        with batch.writes.one(batch.name, topic):
            if not batch.is_published:
                worker = self.cluster.process(f"worker {topic} of {batch.name.claim}")
                attempt = Attempt.begin(worker.participants, worker.slots, batch.name)
                assert attempt is not None
                worker.write(attempt.transactional_id, attempt.producer, self.row(batch.name, topic))
                attempt.prepare()
                batch.written.append(TaskWritten(batch.name, 1, decided(attempt, 0)))

    def go(self, batch_id: int, *topics: str, query: str | None = QUERY) -> None:
        with self.block(batch_id, query) as batch:
            for topic in topics:
                self.write(batch, topic)
