"""A cluster, as the exactly-once protocol sees it, that can crash its caller at every single step.

The decision log is a list that may be compacted, and coordinators are a table. Whatever a process asks for goes through
`Fuse.step`, twice: before it is carried out and after it, when only the response is lost. A process that was killed at
an append may have its record still on the way: it lands later, or never.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.client.transactions import ANY_AGE, NO_TIMEOUT_MS, DescribedTransaction, Ending
from kaspar.exactly_once.attempt import Slots
from kaspar.exactly_once.decisions import BatchDecision, LogRecord, QueryState, QueryStates
from kaspar.exactly_once.errors import NotPublished
from kaspar.exactly_once.names import TransactionName
from kaspar.exactly_once.participants import Participants

Row = tuple[int, int]
"""What a task writes: its batch, and its number."""
TIMEOUT_MS = 60_000


class Killed(Exception):
    """kill -9 of the process that asked."""


@dataclass
class Fuse:
    """Kills a process at its step number `left`; -1: never."""

    left: int = -1

    def step(self) -> None:
        if self.left == 0:
            raise Killed
        self.left -= 1


@dataclass
class ModelTransaction:
    epoch: int = -1
    state: str = "Empty"
    is_prepared: bool = False
    start_ms: int = 0
    rows: list[Row] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        return self.state == "Ongoing"

    def close(self, state: str) -> list[Row]:
        rows, self.rows = self.rows, []
        self.state, self.is_prepared, self.epoch = state, False, self.epoch + 1
        return rows


class Cluster:
    def __init__(self, *, prepares: bool = True) -> None:
        self.prepares = prepares
        self.log: list[tuple[int, LogRecord]] = []
        self.next_offset = 0
        self.on_their_way: list[list[LogRecord]] = []
        self.transactions: dict[str, ModelTransaction] = {}
        self.visible: Counter[Row] = Counter()
        self.now_ms = 0
        """By the coordinators' clocks: nobody else has one."""

    def store(self, records: Sequence[LogRecord]) -> None:
        for record in records:
            self.log.append((self.next_offset, record))
            self.next_offset += 1

    def compact(self, upto: int) -> None:
        """Of each key the last record before that offset, and no tombstones."""
        last = {key: offset for offset, (key, _) in self.log if offset < upto}
        self.log = [
            (offset, (key, value))
            for offset, (key, value) in self.log
            if offset >= upto or (last[key] == offset and value is not None)
        ]

    def end(self, transaction: ModelTransaction, committed: bool) -> None:
        rows = transaction.close("CompleteCommit" if committed else "CompleteAbort")
        if committed:
            self.visible.update(rows)

    def time_out(self, transactional_id: str) -> None:
        transaction = self.transactions[transactional_id]
        if transaction.is_open and not transaction.is_prepared:
            self.end(transaction, False)

    def open_ids(self) -> list[str]:
        return [name for name, transaction in self.transactions.items() if transaction.is_open]

    def process(self, worker: str, fuse: Fuse | None = None) -> "ModelProcess":
        return ModelProcess(self, worker, fuse or Fuse())


class ModelProcess:
    """A Python process: what it has read of the log, its slots, and the fuse that kills it."""

    def __init__(self, cluster: Cluster, worker: str, fuse: Fuse) -> None:
        self.fuse = fuse
        self.slots = Slots(worker)
        self.participants = Participants(ModelLog(cluster, self.fuse), ModelCoordinator(cluster, self.fuse), worker)
        self.cluster = cluster

    def write(self, transactional_id: str, producer: ProducerIdAndEpoch, row: Row) -> None:
        self.fuse.step()
        transaction = self.cluster.transactions[transactional_id]
        if transaction.epoch != producer.producer_epoch or transaction.is_prepared:
            raise Refused(ErrorCode.PRODUCER_FENCED, "fenced")
        if not transaction.is_open:
            transaction.state, transaction.start_ms = "Ongoing", self.cluster.now_ms
        transaction.rows.append(row)
        self.fuse.step()


