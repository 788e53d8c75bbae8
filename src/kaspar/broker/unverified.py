"""Transactional batches that wait until a coordinator has confirmed their transaction.

The first batch of a transaction on a partition waits for that, and only what the same producer sends to the same
partition lines up behind it, so that a producer's batches are written in the order in which they came. Everyone else
passes by. When the transaction has begun, its other batches take the usual way.
What waits here counts towards the same limits as what waits for its checks (broker/appends.py).
"""

import functools
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.broker.appends import Check, Done, Failed
from kaspar.broker.transaction_terms import TransactionTerms
from kaspar.broker.verification import TransactionSupport, is_fenced, verify_transaction
from kaspar.replication.partition import Partition
from kaspar.storage import Appended, PreparedBatch, prepare_inline

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

CANNOT_ASK: Final = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Producers may not know these as answers to a produce request, and would not try again."""


class NotVerified(Refused):
    """Refused before any log has looked at the batch."""


class Unverified(NamedTuple):
    partition: Partition
    batch: bytearray
    base_sequence: int
    terms: TransactionTerms
    acks_all: bool
    done: Done
    failed: Failed

    @property
    def producer(self) -> ProducerIdAndEpoch:
        return self.terms.producer

    @property
    def lane(self) -> "_Key":
        return _lane_of(self.partition, self.terms)


_Key: TypeAlias = tuple[Partition, int, str]
"""The partition, and who the request says that it is of: a producer id and a transactional id. Whoever has a producer's
id and not its transactional id must not hold that producer up."""


def _lane_of(partition: Partition, terms: TransactionTerms) -> _Key:
    return partition, terms.producer.producer_id, terms.transactional_id


class _Lane:
    """What one producer has sent to one partition, in order. The first is being asked about, or written."""

    __slots__ = ("batches", "writing")

    def __init__(self, first: Unverified) -> None:
        self.batches = deque([first])
        self.writing = False


class UnverifiedBatches:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._lanes: dict[_Key, _Lane] = {}

    def must_wait(self, partition: Partition, terms: TransactionTerms) -> bool:
        """Whether a batch of that producer cannot be written at once."""
        return _lane_of(partition, terms) in self._lanes or not partition.log.producers.in_transaction(*terms.producer)

    def check_of(self, terms: TransactionTerms) -> Check | None:
        """What to call right before a batch is written to a transaction that is open. None where nothing need be."""
        if not self._broker.config.transaction_two_phase_commit_enable:
            return None
        return functools.partial(self._check_not_fenced, terms)

    def _check_not_fenced(self, terms: TransactionTerms) -> None:
        try:
            fenced = is_fenced(self._broker, terms.transactional_id, terms.producer)
        except Refused as refusal:
            raise _refusal(refusal.code, terms.support) from refusal
        if fenced:
            raise _refusal(ErrorCode.INVALID_PRODUCER_EPOCH, terms.support)

    def add(self, batches: list[Unverified]) -> None:
        """All that one request brings, of one producer: its coordinator is asked once."""
        to_ask = []
        for unverified in batches:
            self._broker.appends.hold(len(unverified.batch))
            key = unverified.lane
            lane = self._lanes.get(key)
            if lane is None:
                self._lanes[key] = _Lane(unverified)
                to_ask.append(unverified)
            else:
                lane.batches.append(unverified)
        if to_ask:
            self._ask(to_ask)

    def _ask(self, batches: list[Unverified]) -> None:
        self._broker.spawn(self._verify(batches), name="verification of a transaction")

    async def _verify(self, batches: list[Unverified]) -> None:
        first = batches[0]
        try:
            codes = await verify_transaction(
                self._broker,
                first.terms.transactional_id,
                first.terms.producer,
                {unverified.partition: unverified.base_sequence for unverified in batches},
                first.terms.support,
            )
        except Exception as problem:  # a bug met by one request must not keep those behind it from their turn
            for unverified in batches:
                self._met_a_bug(unverified, problem)
            return
        for unverified in batches:
            code = codes.get(unverified.partition, ErrorCode.NONE)
            if not self._is_first(unverified):
                continue  # the broker stops, and it was refused
            if code is ErrorCode.NONE:
                if self._write(unverified):
                    self._go_on(unverified)
            else:
                self._finish(unverified, _refusal(code, unverified.terms.support), None)
                self._go_on(unverified)

    def _is_first(self, unverified: Unverified) -> bool:
        lane = self._lanes.get(unverified.lane)
        return lane is not None and lane.batches[0] is unverified

    def _go_on(self, behind: Unverified) -> None:
        """With what lined up behind a batch that is done."""
        key = behind.lane
        lane = self._lanes[key]
        while lane.batches:
            unverified = lane.batches[0]
            if not unverified.partition.log.producers.in_transaction(*unverified.producer):
                self._ask([unverified])
                return
            if not self._write(unverified):
                return
        del self._lanes[key]

    def _write(self, unverified: Unverified) -> bool:
        """Whether that was done at once, one way or the other. If not, its checks take a while."""
        try:
            return self._write_or_raise(unverified)
        except Exception as problem:  # a bug met by one batch must not keep those behind it from their turn
            if self._is_first(unverified):
                self._leave(unverified)
            unverified.failed(problem)
            return True

    def _write_or_raise(self, unverified: Unverified) -> bool:
        appends, partition, batch = self._broker.appends, unverified.partition, unverified.batch
        config = partition.log.config
        check = self.check_of(unverified.terms)
        now_ms = self._broker.clock.now_ms()
        prepared = None
        try:
            if partition not in appends.queues and not partition.log.cold:
                prepared = prepare_inline(batch, 0, len(batch), config, now_ms)
        except KasparError as problem:
            self._finish(unverified, problem, None)
            return True
        if prepared is None:
            self._lanes[unverified.lane].writing = True
            appends.let_go(len(batch))  # from here on it counts as one that waits for its checks
            appends.add(
                partition,
                batch,
                acks_all=unverified.acks_all,
                done=functools.partial(self._written, unverified),
                failed=functools.partial(self._met_a_bug, unverified),
                check=check,
            )
            return False
        try:
            if check is not None:
                check()
            appended = partition.append_as_leader(prepared, acks_all=unverified.acks_all, now_ms=now_ms)
        except KasparError as problem:
            self._finish(unverified, problem, None)
        else:
            self._finish(unverified, appended, prepared)
        return True

    def _written(self, unverified: Unverified, outcome: Appended | KasparError, prepared: PreparedBatch | None) -> None:
        self._finish(unverified, outcome, prepared)
        self._go_on(unverified)

    def _leave(self, unverified: Unverified) -> None:
        lane = self._lanes[unverified.lane]
        first = lane.batches.popleft()
        assert first is unverified, "a lane is worked off in order"
        if not lane.writing:
            self._broker.appends.let_go(len(unverified.batch))
        lane.writing = False

    def _finish(self, unverified: Unverified, outcome: Appended | KasparError, prepared: PreparedBatch | None) -> None:
        self._leave(unverified)
        unverified.done(outcome, prepared)

    def _met_a_bug(self, unverified: Unverified, problem: Exception) -> None:
        if self._is_first(unverified):
            self._leave(unverified)
            unverified.failed(problem)
            self._go_on(unverified)

    def refuse_all(self) -> None:
        """The broker stops: what is not being written yet will not be."""
        refusal = _refusal(ErrorCode.NOT_COORDINATOR, TransactionSupport.VERSION_2)
        for key, lane in tuple(self._lanes.items()):
            kept = 1 if lane.writing else 0
            while len(lane.batches) > kept:
                unverified = lane.batches.pop()
                self._broker.appends.let_go(len(unverified.batch))
                unverified.done(refusal, None)
            if not kept:
                del self._lanes[key]


def _refusal(code: ErrorCode, support: TransactionSupport) -> Refused:
    """In words that a producer understands and acts upon: Kafka's choices."""
    if code in CANNOT_ASK or (
        code is ErrorCode.CONCURRENT_TRANSACTIONS and support is not TransactionSupport.VERSION_2
    ):
        message = f"Unable to verify the partition has been added to the transaction. Underlying error: {code.name}"
        return NotVerified(ErrorCode.NOT_ENOUGH_REPLICAS, message)
    if code is ErrorCode.INVALID_TXN_STATE:
        return NotVerified(code, "Partition was not added to the transaction")
    return NotVerified(code, f"the transaction's coordinator answered {code.name}")
