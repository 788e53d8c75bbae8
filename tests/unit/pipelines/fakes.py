"""A pipeline, its queries and a session without Spark."""

import threading
from collections.abc import Sequence
from typing import Any

from kaspar.pipelines.pipeline import PipelineProgress


class FakeQuery:
    def __init__(self, name: str = "query") -> None:
        self.name = name
        self.id = "8a1c"
        self.isActive = True
        self.status = {"message": "Waiting for data to arrive", "isTriggerActive": False}
        self.was_interrupted = False

    def stop(self) -> None:
        self.isActive = False
        self.was_interrupted = True


class FakePipeline:
    """Does what its script says at each start: runs until it is stopped, fails, or finishes."""

    def __init__(self, name: str = "orders", script: Sequence[Exception | str] = ()) -> None:
        """An exception fails the queries, "finish" ends them, and "refuse" raises at the start; then it runs."""
        self.name = name
        self.script = list(script)
        self.starts = 0
        self.stops: list[float] = []
        self.queries: Any = ()
        self.runs = threading.Event()
        self.ignores_stop = False
        self._does: Exception | str = "run"

    def start(self, session: Any) -> None:
        assert all(not query.isActive for query in self.queries), "started while queries run"
        self.starts += 1
        self._does = self.script.pop(0) if self.script else "run"
        if self._does == "refuse":
            raise ValueError("refused")
        self.queries = (FakeQuery(),)
        self.runs.set()

    def wait(self, timeout_s: float) -> bool:
        if isinstance(self._does, Exception):
            self.queries[0].isActive = False
            raise self._does
        if self._does == "finish":
            self.queries[0].isActive = False
            return True
        threading.Event().wait(0.001)
        return False

    def stop(self, timeout_s: float) -> None:
        self.stops.append(timeout_s)
        self.runs.clear()
        if not self.ignores_stop:
            for query in self.queries:
                query.isActive = False

    def describe(self) -> str:
        return "orders -> totals"

    def progress(self) -> PipelineProgress:
        return PipelineProgress(input_rows_per_second=12.0, lag=3, batch_ms=80)


class FakeContext:
    def setLocalProperty(self, name: str, value: str) -> None:  # noqa: N802
        pass


class FakeSession:
    sparkContext = FakeContext()  # noqa: N815
