"""The names of batches, and the transactional ids derived from them.

An id is `kaspar-spark:<query>:<generation>:<worker>:<slot>`:
- the query's name, percent-encoded so that no query's ids start with another's;
- the generation of its owner (decisions.py), which identifies the leftovers of a superseded run;
- a random worker, so that no attempt ever initializes the id of another process;
- a slot, which is reused once its last transaction is complete, so that there are few ids.
"""

import re
from typing import NamedTuple
from urllib.parse import quote, unquote

PREFIX = "kaspar-spark:"
UNNAMED = "job-"
JOBS, BLOCKS = "jobs", "blocks"
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Origin(NamedTuple):
    """The numbering of a query's batches: batch ids of different origins cannot be compared."""

    stream: str | None = None
    """The id of a streaming query, from its checkpoint. None: the program numbers its batches itself."""
    once: str | None = None
    """The run and batch of a single write inside foreachBatch. A second write with the same value would never be
    published, since its batch is already decided."""
    is_released: bool = False
    """Whether any other origin may claim the name. This one may not, because its last batch is no longer known."""
    kind: str | None = None
    """JOBS or BLOCKS, whose batch ids cannot be compared. None: unknown, or a streaming query's own sink."""

    def kept(self) -> "Origin":
        """The origin that stays with the name when the query is taken over without a new run."""
        return self._replace(once=None)


class BatchName(NamedTuple):
    """A batch of a query, as one run of it writes it."""

    query: str
    """The id of a streaming query, or the name that was given to a job."""
    claim: str
    """The run: a streaming query's run id, or a random name for anything else."""
    batch_id: int
    origin: Origin = Origin()

    def __str__(self) -> str:
        return f"batch {self.batch_id} of query {self.query}"


def unnamed_job(claim: str) -> BatchName:
    """The only batch of a job without a name, which no later run can repeat."""
    return BatchName(f"{UNNAMED}{claim}", claim, 0)


def in_stream(batch: BatchName, query: str | None, run: str | None) -> BatchName:
    """The batch of a named job, as its tasks see it: inside foreachBatch it belongs to a stream.

    Spark uses the run id as the job group, unless the program sets another group.
    """
    if query is None or batch.origin.kind != JOBS:
        return batch
    once = f"{run} {batch.batch_id}" if is_run_id(run) else None
    return batch._replace(origin=batch.origin._replace(stream=query, once=once))


def is_run_id(group: str | None) -> bool:
    """Whether a job group is the run id of a stream, and not a group that the program has set."""
    return group is not None and _UUID.fullmatch(group) is not None


def named_job(app_id: str, topic: str | None, version: int, claim: str) -> BatchName:
    """The batch of a named job. Its versions are counted per topic, as Delta counts them per table. Topic names contain
    no slash, so the name is unambiguous."""
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
        """Parse a transactional id; returns None if it was not created by this package."""
        if not transactional_id.startswith(PREFIX):
            return None
        parts = transactional_id.removeprefix(PREFIX).split(":")
        if len(parts) != 4 or not (parts[1].isdecimal() and parts[3].isdecimal()):
            return None
        return cls(unquote(parts[0]), int(parts[1]), parts[2], int(parts[3]))


def prefix_of(query: str) -> str:
    """The prefix of all transactional ids of the query, and of no others."""
    return f"{PREFIX}{quote(query, safe='')}:"
