"""What a store needs of a task, for tests."""

from dataclasses import dataclass, field


@dataclass
class Clock:
    now: int = -1


@dataclass
class StoreTask:
    application_id: str = "app"
    clocks: dict[str, Clock] = field(default_factory=dict)

    def clock(self, name: str) -> Clock:
        return self.clocks.setdefault(name, Clock())

    def meta(self) -> dict[str, int]:
        return {name: clock.now for name, clock in self.clocks.items()}


def task_with(meta: dict[str, int]) -> StoreTask:
    return StoreTask(clocks={name: Clock(now) for name, now in meta.items()})
