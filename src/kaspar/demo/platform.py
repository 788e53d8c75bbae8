"""Runs `kaspar up` with all services for the demo, in a folder that is removed at the end."""

import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from kaspar.base.errors import KasparError
from kaspar.supervisor.child import Child
from kaspar.supervisor.folder import Folder
from kaspar.supervisor.plan import DEFAULT_PORT, ClusterPlan
from kaspar.supervisor.ports import consecutive_free_ports, is_free
from kaspar.supervisor.status import status_of

_START_S: Final = 60.0
_STOP_S: Final = 30.0
_LOOK_EVERY_S: Final = 0.1


class Stopped(Exception):
    """The demo was stopped while it was starting."""


class Platform:
    """A context manager that starts all services and waits until they are ready."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self.folder = Path(tempfile.mkdtemp(prefix="kaspar-demo-"))
        """Contains all files of the demo."""
        self.pipelines = self.folder / "pipelines"
        self._cluster = Folder(self.folder / "cluster")
        port = DEFAULT_PORT if is_free(DEFAULT_PORT) else consecutive_free_ports(1)[0]
        arguments = ["--dir", str(self._cluster.path), "--port", str(port), "--pipelines", str(self.pipelines)]
        self._up = Child(
            [sys.executable, "-m", "kaspar.cli.main", "up", *arguments], output=self.folder / "kaspar-up.log"
        )

    def __enter__(self) -> Self:
        try:
            self._up.start()
            self._wait_until_ready()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    @property
    def bootstrap_servers(self) -> str:
        return self._plan().bootstrap_servers

    @property
    def urls(self) -> dict[str, str]:
        """The URLs of the running services, by service name."""
        return self._plan().service_urls

    def check(self) -> None:
        """Raises KasparError if `kaspar up` has ended."""
        if not self._up.is_running:
            raise KasparError(f"'kaspar up' {self._up.how_it_ended()}: {self._up.last_problem()}")

    def _plan(self) -> ClusterPlan:
        plan = self._cluster.plan()
        assert plan is not None, "it has been started"
        return plan

    def _wait_until_ready(self) -> None:
        """Raises Stopped if the demo is stopped meanwhile."""
        until = time.monotonic() + _START_S
        while not self._is_ready():
            self.check()
            if time.monotonic() > until:
                raise KasparError(f"'kaspar up' was not ready within {_START_S:.0f} s: {self._up.last_problem()}")
            if self._stop.wait(_LOOK_EVERY_S):
                raise Stopped

    def _is_ready(self) -> bool:
        plan = self._cluster.plan()
        return plan is not None and status_of(self._cluster, plan).ready

    def _close(self) -> None:
        self._up.send(signal.SIGTERM)
        if not self._up.wait(_STOP_S):
            self._up.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
