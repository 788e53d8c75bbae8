"""What the parts of the canary share: the current view of the topic, and what goes wrong."""

import asyncio
from dataclasses import dataclass, field

from kaspar.base.clock import Clock
from kaspar.monitor.canary.ledger import Ledger
from kaspar.monitor.canary.settings import CanarySettings
from kaspar.monitor.canary.topic import View


@dataclass(slots=True, eq=False)
class CanaryContext:
    settings: CanarySettings
    ledger: Ledger
    clock: Clock
    run: str
    view: View | None = None
    stale: asyncio.Event = field(default_factory=asyncio.Event)
    """Set to have the metadata read again."""
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
