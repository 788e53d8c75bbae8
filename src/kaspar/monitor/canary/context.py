"""State shared by the parts of the canary: the current view of the topic, and current problems."""

import asyncio
from dataclasses import dataclass, field

from kaspar.base.clock import Clock
from kaspar.base.log import get_log
from kaspar.monitor.canary.ledger import Ledger
from kaspar.monitor.canary.settings import CanarySettings
from kaspar.monitor.canary.topic import View

log = get_log(__name__)


@dataclass(slots=True, eq=False)
class CanaryContext:
    settings: CanarySettings
    ledger: Ledger
    clock: Clock
    run: str
    view: View | None = None
    stale: asyncio.Event = field(default_factory=asyncio.Event)
    """Set to request a metadata refresh."""
    problems: dict[str, str] = field(default_factory=dict)
    """The last failure of each part that has not succeeded since."""

    def now_ms(self) -> float:
        return self.clock.monotonic() * 1000

    def failed(self, part: str, problem: object) -> None:
        self.problems[part] = str(problem)
        self.stale.set()

    def succeeded(self, part: str) -> None:
        if self.problems:
            self.problems.pop(part, None)


def log_bug(task: asyncio.Task[None]) -> None:
    """Log the exception of a task that failed: nothing awaits these tasks, and their work has stopped."""
    if task.cancelled():
        return
    try:
        task.result()
    except Exception:
        log.exception("a canary task failed unexpectedly")
