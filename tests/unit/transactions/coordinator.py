"""A transaction coordinator without a broker: a log in memory, timers that fire when time is moved, markers that are
written when the test says so.

It carries out decisions as the broker's shell does. Every record goes through its bytes. The log can be made to refuse,
and the coordinator can crash at any moment: then another shard reads the log from its beginning.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from itertools import count

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.coordination import Decision, Now, StoredRecord
from kaspar.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnResult
from kaspar.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kaspar.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kaspar.protocol.schema import Message
from kaspar.transactions.actions import TransactionCompleted, WriteFences, WriteMarkers
from kaspar.transactions.partitions import result_of
from kaspar.transactions.settings import CoordinatorSettings
from kaspar.transactions.shard import TransactionShard
from kaspar.transactions.state import Transaction, TransactionState

ID = "payments"
A0 = TopicPartition("a", 0)
A1 = TopicPartition("a", 1)
B0 = TopicPartition("b", 0)
SECOND_MS = 1_000
MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS
NOBODY = ProducerIdAndEpoch(-1, -1)
COORDINATOR_EPOCH = 3

BEGINNING = Now(1_700_000_000_000, 5_000, 1_700_000_000_000)

SETTINGS = CoordinatorSettings(
    max_timeout_ms=15 * MINUTE_MS,
    expiration_ms=7 * DAY_MS,
    expiry_interval_ms=60 * MINUTE_MS,
    two_phase_commit=True,
    prepared_max_age_ms=7 * DAY_MS,
)


@dataclass
class Coordinator:
    settings: CoordinatorSettings = SETTINGS
    version: int = 2
    """The finalised level of transaction.version."""
    log: list[tuple[bytes, bytes | None]] = field(default_factory=list)
    markers: list[WriteMarkers] = field(default_factory=list)
    fences: list[WriteFences] = field(default_factory=list)
    """Asked for, and not written yet."""
    completed: list[str] = field(default_factory=list)
    timers: dict[Hashable, int] = field(default_factory=dict)
    refuses: ErrorCode | None = None
    """The log's error code while it refuses appends."""
    has_producer_ids: bool = True
    coordinator_epoch: int = COORDINATOR_EPOCH
    now: Now = BEGINNING

    def __post_init__(self) -> None:
        self._ids = count(1000)
        self.start()

    def start(self) -> None:
        """A coordinator that knows nothing but the log."""
        self.timers = {}
        self.markers = []
        self.fences = []
        self.shard = TransactionShard(
            self.settings,
            0,
            self.coordinator_epoch,
            next_producer_id=self._next_producer_id,
            transaction_version=lambda: self.version,
        )
        for key, value in self.log:
            record = self.shard.decode(key, value)
            assert record is not None
            self.shard.replay(record, None)
        self.carry_out(self.shard.loaded(self.now))

    crash = start

    def _next_producer_id(self) -> int:
        if not self.has_producer_ids:
            raise Refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "no id is at hand")
        return next(self._ids)

    # -- requests ------------------------------------------------------------------------------------------------------

    def init(
        self,
        producer: ProducerIdAndEpoch = NOBODY,
        *,
        timeout_ms: int = MINUTE_MS,
        enable_2pc: bool = False,
        keep: bool = False,
        transactional_id: str = ID,
    ) -> InitProducerIdResponse:
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            enable_2pc=enable_2pc,
            keep_prepared_txn=keep,
        )
        response = self._submit(
            lambda shard, now: shard.init_producer_id(request, now),
            lambda code: InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1),
        )
        assert isinstance(response, InitProducerIdResponse)
        return response

    def new_producer(self, *, timeout_ms: int = MINUTE_MS, transactional_id: str = ID) -> ProducerIdAndEpoch:
        return pair(self.init(timeout_ms=timeout_ms, transactional_id=transactional_id))

    def prepare(self, producer: ProducerIdAndEpoch = NOBODY, *, transactional_id: str = ID) -> InitProducerIdResponse:
        return self.init(producer, enable_2pc=True, keep=True, transactional_id=transactional_id)

    def add(
        self,
        producer: ProducerIdAndEpoch,
        *partitions: TopicPartition,
        version: int = 2,
        transactional_id: str = ID,
    ) -> ErrorCode:
        wanted = frozenset(partitions)
        response = self._submit(
            lambda shard, now: shard.add_partitions(transactional_id, producer, wanted, now, version=version),
            lambda code: result_of(transactional_id, dict.fromkeys(wanted, code)),
        )
        (code,) = set(codes_of(response).values())
        return code

    def verify(
        self, producer: ProducerIdAndEpoch, *partitions: TopicPartition, transactional_id: str = ID
    ) -> dict[TopicPartition, ErrorCode]:
        wanted = frozenset(partitions)
        try:
            return codes_of(self.shard.verify_partitions(transactional_id, producer, wanted, self.now))
        except Refused as refusal:
            return dict.fromkeys(wanted, refusal.code)

    def end(
        self, producer: ProducerIdAndEpoch, *, commit: bool, version: int = 2, transactional_id: str = ID
    ) -> EndTxnResponse:
        request = EndTxnRequest(
            transactional_id=transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            committed=commit,
        )
        response = self._submit(
            lambda shard, now: shard.end(request, now, version=version),
            lambda code: EndTxnResponse(error_code=code),
        )
        assert isinstance(response, EndTxnResponse)
        return response

    def finish(
        self, producer: ProducerIdAndEpoch, *, commit: bool, version: int = 2, transactional_id: str = ID
    ) -> ProducerIdAndEpoch:
        """End it, and have all markers written: the pair to go on with."""
        response = self.end(producer, commit=commit, version=version, transactional_id=transactional_id)
        assert response.error_code == ErrorCode.NONE
        self.write_markers()
        return pair(response) if version >= 2 else producer

    # -- what the shell does -------------------------------------------------------------------------------------------

    def _submit(
        self, decide: Callable[[TransactionShard, Now], Decision], refused: Callable[[ErrorCode], Message]
    ) -> Message:
        try:
            decision = decide(self.shard, self.now)
        except Refused as refusal:
            return refused(refusal.code)
        code = self.carry_out(decision)
        assert decision.response is not None, "every request has a response"
        return decision.response if code is None else refused(code)

    def carry_out(self, decision: Decision) -> ErrorCode | None:
        """Why not, if the log refuses it."""
        for timer in decision.timers:
            if timer.at_ms is None:
                self.timers.pop(timer.key, None)
            else:
                self.timers[timer.key] = timer.at_ms
        if decision.records and self.refuses is not None:
            if decision.if_refused is not None:
                self.carry_out(decision.if_refused(self.refuses, self.now))
            return self.refuses
        assert not decision.replies
        for record in decision.records:
            assert isinstance(record, StoredRecord)
            self._append(record)
        for action in decision.actions:
            match action:
                case WriteMarkers():
                    self.markers.append(action)
                case WriteFences():
                    self.fences.append(action)
                case TransactionCompleted(transactional_id):
                    self.completed.append(transactional_id)
                case _:
                    raise AssertionError(action)
        return None

    def _append(self, record: StoredRecord) -> None:
        key, value = self.shard.encode(record)
        self.log.append((key, value))
        decoded = self.shard.decode(key, value)
        assert decoded is not None
        self.shard.replay(decoded, None)

    def write_markers(self) -> list[WriteMarkers]:
        """Every partition writes the requested markers and reports that to the shard."""
        written, self.markers = self.markers, []
        for action in written:
            self.report(action)
        return written

    def report(self, action: WriteMarkers) -> None:
        self.carry_out(self.shard.markers_written(action.transactional_id, action.producer, self.now))

    def advance(self, milliseconds: int) -> None:
        """Time goes by on both clocks, and timers fire as it does."""
        until_ms = self.now.steady_ms + milliseconds
        while self.timers:
            key, at_ms = min(self.timers.items(), key=lambda timer: timer[1])
            if at_ms > until_ms:
                break
            self._be_at(max(at_ms, self.now.steady_ms))
            del self.timers[key]
            self.carry_out(self.shard.timer_fired(key, self.now))
        self._be_at(until_ms)

    def _be_at(self, steady_ms: int) -> None:
        wall_ms, before_ms, believed_ms = self.now
        passed_ms = steady_ms - before_ms
        self.now = Now(wall_ms + passed_ms, steady_ms, believed_ms + passed_ms)

    def jump(self, milliseconds: int, *, believed: bool = False) -> None:
        """The wall clock is set to another time; no time passes. A jump back is believed at once."""
        wall_ms, steady_ms, believed_ms = self.now
        wall_ms += milliseconds
        self.now = Now(wall_ms, steady_ms, wall_ms if believed else min(believed_ms, wall_ms))

    # -- what can be seen ----------------------------------------------------------------------------------------------

    def transaction(self, transactional_id: str = ID) -> Transaction:
        return self.shard.transactions[transactional_id]

    def state(self) -> TransactionState:
        return self.transaction().state

    def records_of(self, transactional_id: str = ID) -> list[TransactionState]:
        """The states that the log has of it, one after another."""
        shard = TransactionShard(
            self.settings, 0, 0, next_producer_id=lambda: 0, transaction_version=lambda: self.version
        )
        states = []
        for key, value in self.log:
            record = shard.decode(key, value)
            assert record is not None
            shard.replay(record, None)
            if record.key.transactional_id == transactional_id:  # type: ignore[attr-defined]
                kept = shard.transactions.get(transactional_id)
                states.append(TransactionState.DEAD if kept is None else kept.state)
        return states


def pair(response: InitProducerIdResponse | EndTxnResponse) -> ProducerIdAndEpoch:
    assert response.error_code == ErrorCode.NONE, ErrorCode(response.error_code).name
    return ProducerIdAndEpoch(response.producer_id, response.producer_epoch)


def ongoing_pair(response: InitProducerIdResponse) -> ProducerIdAndEpoch:
    return ProducerIdAndEpoch(response.ongoing_txn_producer_id, response.ongoing_txn_producer_epoch)


def codes_of(response: Message) -> dict[TopicPartition, ErrorCode]:
    assert isinstance(response, AddPartitionsToTxnResult)
    return {
        TopicPartition(topic.name, result.partition_index): ErrorCode(result.partition_error_code)
        for topic in response.topic_results
        for result in topic.results_by_partition
    }