class ModelLog:
    def __init__(self, cluster: Cluster, fuse: Fuse) -> None:
        self._cluster = cluster
        self._fuse = fuse
        self._states = QueryStates()
        self._position = -1

    def state(self, query: str) -> QueryState:
        return self.read_to_end(query) if self._position < 0 else self._states.state(query)

    def read_to_end(self, query: str) -> QueryState:
        self._fuse.step()
        for offset, (key, value) in self._cluster.log:
            if offset >= self._position:
                self._states.replay(key, value)
        self._position = self._cluster.next_offset
        return self._states.state(query)

    def pending(self) -> list[BatchDecision]:
        self.read_to_end("")
        return self._states.pending()

    def append(self, query: str, records: Sequence[LogRecord]) -> QueryState:
        try:
            self._fuse.step()
        except Killed:
            self._cluster.on_their_way.append(list(records))
            raise
        self._cluster.store(records)
        self._fuse.step()
        return self.read_to_end(query)


class ModelCoordinator:
    def __init__(self, cluster: Cluster, fuse: Fuse) -> None:
        self._cluster = cluster
        self._fuse = fuse

    @property
    def prepares(self) -> bool:
        return self._cluster.prepares

    @property
    def timeout_ms(self) -> int:
        return TIMEOUT_MS

    @property
    def max_timeout_ms(self) -> int:
        return TIMEOUT_MS

    def begin(self, transactional_id: str) -> ProducerIdAndEpoch:
        self._fuse.step()
        transaction = self._cluster.transactions.setdefault(transactional_id, ModelTransaction())
        if transaction.is_open:
            self._cluster.end(transaction, False)
        transaction.epoch += 1
        transaction.state = "Empty"
        self._fuse.step()
        return ProducerIdAndEpoch(1, transaction.epoch)

    def prepare(self, transactional_id: str, producer: ProducerIdAndEpoch) -> ProducerIdAndEpoch:
        if not self.prepares:
            return producer
        self._fuse.step()
        transaction = self._cluster.transactions[transactional_id]
        if not transaction.is_open or transaction.epoch != producer.producer_epoch:
            raise NotPublished("aborted before it was prepared")
        transaction.epoch += 1
        transaction.is_prepared = True
        self._fuse.step()
        return ProducerIdAndEpoch(1, transaction.epoch)

    def end(self, endings: Sequence[Ending], *, is_urgent: bool = True) -> list[ErrorCode]:
        return [self._end(ending) for ending in endings]

    def _end(self, ending: Ending) -> ErrorCode:
        self._fuse.step()
        transaction = self._cluster.transactions[ending.transactional_id]
        epoch = ending.producer.producer_epoch
        ended_so = transaction.state == ("CompleteCommit" if ending.committed else "CompleteAbort")
        code = ErrorCode.NONE
        if epoch == transaction.epoch and (transaction.is_open or not ending.committed):
            self._cluster.end(transaction, ending.committed)
        elif epoch == transaction.epoch or transaction.epoch == epoch + 1:
            code = ErrorCode.NONE if ended_so else ErrorCode.INVALID_TXN_STATE
        else:
            code = ErrorCode.PRODUCER_FENCED
        self._fuse.step()
        return code

    def describe(self, transactional_ids: Collection[str]) -> Mapping[str, DescribedTransaction]:
        self._fuse.step()
        found = {name: self._cluster.transactions[name] for name in transactional_ids}
        return {name: _described(name, each) for name, each in found.items()}

    def open_transactions(self, query: str, *, older_than_ms: int = ANY_AGE) -> list[str]:
        self._fuse.step()
        names = {name: TransactionName.of(name) for name in self._cluster.open_ids()}
        return [
            text
            for text, name in names.items()
            if name is not None
            and name.query == query
            and self._cluster.now_ms - self._cluster.transactions[text].start_ms > older_than_ms
        ]

    def known_transactions(self, query: str) -> list[str]:
        self._fuse.step()
        names = {name: TransactionName.of(name) for name in self._cluster.transactions}
        return [text for text, name in names.items() if name is not None and name.query == query]

    def fence(self, transactional_ids: Collection[str]) -> None:
        for transactional_id in transactional_ids:
            self.begin(transactional_id)


def _described(name: str, transaction: ModelTransaction) -> DescribedTransaction:
    """With the pair of its records, as brokers do."""
    epoch = transaction.epoch - 1 if transaction.is_prepared else transaction.epoch
    timeout_ms = NO_TIMEOUT_MS if transaction.is_prepared else TIMEOUT_MS
    return DescribedTransaction(
        name, transaction.state, timeout_ms, transaction.start_ms, ProducerIdAndEpoch(1, epoch), ()
    )
