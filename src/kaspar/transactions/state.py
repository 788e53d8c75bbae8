"""One transactional id and its possible changes: the states, the table of transitions, and the resulting pairs of
producer id and epoch.

A Transaction is an immutable value. An event creates a new one, which is in the log before it becomes visible.

Rules:
- `TRANSITIONS` is the only definition of which state may follow which.
- Every end of a transaction under transactions v2 (KIP-890), and every end that its client did not request, bumps the
  epoch: a batch that was sent for one transaction can never become part of the next.
- Epochs end at 32766. The maximum, 32767, is used only in markers and fences: a producer with an exhausted epoch can
  still be fenced, and continues with a new producer id at epoch 0.
- A prepared transaction skips an epoch, which no client ever has: that of its `fence`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
NO_TIME: Final = -1
LAST_EPOCH: Final = 32766
"""The highest epoch that a client can have."""
MARKER_EPOCH: Final = 32767
"""The epoch of the last marker of a producer id that is no longer used."""
EPOCHS_TO_PREPARE: Final = 2
"""The epoch of the client that prepared the transaction is this much above its records': one is for the fence."""
NO_TIMEOUT_MS: Final = 2**31 - 1
"""Means no timeout, in a two-phase commit (KIP-939): the transaction waits for its owner's decision."""
TRANSACTIONS_V2: Final = 2
"""The first level of `transaction.version` at which every end bumps the epoch."""


