"""Runs of a query on real brokers, without Spark between: each of its processes can be killed at any step of its own.

A process that is killed never comes back; its connections are closed, as the kernel would.
"""

from collections.abc import Collection, Mapping, Sequence

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.client import Client
from kaspar.client.producing import RawProducer
from kaspar.client.transactions import ANY_AGE, DescribedTransaction, Ending
from kaspar.exactly_once.attempt import Attempt, Slots
from kaspar.exactly_once.coordinator import BrokerCoordinator
from kaspar.exactly_once.decision_log import DecisionLog
from kaspar.exactly_once.decisions import DecidedTransaction, LogRecord, QueryState
from kaspar.exactly_once.names import BatchName
from kaspar.exactly_once.participants import Participants
from kaspar.exactly_once.publishing import publish
from kaspar.records import Record, build_batch
from tests.property.exactly_once_model import Fuse, Killed

TASKS = 2
NOW_MS = 1_700_000_000_000


class _FusedLog:
    def __init__(self, log: DecisionLog, fuse: Fuse) -> None:
        self._log = log
        self._fuse = fuse
        self.state = log.state
        self.read_to_end = log.read_to_end
        self.pending = log.pending

    def append(self, query: str, records: Sequence[LogRecord]) -> QueryState:
        self._fuse.step()
        state = self._log.append(query, records)
        self._fuse.step()
        return state


class _FusedCoordinator:
    def __init__(self, coordinator: BrokerCoordinator, fuse: Fuse) -> None:
        self._coordinator = coordinator
        self._fuse = fuse

    @property
    def prepares(self) -> bool:
        return self._coordinator.prepares

    def begin(self, transactional_id: str) -> ProducerIdAndEpoch:
        self._fuse.step()
        return self._coordinator.begin(transactional_id)

    def prepare(self, transactional_id: str, producer: ProducerIdAndEpoch) -> ProducerIdAndEpoch:
        self._fuse.step()
        pair = self._coordinator.prepare(transactional_id, producer)
        self._fuse.step()
        return pair

    def end(self, endings: Sequence[Ending], *, is_urgent: bool = True) -> list[ErrorCode]:
        codes = []
        for ending in endings:
            self._fuse.step()
            codes += self._coordinator.end([ending], is_urgent=is_urgent)
        self._fuse.step()
        return codes

    def describe(self, transactional_ids: Collection[str]) -> Mapping[str, DescribedTransaction]:
        return self._coordinator.describe(transactional_ids)

    def open_transactions(self, query: str, *, older_than_ms: int = ANY_AGE) -> list[str]:
        return self._coordinator.open_transactions(query, older_than_ms=older_than_ms)

    def known_transactions(self, query: str) -> list[str]:
        return self._coordinator.known_transactions(query)

    def fence(self, transactional_ids: Collection[str]) -> None:
        self._fuse.step()
        self._coordinator.fence(transactional_ids)


class RealProcess:
    def __init__(self, bootstrap: str, worker: str, timeout_ms: int | None) -> None:
        self.client = Client(bootstrap)
        self.fuse = Fuse()
        self.slots = Slots(worker)
        log = _FusedLog(DecisionLog(self.client), self.fuse)
        self.coordinator = _FusedCoordinator(BrokerCoordinator(self.client, timeout_ms=timeout_ms), self.fuse)
        self.participants = Participants(log, self.coordinator, worker)


class RealRun:
    """A driver with a worker, which writes the value "<batch>/<task>" for each task."""

    def __init__(self, bootstrap: str, query: str, name: str, topic: str, *, timeout_ms: int | None = None) -> None:
        self.query = query
        self.name = name
        self.topic = topic
        self.worker = RealProcess(bootstrap, f"{name}-worker", timeout_ms)
        self.committer = RealProcess(bootstrap, f"{name}-committer", timeout_ms)

    def batch(self, batch_id: int) -> BatchName:
        return BatchName(self.query, self.name, batch_id)

    def begin(self, batch_id: int, task: int) -> Attempt | None:
        attempt = Attempt.begin(self.worker.participants, self.worker.slots, self.batch(batch_id))
        if attempt is not None:
            value = f"{self.query}/{batch_id}/{task}".encode()
            rows = memoryview(build_batch([Record(NOW_MS, None, value)]))
            with RawProducer(
                self.worker.client, producer=attempt.producer, transactional_id=attempt.transactional_id
            ) as producer:
                producer.partitions_of(self.topic)
                producer.send([(TopicPartition(self.topic, task), rows)])
                producer.flush()
        return attempt

    def write(self, batch_id: int) -> list[DecidedTransaction]:
        written = []
        for task in range(TASKS):
            if (attempt := self.begin(batch_id, task)) is not None:
                attempt.prepare()
                named = DecidedTransaction(attempt.transactional_id, attempt.producer, task, (self.topic,))
                written.append(named)
        return written

    def commit(self, batch_id: int, written: list[DecidedTransaction]) -> None:
        publish(self.committer.participants, self.batch(batch_id), written)

    def go(self, *batch_ids: int) -> None:
        for batch_id in batch_ids:
            self.commit(batch_id, self.write(batch_id))

    def is_killed_in_commit(self, step: int, batch_id: int, written: list[DecidedTransaction]) -> bool:
        """Whether the driver was killed at that step of its commit."""
        self.committer.fuse.left = step
        try:
            self.commit(batch_id, written)
        except Killed:
            self.close()
            return True
        finally:
            self.committer.fuse.left = -1
        return False

    def close(self) -> None:
        self.worker.client.close()
        self.committer.client.close()


def rows_of(query: str, *batch_ids: int) -> list[bytes]:
    return sorted(f"{query}/{batch_id}/{task}".encode() for batch_id in batch_ids for task in range(TASKS))
