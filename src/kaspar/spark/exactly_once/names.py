"""Who writes: the batch that a task writes for, and the transactional ids that are made of it.

An id is `kaspar-spark:<query>:<generation>:<worker>:<slot>`: the query's name with everything unusual written as %XX,
so that one query's ids never begin with another's; the generation of its owner (decisions.py), so that what a
superseded run left behind is known by its name; a random worker, so that no attempt ever initialises another's id; and
a slot, which is used again when its last transaction is complete, so that there are few.
"""

from typing import NamedTuple
from urllib.parse import quote, unquote

PREFIX = "kaspar-spark:"
UNNAMED = "job-"


class BatchName(NamedTuple):
    """A batch of a query, as one run of it writes it."""

    query: str
    """A streaming query's id, or the name that a job was given."""
    claim: str
    """Which run: a streaming query's run id, or a random name for anything else."""
    batch_id: int

    def __str__(self) -> str:
        return f"batch {self.batch_id} of query {self.query}"


def unnamed_job(claim: str) -> BatchName:
    """The one batch of a job that was given no name: nobody will ever ask for it again."""
    return BatchName(f"{UNNAMED}{claim}", claim, 0)


def named_job(app_id: str, topic: str | None) -> str:
    """Under which name the versions of a job are counted: for each topic apart, as Delta counts them for each table.
    No topic's name has such a sign, so it is no other's."""
    return f"{app_id}/{topic or '*'}"


def is_unnamed_job(batch: BatchName) -> bool:
    return batch.query == f"{UNNAMED}{batch.claim}"


class TransactionName(NamedTuple):
    query: str
    generation: int
    worker: str
    slot: int

    def __str__(self) -> str:
        return f"{prefix_of(self.query)}{self.generation}:{self.worker}:{self.slot}"

    @classmethod
    def of(cls, transactional_id: str) -> "TransactionName | None":
        """None: the id was not made here."""
        if not transactional_id.startswith(PREFIX):
            return None
        parts = transactional_id.removeprefix(PREFIX).split(":")
        if len(parts) != 4 or not (parts[1].isdecimal() and parts[3].isdecimal()):
            return None
        return cls(unquote(parts[0]), int(parts[1]), parts[2], int(parts[3]))


def prefix_of(query: str) -> str:
    """What the ids of all transactions of the query begin with, and no others."""
    return f"{PREFIX}{quote(query, safe='')}:"