class TransactionState(Enum):
    """Kafka's states by Kafka's names. PREPARED is ours: Kafka calls it Ongoing, on the wire and in the log, where the
    second pair of producer id and epoch distinguishes it."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARED = "Prepared"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"

    @property
    def wire_name(self) -> str:
        return TransactionState.ONGOING.value if self is TransactionState.PREPARED else self.value


class TransactionEvent(Enum):
    INITIALISE = "InitProducerId"
    ADD_PARTITIONS = "partitions are added"
    PREPARE = "InitProducerId keeps the transaction"
    COMMIT = "EndTxn commits"
    ABORT = "EndTxn aborts"
    FENCE = "a timeout, or InitProducerId of another producer"
    MARKERS_WRITTEN = "every partition has its marker"
    EXPIRE = "the id was idle for too long"


_S = TransactionState
_E = TransactionEvent
_BETWEEN_TRANSACTIONS: Final = {
    _E.INITIALISE: _S.EMPTY,
    _E.ADD_PARTITIONS: _S.ONGOING,
    _E.ABORT: _S.PREPARE_ABORT,  # of an empty one, under transactions v2: the client cannot know that it is empty
    _E.EXPIRE: _S.DEAD,
}

TRANSITIONS: Final[Mapping[TransactionState, Mapping[TransactionEvent, TransactionState]]] = {
    _S.EMPTY: _BETWEEN_TRANSACTIONS,
    _S.ONGOING: {
        _E.ADD_PARTITIONS: _S.ONGOING,
        _E.PREPARE: _S.PREPARED,
        _E.COMMIT: _S.PREPARE_COMMIT,
        _E.ABORT: _S.PREPARE_ABORT,
        _E.FENCE: _S.PREPARE_EPOCH_FENCE,
    },
    _S.PREPARED: {
        _E.PREPARE: _S.PREPARED,
        _E.COMMIT: _S.PREPARE_COMMIT,
        _E.ABORT: _S.PREPARE_ABORT,
        _E.FENCE: _S.PREPARE_EPOCH_FENCE,
    },
    _S.PREPARE_EPOCH_FENCE: {_E.ABORT: _S.PREPARE_ABORT},  # an intermediate step of one event: never in the log
    _S.PREPARE_COMMIT: {_E.MARKERS_WRITTEN: _S.COMPLETE_COMMIT},
    _S.PREPARE_ABORT: {_E.MARKERS_WRITTEN: _S.COMPLETE_ABORT},
    _S.COMPLETE_COMMIT: _BETWEEN_TRANSACTIONS,
    _S.COMPLETE_ABORT: _BETWEEN_TRANSACTIONS,
    _S.DEAD: {},  # a tombstone in the log
}

OPEN_STATES: Final = frozenset({_S.ONGOING, _S.PREPARED})
ENDING_STATES: Final = frozenset({_S.PREPARE_COMMIT, _S.PREPARE_ABORT})
COMPLETE_STATES: Final = frozenset({_S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """The state of one transactional id: its last transaction, and its producer. Times are by the wall clock."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    """The pair of the transaction's records in the partitions and, once it ends, of its markers."""
    timeout_ms: int
    last_update_ms: int
    start_ms: int = NO_TIME
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    next_producer_epoch: int = NO_EPOCH
    client_version: int = 0
    """The `transaction.version` by whose rules its last step was made."""

    @property
    def client_producer(self) -> ProducerIdAndEpoch:
        """The id and epoch of its client. A producer with another pair is fenced."""
        if self.next_producer_id == NO_PRODUCER_ID:
            return self.producer
        return ProducerIdAndEpoch(self.next_producer_id, max(self.next_producer_epoch, 0))

    @property
    def is_epoch_exhausted(self) -> bool:
        return self.client_producer.producer_epoch >= LAST_EPOCH

    @property
    def waits_for_its_owner(self) -> bool:
        """Whether it is open, and no timeout ends it."""
        return self.state in OPEN_STATES and self.timeout_ms == NO_TIMEOUT_MS

    def directly_follows(self, producer: ProducerIdAndEpoch) -> bool:
        """Whether `producer` is the client's pair before its last EndTxn, so that a request with it is a retry."""
        current = self.client_producer
        if current.producer_id == producer.producer_id:
            return current.producer_epoch == producer.producer_epoch + 1
        return (
            self.previous_producer_id == producer.producer_id
            and producer.producer_epoch == LAST_EPOCH
            and current.producer_epoch == 0
        )

    @property
    def fence(self) -> ProducerIdAndEpoch:
        """The pair with which a prepared transaction is fenced in its partitions. It is above that of the records, with
        which nothing can be written any more, and below that of the owner, which has to ask the coordinator, and is
        refused.
        """
        return ProducerIdAndEpoch(self.producer.producer_id, min(self.producer.producer_epoch + 1, MARKER_EPOCH))

    def was_prepared_by(self, producer: ProducerIdAndEpoch) -> bool:
        """Whether this pair, that of its records, has prepared it, and no other has taken it over since."""
        if self.state is not TransactionState.PREPARED or producer != self.producer:
            return False
        current = self.client_producer
        if current.producer_id == producer.producer_id:
            return current.producer_epoch == producer.producer_epoch + EPOCHS_TO_PREPARE
        return current.producer_epoch == 0 and producer.producer_epoch + EPOCHS_TO_PREPARE > LAST_EPOCH

    # -- events ------------------------------------------------------------------------------------------------------

    def initialised(self, producer: ProducerIdAndEpoch, timeout_ms: int, now_ms: int) -> "Transaction":
        return self._after(
            TransactionEvent.INITIALISE,
            producer=producer,
            previous_producer_id=self.producer.producer_id,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            start_ms=NO_TIME,
            last_update_ms=now_ms,
        )

    def with_partitions(self, added: frozenset[TopicPartition], *, version: int, now_ms: int) -> "Transaction":
        return self._after(
            TransactionEvent.ADD_PARTITIONS,
            partitions=self.partitions | added,
            previous_producer_id=self.producer.producer_id,
            start_ms=self.start_ms if self.state is TransactionState.ONGOING else now_ms,
            last_update_ms=now_ms,
            client_version=version,
        )

    def kept(self, client_producer: ProducerIdAndEpoch, timeout_ms: int, now_ms: int) -> "Transaction":
        """Keep the transaction: nothing is added to it any more, and it can be ended only with the new pair."""
        return self._after(
            TransactionEvent.PREPARE,
            previous_producer_id=self.producer.producer_id,
            next_producer_id=client_producer.producer_id,
            next_producer_epoch=client_producer.producer_epoch,
            timeout_ms=timeout_ms,
            last_update_ms=now_ms,
        )

    def ended(
        self, *, committed: bool, version: int, now_ms: int, next_producer_id: Callable[[], int]
    ) -> "Transaction":
        """End the transaction as its client requested. Before transactions v2 the client's epoch stays the same."""
        event = TransactionEvent.COMMIT if committed else TransactionEvent.ABORT
        raised = version >= TRANSACTIONS_V2
        pairs = self._raised(next_producer_id) if raised else self._ends_with(self.client_producer)
        return self._after(event, **pairs, **self._end(version, now_ms))

    def fenced(self, *, version: int, now_ms: int, next_producer_id: Callable[[], int]) -> "Transaction":
        """Abort the transaction without a request of its client, whose epoch is bumped in every version."""
        pairs = self._raised(next_producer_id if version >= TRANSACTIONS_V2 else None)
        fence = self._after(TransactionEvent.FENCE, **pairs)
        return fence._after(TransactionEvent.ABORT, **self._end(version, now_ms))

    def completed(self, now_ms: int) -> "Transaction":
        return self._after(
            TransactionEvent.MARKERS_WRITTEN,
            producer=self.client_producer,
            next_producer_id=NO_PRODUCER_ID,
            next_producer_epoch=NO_EPOCH,
            partitions=frozenset(),
            last_update_ms=now_ms,
        )

    def expired(self) -> "Transaction":
        return self._after(TransactionEvent.EXPIRE)

    def _end(self, version: int, now_ms: int) -> dict[str, Any]:
        return {
            "previous_producer_id": self.client_producer.producer_id,
            "start_ms": self.start_ms if self.state in OPEN_STATES else now_ms,
            "last_update_ms": now_ms,
            "client_version": version,
        }

    def _raised(self, next_producer_id: Callable[[], int] | None) -> dict[str, Any]:
        """The next epoch of its client. If there is none, the client gets a new id now, provided that one can be
        assigned, or otherwise with its next InitProducerId.
        """
        if self.is_epoch_exhausted and next_producer_id is not None:
            return self._ends_with(ProducerIdAndEpoch(next_producer_id(), 0))
        return self._ends_with(_next_epoch(self.client_producer))

    def _ends_with(self, after: ProducerIdAndEpoch) -> dict[str, Any]:
        """The client continues with this pair. Markers have it too, unless its id is not that of the records: then they
        have the last epoch of the records' id.
        """
        if after.producer_id == self.producer.producer_id:
            return {"producer": after, "next_producer_id": NO_PRODUCER_ID, "next_producer_epoch": NO_EPOCH}
        return {
            "producer": ProducerIdAndEpoch(self.producer.producer_id, MARKER_EPOCH),
            "next_producer_id": after.producer_id,
            "next_producer_epoch": after.producer_epoch or NO_EPOCH,
        }

    def _after(self, event: TransactionEvent, **changes: Any) -> "Transaction":
        following = TRANSITIONS[self.state].get(event)
        assert following is not None, f"{self.transactional_id} is {self.state.value}: no {event.name} may come now"
        return replace(self, state=following, **changes)


def _next_epoch(pair: ProducerIdAndEpoch) -> ProducerIdAndEpoch:
    return ProducerIdAndEpoch(pair.producer_id, pair.producer_epoch + 1)
