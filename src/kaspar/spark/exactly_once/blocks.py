"""The blocks of writes in this process (foreach_batch.py): of a batch there is one, and it is published whole.

A second block of a batch would find it decided, and what it writes would be lost. Blocks may be begun in any thread, so
a second one that is begun while the first is open keeps the first from being published, too. Where the first was
published already the second is refused: in this run, and in every run that repeats the batch, until the program is
changed. After either a run publishes nothing more under that name: a thread may have kept the refusal to itself.
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
from kaspar.spark.exactly_once.decisions import ANY_TOPIC, Decision

_REMEDY = (
    "put all writes of a batch into one `with kaspar.spark.batch(...)` block, or give each a name of its own (query=)"
)


@dataclass(slots=True)
class _Run:
    """What one run of a stream has begun under one name."""

    claim: str = field(default_factory=lambda: str(uuid.uuid4()))
    open_batch: int | None = None
    last_batch: int | None = None
    """The last one whose block has ended well."""
    problem: str | None = None


class Scope(NamedTuple):
    """Within which a batch has one block: each cluster has a decision log of its own."""

    cluster: str
    query: str
    run_id: str | None
    """Of a streaming query; None outside of streams."""


class Blocks:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[Scope, _Run] = {}

    def begin(self, scope: Scope, batch_id: int) -> str:
        """The claim under which the batch is published: in a stream one for the whole run, elsewhere each block is a
        run of its own. Raises KasparError if there is another block."""
        with self._lock:
            run = self._runs.setdefault(scope, _Run())
            if run.problem is None:
                run.problem = _problem(scope.query, batch_id, run)
            if run.problem is not None:
                raise KasparError(run.problem)
            run.open_batch = batch_id
            return run.claim

    def check(self, scope: Scope) -> None:
        """Raises KasparError if the open block may not be published, because another was begun."""
        with self._lock:
            if (problem := self._runs[scope].problem) is not None:
                raise KasparError(problem)

    def end(self, scope: Scope, *, is_published: bool, is_in_doubt: bool = False) -> None:
        """`is_in_doubt`: whether its decision is in the log is not known, so whoever goes on needs another claim."""
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
            f"batch {batch_id} of query {query} was begun while the block of batch {run.open_batch} was still open, "
            f"so neither is published: {_REMEDY}"
        )
    if run.last_batch == batch_id:
        return f"batch {batch_id} of query {query} was written by this run already, so this is not published: {_REMEDY}"
    return None


class Writes:
    """The writes of one block: which topics they cover, and whether all of them are done when it ends."""

    def __init__(self, published: Decision | None) -> None:
        """`published` is the decision of a run before, if that covers this batch."""
        self._published = published
        self._lock = threading.Lock()
        self._in_progress = 0
        self._has_ended = False
        self.covers: list[str] = []
        self.has_failed = False
        """Whether one of them has: what its tasks wrote is left open."""

    @contextmanager
    def one(self, batch: object, topic: str | None) -> Iterator[None]:
        """A write is done. One that fails is covered all the same: the program has said where its rows go instead."""
        with self._lock:
            if self._has_ended:
                raise KasparError(f"the block of {batch} has ended: what is written now would never be published")
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
        """Nothing may be written any more."""
        with self._lock:
            self._has_ended = True

    def check_done(self, batch: object) -> None:
        """Raises KasparError if a write is still being done, in another thread: nothing may be published without it."""
        with self._lock:
            if self._in_progress:
                raise KasparError(
                    f"the block of {batch} ended before its writes did, so nothing of it is published: wait inside the "
                    "block for the threads that write"
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
                f"program writes to {', '.join(missing)}, too, which was not published and never will be under this "
                "name. Give what is new a block with a name of its own (query=), or, to go on without it in this "
                f"batch, run `{command}`."
            )
