"""A host without a process and without Spark: its programs are real, their pipelines are fakes."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kaspar.pipelines.control import ControlServer
from kaspar.pipelines.folder import Folder
from kaspar.pipelines.host import Host
from kaspar.pipelines.hosted import HostContext
from kaspar.pipelines.messages import ApplyChanges, ListPipelines, Pipelines
from kaspar.pipelines.modules import ModulesBeside
from kaspar.pipelines.programs import Loader
from kaspar.pipelines.running import run as run
from kaspar.pipelines.statuses import PipelineStatus, State
from tests.unit.pipelines.fakes import FakePipeline, FakeSession

PIPELINES: dict[str, FakePipeline] = {}
"""Those of the programs below, by name."""


SECONDS = 10.0


class Running:
    """A host without a process, whose thread follows the folder."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.host = Host(folder)
        self.lost: str | None = None
        self.asked_whether_lost = 0
        self._server: ControlServer | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow)

    def begin(self) -> "Running":
        session: Any = FakeSession()
        loader = Loader(ModulesBeside(self.folder.modules))
        self.host.begin(HostContext(self.folder, session, loader, self._how_lost, self.host.notify, self.host.renew))
        self._thread.start()
        return self

    def serve(self) -> "Running":
        """Also over its socket."""
        self._server = ControlServer(self.folder.socket, self.host.respond)
        return self.begin()

    def _how_lost(self) -> str | None:
        self.asked_whether_lost += 1
        return self.lost

    def _follow(self) -> None:
        while not self._ended.is_set():
            self.host.reconcile()
            self.host.sample()
            self.host.wait(0.01)

    def end(self) -> None:
        """As after SIGTERM."""
        if self._server is not None:
            self._server.close()
        self.kill()
        self.host.interrupt()
        wait_until(lambda: not self.host.alive())

    def kill(self) -> None:
        """Nothing is followed any more, and nothing written."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()

    def apply(self, *names: str) -> dict[str, PipelineStatus]:
        response = self.host.respond(ApplyChanges(names, SECONDS))
        assert isinstance(response, Pipelines)
        assert not response.unsettled
        return {status.name: status for status in response.statuses}

    def status(self, name: str = "app") -> PipelineStatus:
        response = self.host.respond(ListPipelines())
        assert isinstance(response, Pipelines)
        return {status.name: status for status in response.statuses}[name]

    def wait_for(self, state: State, name: str = "app") -> PipelineStatus:
        self.apply(name)
        wait_until(lambda: self.status(name).state is state)
        return self.status(name)


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.002)


def program(tmp_path: Path, text: str = "run(PIPELINES['app'])", name: str = "app") -> Path:
    """Of a pipeline that the test has, or makes here."""
    PIPELINES.setdefault(name, FakePipeline(name))
    file = tmp_path / f"{name}.py"
    file.write_text(f"from {__name__} import PIPELINES, run\n{text}\n")
    return file
