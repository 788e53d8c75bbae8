"""One attempt of a task in the protocol: its transaction, from the claim until it is prepared.

No transaction is opened for a batch that an earlier run has already decided. After preparing its transaction an attempt
reads the log once more. If the batch was decided meanwhile, the decision does not include this attempt, and it aborts
what it wrote. Otherwise the process that decides sees the transaction, and aborts it if it is not chosen.
"""

from dataclasses import dataclass, field

from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.client.transactions import Ending
from kaspar.exactly_once.decisions import Standing
from kaspar.exactly_once.errors import NotPublished
from kaspar.exactly_once.names import BatchName, TransactionName
from kaspar.exactly_once.ownership import claim, superseded
from kaspar.exactly_once.participants import Participants


@dataclass(slots=True)
class Slots:
    """The transactional ids of a process. A slot is free for a batch if it was last used for an earlier batch of the
    same run: a run begins a batch only when the previous one is complete."""

    worker: str
    _last_used: dict[str, tuple[int, list[int]]] = field(default_factory=dict)
    """The generation of each query, and for each slot the batch it was last used for. Generations only grow."""

    def take(self, batch: BatchName, generation: int) -> str:
        of_generation, used = self._last_used.get(batch.query, (generation, []))
        if of_generation != generation:
            used = []
        self._last_used[batch.query] = generation, used
        slot = next((slot for slot, last in enumerate(used) if last < batch.batch_id), len(used))
        used[slot : slot + 1] = [batch.batch_id]
        return str(TransactionName(batch.query, generation, self.worker, slot))


@dataclass(slots=True)
class Attempt:
    participants: Participants
    batch: BatchName
    transactional_id: str
    producer: ProducerIdAndEpoch
    """The producer id and epoch to write with; once prepared, the ones to end the transaction with."""

    @classmethod
    def begin(cls, participants: Participants, slots: Slots, batch: BatchName) -> "Attempt | None":
        """Open a transaction for the batch; returns None if it is already decided. Raises Superseded."""
        state = participants.log.state(batch.query)
        if state.standing(batch.claim) is not Standing.OWNER:
            state = claim(participants, batch)
        if state.is_decided(batch.batch_id):
            return None
        transactional_id = slots.take(batch, state.generation)
        return cls(participants, batch, transactional_id, participants.coordinator.begin(transactional_id))

    def prepare(self) -> None:
        """Prepare the transaction when all records are acknowledged. Aborts it and raises if it is no longer needed."""
        self.producer = self.participants.coordinator.prepare(self.transactional_id, self.producer)
        state = self.participants.log.read_to_end(self.batch.query)
        is_owner = state.standing(self.batch.claim) is Standing.OWNER
        if is_owner and not state.is_decided(self.batch.batch_id):
            return
        self.abort()
        if not is_owner:
            raise superseded(self.batch, state)
        raise NotPublished(f"{self.batch} was published without this attempt, which finished too late")

    def abort(self, *, is_urgent: bool = True) -> None:
        self.participants.coordinator.end([Ending(self.transactional_id, self.producer, False)], is_urgent=is_urgent)
