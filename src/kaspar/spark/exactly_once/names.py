"""Who writes: the batch that a task writes for, and the transactional ids that are made of it.

An id is `kaspar-spark:<query>:<generation>:<worker>:<slot>`: the query's name with everything unusual written as %XX,
so that one query's ids never begin with another's; the generation of its owner (decisions.py), so that what a
superseded run left behind is known by its name; a random worker, so that no attempt ever initialises another's id; and
a slot, which is used again when its last transaction is complete, so that there are few.
"""

import re
from typing import NamedTuple
from urllib.parse import quote, unquote

PREFIX = "kaspar-spark:"
UNNAMED = "job-"
JOBS, BLOCKS = "jobs", "blocks"
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Origin(NamedTuple):
    """Who numbers a query's batches: the ids of one mean nothing to another."""

    stream: str | None = None
    """The id of a streaming query, which its checkpoint keeps. None: the program gives numbers of its own."""
    once: str | None = None
    """Of a writer that is all of a batch in a run of a stream: which run and batch. Another with the same would never
    be written, since its batch is decided."""
    is_released: bool = False
    """Whether the name is free for any other: not for this one, whose last batch is not known any more."""
    kind: str | None = None
    """JOBS or BLOCKS, whose numbers mean nothing to each other; None: not known, or a streaming query of its own."""

    def kept(self) -> "Origin":
        """What stays where the query is taken over in nobody's name."""
        return self._replace(once=None)


class BatchName(NamedTuple):
    """A batch of a query, as one run of it writes it."""

    query: str
    """A streaming query's id, or the name that a job was given."""
    claim: str
    """Which run: a streaming query's run id, or a random name for anything else."""
    batch_id: int
    origin: Origin = Origin()

    def __str__(self) -> str:
        return f"batch {self.batch_id} of query {self.query}"


def unnamed_job(claim: str) -> BatchName:
    """The one batch of a job that was given no name: nobody will ever ask for it again."""
    return BatchName(f"{UNNAMED}{claim}", claim, 0)


def in_stream(batch: BatchName, query: str | None, run: str | None) -> BatchName:
    """A batch that was named, as tasks see it: where it is written inside foreachBatch, for which stream that is.

    Spark gives its jobs the run's id as their group, unless the program gives them another.
    """
    if query is None or batch.origin.kind != JOBS:
        return batch
    once = f"{run} {batch.batch_id}" if is_run_id(run) else None
    return batch._replace(origin=batch.origin._replace(stream=query, once=once))


def is_run_id(group: str | None) -> bool:
    """Whether a job group is Spark's for a run of a stream, and not one that a program gave its jobs."""
    return group is not None and _UUID.fullmatch(group) is not None


def named_job(app_id: str, topic: str | None, version: int, claim: str) -> BatchName:
    """Versions of a job are counted for each topic apart, as Delta counts them for each table. No topic's name has such
    a sign, so it is no other job's."""
    return BatchName(f"{app_id}/{topic or '*'}", claim, version, Origin(kind=JOBS))


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
