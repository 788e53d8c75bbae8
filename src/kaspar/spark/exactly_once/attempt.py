"""An attempt of a task, as the protocol sees it: a transaction of its own, from the claim to prepared.

Nothing is opened for a batch that an earlier run has decided already. An attempt that has prepared its transaction
looks at the log once more: if the batch was decided meanwhile, nobody waits for this attempt, and it aborts what it
wrote; if it was not, whoever decides sees the transaction, and aborts it unless it is chosen.
"""

from dataclasses import dataclass, field

from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.client.transactions import Ending
from kaspar.spark.exactly_once.decisions import Standing
from kaspar.spark.exactly_once.names import BatchName, TransactionName
from kaspar.spark.exactly_once.ownership import claim, superseded
from kaspar.spark.exactly_once.parties import NotPublished, Parties


@dataclass(slots=True)
class Slots:
    """The transactional ids of a process. One is free for a batch if it was last used for an earlier one of the same
    run: a run begins a batch when the one before it is complete."""

    worker: str
    _last_used: dict[str, tuple[int, list[int]]] = field(default_factory=dict)
    """By query: the generation, and the batch that each slot was used for. No run comes back under an earlier one."""

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
    parties: Parties
    batch: BatchName
    transactional_id: str
    producer: ProducerIdAndEpoch
    """The pair to write with, and when it is prepared the one that ends it."""

    @classmethod
    def begin(cls, parties: Parties, slots: Slots, batch: BatchName) -> "Attempt | None":
        """None: the batch is decided, there is nothing to write. Raises Superseded."""
        state = parties.log.state(batch.query)
        if state.standing(batch.claim) is not Standing.OWNER:
            state = claim(parties, batch)
        if state.is_decided(batch.batch_id):
            return None
        transactional_id = slots.take(batch, state.generation)
        return cls(parties, batch, transactional_id, parties.coordinator.begin(transactional_id))

    def prepare(self) -> None:
        """All is written and acknowledged. Raises if nobody wants it any more: then it is aborted."""
        self.producer = self.parties.coordinator.prepare(self.transactional_id, self.producer)
        state = self.parties.log.look(self.batch.query)
        is_owner = state.standing(self.batch.claim) is Standing.OWNER
        if is_owner and not state.is_decided(self.batch.batch_id):
            return
        self.abort()
        if not is_owner:
            raise superseded(self.batch, state)
        raise NotPublished(f"{self.batch} was published without this attempt, which came too late")

    def abort(self, *, is_urgent: bool = True) -> None:
        self.parties.coordinator.end([Ending(self.transactional_id, self.producer, False)], is_urgent=is_urgent)
