"""Transactional batches that wait until a coordinator has verified their transaction.

The first batch of a transaction on a partition waits for that. Only later batches of the same producer for the same
partition wait behind it, so that a producer's batches are written in order; other producers are not delayed. Once the
transaction has begun, its other batches are appended like any batch. Batches that wait here count towards the same
limits as those that wait for their checks (broker/produce/backlog.py).
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
"""The coordinator cannot decide now. Producers may not know these errors in a Produce response, and not retry."""


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
"""The partition, producer id and transactional id. The latter is included so that a request that names a producer's id
with another transactional id does not delay that producer.
"""


def _lane_of(partition: Partition, terms: TransactionTerms) -> _LaneKey:
    return partition, terms.producer.producer_id, terms.transactional_id


class _Lane:
    """The batches of one producer for one partition, in order. The first is being verified, or written."""

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
        """Add all batches of one request, which are of one producer, so that its coordinator is asked once."""
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
        except Exception as problem:  # a bug with one request must not stop later ones
            for unverified in batches:
                self._on_bug(unverified, problem)
            return
        for unverified in batches:
            code = codes.get(unverified.partition, ErrorCode.NONE)
            if not self._is_first(unverified):
                continue  # it was refused because the broker stops
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
        """Continue with the batches behind one that is done."""
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
        """Write a batch. Returns whether it is written or refused by now. If not, its checks take longer."""
        try:
            return self._write_or_raise(unverified)
        except Exception as problem:  # a bug with one batch must not stop later ones
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
        self._backlog.remove(len(batch))  # from here on it counts as waiting for its checks
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
        """Refuse the batches that are not being written yet, because the broker stops."""
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
    """The error for the producer, with a code and message of Kafka's that it understands and acts upon."""
    if code in CANNOT_VERIFY or (
        code is ErrorCode.CONCURRENT_TRANSACTIONS and support is not TransactionSupportedOperation.VERSION_2
    ):
        message = f"Unable to verify the partition has been added to the transaction. Underlying error: {code.name}"
        return NotVerified(ErrorCode.NOT_ENOUGH_REPLICAS, message)
    if code is ErrorCode.INVALID_TXN_STATE:
        return NotVerified(code, "Partition was not added to the transaction")
    return NotVerified(code, f"the transaction coordinator responded with {code.name}")
