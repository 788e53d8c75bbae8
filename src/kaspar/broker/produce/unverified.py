"""Transactional batches that wait until a coordinator has confirmed their transaction.

The first batch of a transaction on a partition waits for that, and only what the same producer sends to the same
partition waits behind it, so that a producer's batches are written in the order in which they came. Other producers are
not held up. Once the transaction has begun, its other batches are appended as any batch is.
What waits here counts towards the same limits as what waits for its checks (broker/produce/backlog.py).
"""

import functools
from collections import deque
from typing import Final, NamedTuple, TypeAlias

from kaspar.base.clock import Clock
from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.broker.produce.appender import Appender, Done, Failed, Written
from kaspar.broker.produce.backlog import Backlog
from kaspar.broker.produce.transaction_terms import TransactionTerms
from kaspar.broker.produce.verification import TransactionSupportedOperation, TransactionVerifier
from kaspar.broker.services import Tasks
from kaspar.replication.partition import Partition

CANNOT_VERIFY: Final = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""The coordinator cannot say now. Producers may not know these codes in a Produce response, and would not retry."""


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
    def lane(self) -> "_LaneKey":
        return _lane_of(self.partition, self.terms)


_LaneKey: TypeAlias = tuple[Partition, int, str]
"""The partition, producer id and transactional id. A request that names a producer's id with another transactional id
must not hold that producer up."""


def _lane_of(partition: Partition, terms: TransactionTerms) -> _LaneKey:
    return partition, terms.producer.producer_id, terms.transactional_id


class _Lane:
    """What one producer has sent to one partition, in order. The first is being verified, or written."""

    __slots__ = ("batches", "writing")

    def __init__(self, first: Unverified) -> None:
        self.batches = deque([first])
        self.writing = False


class UnverifiedBatches:
    def __init__(
        self, verifier: TransactionVerifier, appender: Appender, backlog: Backlog, tasks: Tasks, clock: Clock
    ) -> None:
        self._verifier = verifier
        self._appender = appender
        self._backlog = backlog
        self._tasks = tasks
        self._clock = clock
        self._lanes: dict[_LaneKey, _Lane] = {}

    def must_wait(self, partition: Partition, terms: TransactionTerms) -> bool:
        """Whether a batch of that producer cannot be written at once."""
        return _lane_of(partition, terms) in self._lanes or not partition.log.producers.in_transaction(*terms.producer)

    def add(self, batches: list[Unverified]) -> None:
        """All that one request brings, of one producer: its coordinator is asked once."""
        first_of_lanes = []
        for unverified in batches:
            self._backlog.add(len(unverified.batch))
            key = unverified.lane
            lane = self._lanes.get(key)
            if lane is None:
                self._lanes[key] = _Lane(unverified)
                first_of_lanes.append(unverified)
            else:
                lane.batches.append(unverified)
        if first_of_lanes:
            self._begin_verification(first_of_lanes)

    def _begin_verification(self, batches: list[Unverified]) -> None:
        self._tasks.spawn(self._verify(batches), name="verification of a transaction")

    async def _verify(self, batches: list[Unverified]) -> None:
        first = batches[0]
        try:
            codes = await self._verifier.verify(
                first.terms.transactional_id,
                first.terms.producer,
                {unverified.partition: unverified.base_sequence for unverified in batches},
                first.terms.support,
            )
        except Exception as problem:  # a bug that one request runs into must not stop those behind it
            for unverified in batches:
                self._on_bug(unverified, problem)
            return
        for unverified in batches:
            code = codes.get(unverified.partition, ErrorCode.NONE)
            if not self._is_first(unverified):
                continue  # the broker stops, and it was refused
            if code is ErrorCode.NONE:
                if self._write(unverified):
                    self._resume(unverified)
            else:
                self._finish(unverified, _refusal(code, unverified.terms.support))
                self._resume(unverified)

    def _is_first(self, unverified: Unverified) -> bool:
        lane = self._lanes.get(unverified.lane)
        return lane is not None and lane.batches[0] is unverified

    def _resume(self, behind: Unverified) -> None:
        """With what waits behind a batch that is done."""
        key = behind.lane
        lane = self._lanes[key]
        while lane.batches:
            unverified = lane.batches[0]
            if not unverified.partition.log.producers.in_transaction(*unverified.producer):
                self._begin_verification([unverified])
                return
            if not self._write(unverified):
                return
        del self._lanes[key]

    def _write(self, unverified: Unverified) -> bool:
        """Whether it is written or refused by now. If not, its checks take a while."""
        try:
            return self._write_or_raise(unverified)
        except Exception as problem:  # a bug that one batch runs into must not stop those behind it
            if self._is_first(unverified):
                self._leave(unverified)
            unverified.failed(problem)
            return True

    def _write_or_raise(self, unverified: Unverified) -> bool:
        partition, batch = unverified.partition, unverified.batch
        outcome: Written | KasparError | None
        try:
            outcome = self._appender.append_now(
                partition, batch, 0, len(batch), unverified.acks_all, self._clock.now_ms()
            )
        except KasparError as refusal:
            outcome = refusal
        if outcome is not None:
            self._finish(unverified, outcome)
            return True
        self._lanes[unverified.lane].writing = True
        self._backlog.remove(len(batch))  # from here on it counts as one that waits for its checks
        self._appender.append_later(
            partition,
            batch,
            acks_all=unverified.acks_all,
            done=functools.partial(self._written, unverified),
            failed=functools.partial(self._on_bug, unverified),
        )
        return False

    def _written(self, unverified: Unverified, outcome: Written | KasparError) -> None:
        self._finish(unverified, outcome)
        self._resume(unverified)

    def _leave(self, unverified: Unverified) -> None:
        lane = self._lanes[unverified.lane]
        first = lane.batches.popleft()
        assert first is unverified, "the batches of a lane are written in order"
        if not lane.writing:
            self._backlog.remove(len(unverified.batch))
        lane.writing = False

    def _finish(self, unverified: Unverified, outcome: Written | KasparError) -> None:
        self._leave(unverified)
        unverified.done(outcome)

    def _on_bug(self, unverified: Unverified, problem: Exception) -> None:
        if self._is_first(unverified):
            self._leave(unverified)
            unverified.failed(problem)
            self._resume(unverified)

    def refuse_all(self) -> None:
        """The broker stops: what is not being written yet will not be."""
        refusal = _refusal(ErrorCode.NOT_COORDINATOR, TransactionSupportedOperation.VERSION_2)
        for key, lane in tuple(self._lanes.items()):
            kept = 1 if lane.writing else 0
            while len(lane.batches) > kept:
                unverified = lane.batches.pop()
                self._backlog.remove(len(unverified.batch))
                unverified.done(refusal)
            if not kept:
                del self._lanes[key]


def _refusal(code: ErrorCode, support: TransactionSupportedOperation) -> Refused:
    """With codes and messages that producers understand and act upon: Kafka's."""
    if code in CANNOT_VERIFY or (
        code is ErrorCode.CONCURRENT_TRANSACTIONS and support is not TransactionSupportedOperation.VERSION_2
    ):
        message = f"Unable to verify the partition has been added to the transaction. Underlying error: {code.name}"
        return NotVerified(ErrorCode.NOT_ENOUGH_REPLICAS, message)
    if code is ErrorCode.INVALID_TXN_STATE:
        return NotVerified(code, "Partition was not added to the transaction")
    return NotVerified(code, f"the transaction coordinator responded with {code.name}")
