"""Runs the demo's programs under a supervisor of pipelines, in its own process, so that the console also shows them."""

import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kaspar.base.errors import KasparError
from kaspar.demo.program import TOPOLOGIES
from kaspar.pipelines.definitions import add
from kaspar.pipelines.folder import Folder, SessionPlan
from kaspar.pipelines.looking import statuses_of
from kaspar.pipelines.statuses import PipelineStatus, State
from kaspar.supervisor.child import Child

STOCKS: Final = "stock-statistics"
CLICKS: Final = "click-enrichment"
SETTINGS: Final = {
    "spark.driver.memory": "512m",
    # In a run of a minute or two, the JVM's optimizing compiler costs more than it saves.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}
_PROGRAM: Final = Path(__file__).with_name("program.py")
_BATCH_S: Final = 10.0
"""The time limit for running batches when the demo ends: their unpublished results are not needed any more."""
_STOP_S: Final = 30.0
_FRESH_S: Final = 0.4


class Programs:
    def __init__(self, bootstrap: str, folder: Path, state_dir: Path) -> None:
        """`folder` is the supervisor's folder."""
        self._folder = Folder(folder)
        self._folder.make()
        self._folder.write_session(SessionPlan("local[2]", SETTINGS))
        for name in TOPOLOGIES:
            add(self._folder, [_PROGRAM], [name, bootstrap, str(state_dir)], name)
        command = [sys.executable, "-m", "kaspar.cli.main", "pipeline", "run", "--dir", str(folder)]
        self._supervisor = Child(command, output=folder / "supervisor.log")
        self._supervisor.start()
        self._statuses: Mapping[str, PipelineStatus] = {}
        self._seen_at = 0.0

    @property
    def waiting_for(self) -> str | None:
        """What has not started yet. None when both programs are running."""
        waiting = [name for name in TOPOLOGIES if self.status(name).state is not State.RUNNING]
        if len(waiting) == len(TOPOLOGIES):
            return "Spark to start"
        return f"{waiting[0]} to start" if waiting else None

    def status(self, name: str) -> PipelineStatus:
        """The status of a program, as its host reported it less than a second ago."""
        if time.monotonic() - self._seen_at > _FRESH_S:
            self._statuses = {status.name: status for status in statuses_of(self._folder)}
            self._seen_at = time.monotonic()
        return self._statuses[name]

    def check(self) -> None:
        """Raises KasparError if the supervisor has ended or a program has failed to start."""
        if not self._supervisor.is_running:
            raise KasparError(f"the pipelines {self._supervisor.how_it_ended()}: {self._supervisor.last_problem()}")
        for name in TOPOLOGIES:
            if (status := self.status(name)).state is State.FAILED:
                raise KasparError(f"{name} stopped: {status.reason}")

    def stop(self) -> None:
        self._supervisor.send(signal.SIGTERM)
        if not self._supervisor.wait(_BATCH_S):
            self._supervisor.send(signal.SIGINT)  # at once
        if not self._supervisor.wait(_STOP_S):
            self._supervisor.kill()
