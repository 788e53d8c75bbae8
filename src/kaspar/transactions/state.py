"""One transactional id and what may become of it: the states, the table of transitions, and the pairs of producer id
and epoch that each of them leaves behind.

A Transaction is a value. What an event makes of it is a new one; the log has it before anybody sees it.

Rules:
- `TRANSITIONS` is the only place that says what may follow what.
- Every end of a transaction under transactions v2 (KIP-890), and every end that its client did not ask for, raises the
  epoch: what was sent for one transaction can never reach the next.
- Epochs end at 32766. The maximum, 32767, appears only in markers and fences: a producer with an exhausted epoch can
  still be fenced, and continues with a new producer id at epoch 0.
- A transaction that is prepared leaves out an epoch, which no client ever has: the one of its `fence`.
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
"""The highest epoch a client ever has."""
MARKER_EPOCH: Final = 32767
"""The epoch of the last marker of a producer id that is not used any more."""
EPOCHS_TO_PREPARE: Final = 2
"""So much higher than the epoch of the records is that of who prepares the transaction: one is for the fence."""
NO_TIMEOUT_MS: Final = 2**31 - 1
"""The timeout of those who take part in a two-phase commit (KIP-939): none. It waits for its owner's decision."""
TRANSACTIONS_V2: Final = 2
"""The first level of `transaction.version` at which every end raises the epoch."""


class TransactionState(Enum):
    """Kafka's states by Kafka's names. PREPARED is ours: Kafka calls it Ongoing, on the wire and in the log, where the
    second pair of producer id and epoch tells it apart."""

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
    _E.ABORT: _S.PREPARE_ABORT,  # of nothing, under transactions v2: the client cannot know that nothing was written
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
    _S.PREPARE_EPOCH_FENCE: {_E.ABORT: _S.PREPARE_ABORT},  # on the way to it, in one step: never in the log
    _S.PREPARE_COMMIT: {_E.MARKERS_WRITTEN: _S.COMPLETE_COMMIT},
    _S.PREPARE_ABORT: {_E.MARKERS_WRITTEN: _S.COMPLETE_ABORT},
    _S.COMPLETE_COMMIT: _BETWEEN_TRANSACTIONS,
    _S.COMPLETE_ABORT: _BETWEEN_TRANSACTIONS,
    _S.DEAD: {},  # in the log: a tombstone
}

OPEN_STATES: Final = frozenset({_S.ONGOING, _S.PREPARED})
ENDING_STATES: Final = frozenset({_S.PREPARE_COMMIT, _S.PREPARE_ABORT})
COMPLETE_STATES: Final = frozenset({_S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """What is known of one transactional id: its last transaction, and its producer. Times are the wall clock's."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    """The pair under which the records of the transaction are in the partitions and, once it ends, its markers."""
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
        """The id and epoch that its client has: a producer with others is fenced."""
        if self.next_producer_id == NO_PRODUCER_ID:
            return self.producer
        return ProducerIdAndEpoch(self.next_producer_id, max(self.next_producer_epoch, 0))

    @property
    def is_epoch_exhausted(self) -> bool:
        return self.client_producer.producer_epoch >= LAST_EPOCH

    @property
    def waits_for_its_owner(self) -> bool:
        """Open, and no timeout ends it."""
        return self.state in OPEN_STATES and self.timeout_ms == NO_TIMEOUT_MS

    def directly_follows(self, producer: ProducerIdAndEpoch) -> bool:
        """Whether `producer` is the pair its client had before its last EndTxn: who names it, repeats that."""
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
        """The pair that a prepared transaction has at its partitions: above that of its records, which nobody can write
        with any more, and below that of its owner, who has to ask the coordinator, and is refused.
        """
        return ProducerIdAndEpoch(self.producer.producer_id, min(self.producer.producer_epoch + 1, MARKER_EPOCH))

    def was_prepared_by(self, producer: ProducerIdAndEpoch) -> bool:
        """Whether this pair of its records has prepared it, and nobody has taken it over since."""
        if self.state is not TransactionState.PREPARED or producer != self.producer:
            return False
        current = self.client_producer
        if current.producer_id == producer.producer_id:
            return current.producer_epoch == producer.producer_epoch + EPOCHS_TO_PREPARE
        return current.producer_epoch == 0 and producer.producer_epoch + EPOCHS_TO_PREPARE > LAST_EPOCH

    # -- what events make of it --------------------------------------------------------------------------------------

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
        """Nothing is added to it any more, and only who knows the new pair may end it."""
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
        """As its client asked for. By the rules before transactions v2 its client's epoch stays."""
        event = TransactionEvent.COMMIT if committed else TransactionEvent.ABORT
        raised = version >= TRANSACTIONS_V2
        pairs = self._raised(next_producer_id) if raised else self._ends_with(self.client_producer)
        return self._after(event, **pairs, **self._end(version, now_ms))

    def fenced(self, *, version: int, now_ms: int, next_producer_id: Callable[[], int]) -> "Transaction":
        """Aborted, although its client did not ask for it: its epoch is raised by the rules of every version."""
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
        """The epoch after its client's. A client that has no epoch left gets a new id, if there is a way to get one:
        otherwise with its next InitProducerId.
        """
        if self.is_epoch_exhausted and next_producer_id is not None:
            return self._ends_with(ProducerIdAndEpoch(next_producer_id(), 0))
        return self._ends_with(_next_epoch(self.client_producer))

    def _ends_with(self, after: ProducerIdAndEpoch) -> dict[str, Any]:
        """Its client goes on with that pair. Markers have it too, unless it has another id than the records: then they
        have the last epoch of theirs.
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
