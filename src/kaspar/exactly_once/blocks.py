"""The blocks of writes in this process: a batch has one block per name, and the block is published as a whole.

A second block of a batch would find the batch decided, and its records would be lost. Blocks may begin in any thread,
so a second block that begins while the first is open also prevents the first from being published. If the first was
already published, the second is refused: in this run, and in every run that repeats the batch, until the program is
changed. In both cases the run publishes nothing more under that name, since a thread may have swallowed the error.
"""

import shlex
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from kaspar.base.errors import KasparError
from kaspar.exactly_once.decisions import ANY_TOPIC, BatchDecision

_REMEDY = (
    "put all writes of a batch into one `with kaspar.spark.batch(...)` block, or give each a name of its own (query=)"
)


@dataclass(slots=True)
class _Run:
    """The blocks of one run of a stream under one name."""

    claim: str = field(default_factory=lambda: str(uuid.uuid4()))
    open_batch: int | None = None
    last_batch: int | None = None
    """The last batch whose block ended without an error."""
    problem: str | None = None


class Scope(NamedTuple):
    """A batch has one block per scope. The cluster is part of it because each cluster has its own decision log."""

    cluster: str
    query: str
    run_id: str | None
    """The run id of a streaming query; None outside of streams."""


class Blocks:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[Scope, _Run] = {}

    def begin(self, scope: Scope, batch_id: int) -> str:
        """Open the block of a batch. Returns the claim under which it is published: a stream uses one claim for the
        whole run, elsewhere each block is a run of its own. Raises KasparError if there is another block."""
        with self._lock:
            run = self._runs.setdefault(scope, _Run())
            if run.problem is None:
                run.problem = _problem(scope.query, batch_id, run)
            if run.problem is not None:
                raise KasparError(run.problem)
            run.open_batch = batch_id
            return run.claim

    def check(self, scope: Scope) -> None:
        """Raises KasparError if the open block must not be published, because another has begun."""
        with self._lock:
            if (problem := self._runs[scope].problem) is not None:
                raise KasparError(problem)

    def end(self, scope: Scope, *, is_published: bool, is_in_doubt: bool = False) -> None:
        """Close the block. `is_in_doubt`: its decision may be in the log, so the next block uses another claim."""
        with self._lock:
            if scope.run_id is None:
                del self._runs[scope]
                return
            run = self._runs[scope]
            if is_published:
                run.last_batch = run.open_batch
            run.open_batch = None
            if is_in_doubt:
                run.claim = str(uuid.uuid4())


def _problem(query: str, batch_id: int, run: _Run) -> str | None:
    if run.open_batch is not None:
        return (
            f"the block of batch {batch_id} of query {query} began while that of batch {run.open_batch} was still "
            f"open, so neither is published: {_REMEDY}"
        )
    if run.last_batch == batch_id:
        return (
            f"this run has already written batch {batch_id} of query {query}, so this block is not published: {_REMEDY}"
        )
    return None


class Writes:
    """The writes of one block: the topics that they cover, and whether all are done when the block ends."""

    def __init__(self, published: BatchDecision | None) -> None:
        """`published` is the decision of an earlier run for this batch, if there is one."""
        self._published = published
        self._lock = threading.Lock()
        self._in_progress = 0
        self._has_ended = False
        self.covers: list[str] = []
        self.has_failed = False
        """Whether a write has failed: the transactions of its tasks are still open."""

    @contextmanager
    def one(self, batch: object, topic: str | None) -> Iterator[None]:
        """A context manager for one write. A write that fails is covered all the same, because the program that caught
        the error continues without it."""
        with self._lock:
            if self._has_ended:
                raise KasparError(f"the block of {batch} has ended: rows written now would never be published")
            self.covers.append(topic or ANY_TOPIC)
            self._check_published(batch)
            self._in_progress += 1
        try:
            yield
        except BaseException:
            self.has_failed = True
            raise
        finally:
            with self._lock:
                self._in_progress -= 1

    def close(self) -> None:
        """Refuse any further write."""
        with self._lock:
            self._has_ended = True

    def check_done(self, batch: object) -> None:
        """Raises KasparError if another thread is still writing: the block must not be published without that write."""
        with self._lock:
            if self._in_progress:
                raise KasparError(
                    f"the block of {batch} ended while writes were still in progress, so nothing of it is published: "
                    "wait for the writing threads inside the block"
                )

    def _check_published(self, batch: object) -> None:
        if self._published is None or self._published.covers is None:
            return
        missing = Counter(self.covers) - Counter(self._published.covers)
        if missing:
            command = (
                "kaspar spark transactions --bootstrap-server HOST:PORT "
                f"--query {shlex.quote(self._published.batch.query)} --end --accept-loss"
            )
            raise KasparError(
                f"{batch} was published by an earlier run with writes to {', '.join(self._published.covers)}; now the "
                f"program also writes to {', '.join(missing)}, which was not published and cannot be under this name. "
                "Put the new writes into a block with a name of its own (query=), or, to continue without them in "
                f"this batch, run `{command}`."
            )
