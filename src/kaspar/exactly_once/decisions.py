"""Replays the decision log: who owns a query, and which batches are decided. No I/O: records in, state out.

The order of the log decides, so every reader arrives at the same state:
- An *owner* record is in force if its generation is larger than every one before it. A run that claims a query uses the
  generation after the last one it saw, so of two concurrent claims the first wins.
- A *decision* is valid if its generation and claim are in force at its offset, and its batch is later than all that are
  decided. It names the transactions to commit: all of them, and no others of that batch.
- A *completion* says that all transactions of a decision are committed. It is true whichever process wrote it.
- An owner record may restart the count at its own generation: what was decided before is forgotten. Otherwise it keeps
  the generation at which the count started, and who numbers the batches (names.Origin), from the owner before it.

The batch ids of a query increase, so the last decision covers all before it. Compaction of the log never changes the
state: keys are unique to a record (a completion replaces its own decision), owners keep their order, and a record is
deleted only when a later one has made it meaningless. That is a completion once a later batch is complete, and an owner
that OWNERS_KEPT others have followed, unless a decision of that owner is not complete yet.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple, TypeAlias

from kaspar.base.errors import KasparError
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.exactly_once.names import BatchName, Origin

OWNERS_KEPT = 16
ANY_TOPIC = "*"
"""Stands for the topics of a write whose rows have a `topic` column."""
_FORMAT = 1
_ORIGIN_FIELDS = 3  # the fields in the record's "origin": earlier versions accept no more
_OWNER, _DECISION = "owner", "decision"

LogRecord: TypeAlias = tuple[bytes, bytes | None]
"""Key and value; a value of None deletes the key."""


class DecidedTransaction(NamedTuple):
    """A transaction that a task has finished writing. `producer` is the id and epoch to end it with."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    task: int
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Owner:
    query: str
    generation: int
    claim: str
    nonce: str
    """Makes the record unique: several tasks of a run may append the same claim."""
    origin: Origin | None = None
    """None if unknown, as in records of earlier versions; the next claim sets it."""
    counts_since: int = 0
    """Decisions of earlier generations than this one are forgotten."""

    @property
    def identity(self) -> tuple[str, int, str, str]:
        return self.query, self.generation, self.claim, self.nonce

    @property
    def key(self) -> bytes:
        return _text([_OWNER, *self.identity])

    def record(self) -> LogRecord:
        content: dict[str, object] = {"format": _FORMAT}
        if self.origin is not None:
            content["origin"] = self.origin[:_ORIGIN_FIELDS]
            if self.origin.kind is not None:
                content["kind"] = self.origin.kind
        if self.counts_since:
            content["counts_since"] = self.counts_since
        return self.key, _text(content)


@dataclass(frozen=True, slots=True)
class BatchDecision:
    batch: BatchName
    generation: int
    nonce: str
    transactions: tuple[DecidedTransaction, ...]
    covers: tuple[str, ...] | None = None
    """The topic of each write that the decision publishes, including writes without rows; None if unknown."""
    note: str | None = None
    """Any text of the program, returned with the last decision, such as how far it has read."""

    @classmethod
    def of(
        cls,
        batch: BatchName,
        generation: int,
        nonce: str,
        transactions: Sequence[DecidedTransaction],
        covers: Sequence[str] | None,
        note: str | None = None,
    ) -> "BatchDecision":
        """A decision with a fingerprint of its transactions in its key: no other decision can replace it in the log."""
        nonce = f"{nonce}.{_fingerprint(transactions)}"
        return cls(batch, generation, nonce, tuple(transactions), None if covers is None else tuple(covers), note)

    @property
    def key(self) -> bytes:
        batch = self.batch
        return _text([_DECISION, batch.query, batch.batch_id, self.generation, batch.claim, self.nonce])

    def is_about(self, transactions: Sequence[DecidedTransaction]) -> bool:
        """Whether the decision names these transactions. A completion does not list them, but keeps the fingerprint."""
        return self.nonce.endswith(f".{_fingerprint(transactions)}")

    @property
    def transactional_ids(self) -> frozenset[str]:
        return frozenset(each.transactional_id for each in self.transactions)

    def record(self) -> LogRecord:
        named = [[each.transactional_id, *each.producer, each.task, each.topics] for each in self.transactions]
        return self.key, self._content(is_complete=False, transactions=named)

    def completion(self) -> LogRecord:
        return self.key, self._content(is_complete=True, transactions=[])

    def _content(self, *, is_complete: bool, transactions: list[list[object]]) -> bytes:
        content: dict[str, object] = {"format": _FORMAT, "complete": is_complete, "transactions": transactions}
        if self.covers is not None:
            content["covers"] = self.covers
        if self.note is not None:
            content["note"] = self.note
        return _text(content)


class Standing(Enum):
    """Whether a run owns its query."""

    NEW = "not in the log"
    OWNER = "in force"
    SUPERSEDED = "another run came after it"


