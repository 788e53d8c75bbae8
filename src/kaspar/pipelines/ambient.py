"""The host that runs this program, if any. `kaspar.pipelines.run` finds it here."""

from contextvars import ContextVar
from typing import Protocol

from kaspar.pipelines.pipeline import Pipeline


class AmbientHost(Protocol):
    def run(self, pipeline: Pipeline) -> None:
        """Run the pipeline with the host's session. Returns when it was stopped or has finished."""
        ...


HOST: ContextVar[AmbientHost | None] = ContextVar("kaspar_pipelines_host", default=None)
"""Set in the thread of each program of a host. Threads that a program starts do not have it."""

_hosting = False


def begin_hosting() -> None:
    """Mark this process as a host: programs in it do not run pipelines standalone."""
    global _hosting
    _hosting = True


def is_hosting() -> bool:
    return _hosting
