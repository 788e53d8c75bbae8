"""The state of a pipeline and other reported values: plain data that is sent as JSON on the control socket."""

from dataclasses import dataclass, field
from enum import StrEnum

from kaspar.pipelines.pipeline import PipelineProgress


class State(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    RESTARTING = "restarting"
    """A query has failed or the host has ended; the pipeline restarts after a delay."""
    FAILED = "failed"
    """Its program raised an exception before its queries ran; the program is executed again after a delay."""
    STOPPED = "stopped"
    """A user has stopped it; it stays stopped until a user starts it."""
    FINISHED = "finished"
    """Its program has returned."""
    INTERRUPTED = "interrupted"
    """Its supervisor has ended; the next one resumes it."""


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    """`restarts` counts automatic restarts since a user started the pipeline. `reason` is that of the last failure."""

    name: str
    state: State
    since_ms: int
    restarts: int = 0
    reason: str | None = None
    failed_ms: int | None = None
    progress: PipelineProgress = field(default_factory=PipelineProgress)


@dataclass(frozen=True, slots=True)
class QueryStatus:
    """A Spark query of a pipeline. `doing` is Spark's own description of its current activity."""

    name: str
    id: str
    is_active: bool
    doing: str


@dataclass(frozen=True, slots=True)
class PipelineDetails:
    status: PipelineStatus
    program: str
    arguments: tuple[str, ...]
    log: str
    queries: tuple[QueryStatus, ...] = ()
    description: str = ""