@dataclass(slots=True)
class QueryState:
    """The state of one query, up to the position where its log was read."""

    in_force: Owner | None = None
    last: BatchDecision | None = None
    """The decision of the last decided batch."""
    is_complete: bool = True
    """Whether the last decision is complete."""
    before_last: bytes | None = None
    """The key of the previous completion."""
    owners: list[Owner] = field(default_factory=list)
    """All owner records in the log, whether they were ever in force or not, in log order."""
    generations: dict[str, int] = field(default_factory=dict)
    """The generations that are or were in force, by claim."""

    @property
    def generation(self) -> int:
        return 0 if self.in_force is None else self.in_force.generation

    @property
    def owner(self) -> str | None:
        """The claim in force."""
        return None if self.in_force is None else self.in_force.claim

    @property
    def origin(self) -> Origin | None:
        """Who numbers the batches, if known."""
        return None if self.in_force is None else self.in_force.origin

    @property
    def counts_since(self) -> int:
        return 0 if self.in_force is None else self.in_force.counts_since

    @property
    def pending(self) -> BatchDecision | None:
        """The last decision, unless it is complete."""
        return None if self.is_complete else self.last

    def is_pending(self, decision: BatchDecision) -> bool:
        return not self.is_complete and self.last is not None and self.last.key == decision.key

    def standing(self, claim: str) -> Standing:
        if claim not in self.generations:
            return Standing.NEW
        return Standing.OWNER if claim == self.owner else Standing.SUPERSEDED

    def is_decided(self, batch_id: int) -> bool:
        return self.last is not None and batch_id <= self.last.batch.batch_id

    def outdated(self) -> Iterator[LogRecord]:
        """Tombstones for owners that are too old to matter. The owner of a pending decision is kept: without it, a
        reader of the compacted log would consider the decision void and publish the batch again."""
        pending_generation = None if self.pending is None else self.pending.generation
        for owner in self.owners:
            if owner.generation <= self.generation - OWNERS_KEPT and owner.generation != pending_generation:
                yield owner.key, None

    def completion(self) -> list[LogRecord]:
        """The records that complete the last decision and delete the completion before it."""
        assert self.last is not None
        done = [self.last.completion()]
        return done if self.before_last is None else [*done, (self.before_last, None)]

    # --- replay -------------------------------------------------------------------------------------------------------

    def replay_owner(self, owner: Owner) -> None:
        self.owners.append(owner)
        if owner.generation > self.generation:
            self.in_force = owner
            self.generations[owner.claim] = owner.generation
            if self.last is not None and self.last.generation < owner.counts_since:
                self._forget_decisions()

    def replay_owner_tombstone(self, owner: Owner) -> None:
        self.owners = [each for each in self.owners if each.identity != owner.identity]
        if self.generations.get(owner.claim) == owner.generation:
            del self.generations[owner.claim]
        if self.in_force is not None and self.in_force.identity == owner.identity:
            # The owner was deleted with its unnamed job, which is complete and has no further run.
            self.in_force = None

    def replay_decision_tombstone(self, key: bytes) -> None:
        """Forget the decision of an unnamed job. Any other tombstone is for a decision that is not the last one, or was
        never valid."""
        if self.last is not None and self.last.key == key:
            self._forget_decisions()

    def replay_decision(self, decision: BatchDecision) -> None:
        is_valid = decision.generation == self.generation and decision.batch.claim == self.owner
        if is_valid and not self.is_decided(decision.batch.batch_id):
            self._set_last(decision, is_complete=False)

    def replay_completion(self, decision: BatchDecision) -> None:
        if decision.generation < self.counts_since:
            return
        if self.last is not None and decision.key == self.last.key:
            self.last, self.is_complete = decision, True  # without its transactions, as a later reader sees it
        elif not self.is_decided(decision.batch.batch_id):
            self._set_last(decision, is_complete=True)

    def _set_last(self, decision: BatchDecision, *, is_complete: bool) -> None:
        if self.last is not None:
            self.before_last = self.last.key
        self.last, self.is_complete = decision, is_complete

    def _forget_decisions(self) -> None:
        self.last, self.is_complete, self.before_last = None, True, None


class QueryStates:
    """The states of all queries in one partition of the log."""

    def __init__(self) -> None:
        self._states: dict[str, QueryState] = {}

    def state(self, query: str) -> QueryState:
        return self._states.setdefault(query, QueryState())

    def queries(self) -> list[str]:
        return list(self._states)

    def pending(self) -> list[BatchDecision]:
        """The pending decisions of all queries."""
        return [state.pending for state in self._states.values() if state.pending is not None]

    def replay(self, key: bytes, value: bytes | None) -> None:
        """Apply the next record of the log."""
        kind, query, *rest = json.loads(key)
        content = None if value is None else json.loads(value)
        if kind not in (_OWNER, _DECISION) or (content is not None and content["format"] > _FORMAT):
            raise KasparError("the decision log has records of a newer version of kaspar: use that version")
        state = self.state(query)
        if content is None:
            if kind == _OWNER:
                state.replay_owner_tombstone(Owner(query, *rest))
            else:
                state.replay_decision_tombstone(key)
            if not state.owners and state.last is None:
                del self._states[query]
            return
        if kind == _OWNER:
            origin = None
            if "origin" in content:
                origin = Origin(*content["origin"][:_ORIGIN_FIELDS])._replace(kind=content.get("kind"))
            owner = replace(Owner(query, *rest), origin=origin, counts_since=content.get("counts_since", 0))
            state.replay_owner(owner)
            return
        batch_id, generation, claim, nonce = rest
        covers = tuple(content["covers"]) if "covers" in content else None
        batch = BatchName(query, claim, batch_id)
        decision = BatchDecision(batch, generation, nonce, _transactions(content), covers, content.get("note"))
        if content["complete"]:
            state.replay_completion(decision)
        else:
            state.replay_decision(decision)


def _transactions(content: dict[str, list[list[object]]]) -> tuple[DecidedTransaction, ...]:
    return tuple(
        DecidedTransaction(str(name), ProducerIdAndEpoch(producer_id, epoch), task, tuple(topics))  # type: ignore[arg-type]
        for name, producer_id, epoch, task, topics in content["transactions"]
    )


def _fingerprint(transactions: Sequence[DecidedTransaction]) -> str:
    ended_by = sorted((each.transactional_id, *each.producer) for each in transactions)
    return hashlib.sha256(_text(ended_by)).hexdigest()[:16]


def _text(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True).encode()
