"""A registry of each kind as a process, on one broker. Kaspar's also serves the REST proxy, as in `kaspar up`."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import httpx

from bench.programs import LoadError
from bench.registry import apicurio
from bench.registry.case import OURS, Program
from bench.sides import KASPAR_ENVIRONMENT
from tests.peers.process import write_properties
from tests.peers.wire import free_port

_START_S: Final = 180.0
_STOP_S: Final = 30.0
_POLL_S: Final = 0.01
_GROUP: Final = "schema.registry.group.id"


class Server:
    def __init__(self, side: Program, folder: Path, bootstrap: str, topic: str = "_schemas") -> None:
        """`topic` is the one in which Kaspar's registry keeps its schemas."""
        self._side = side
        self._log = folder / f"{side.role.value}-{time.monotonic_ns()}.log"
        self.port, self.rest_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}{side.path}"
        self.rest_url = f"http://127.0.0.1:{self.rest_port}"
        self._environment: Mapping[str, str]
        if side is OURS:
            self._command = self._ours(folder, bootstrap, topic)
            self._environment = KASPAR_ENVIRONMENT
        else:
            self._command = apicurio.command()
            self._environment = apicurio.settings(self.port, self.rest_port, bootstrap)
        self._process: subprocess.Popen[bytes] | None = None

    def _ours(self, folder: Path, bootstrap: str, topic: str) -> Sequence[str]:
        listeners = {"registry": f"http://127.0.0.1:{self.port}", "rest": self.rest_url}
        settings = {
            "registry": {
                "kafkastore.bootstrap.servers": f"PLAINTEXT://{bootstrap}",
                "kafkastore.topic": topic,
                _GROUP: topic,
            },
            "rest": {"bootstrap.servers": bootstrap, "schema.registry.url": listeners["registry"]},
        }
        command = [sys.executable, "-m", "kaspar.services"]
        for name, values in settings.items():
            file = folder / f"{name}-{self.port}.properties"
            write_properties(file, {"listeners": listeners[name], **values})
            command += [f"--{name}", os.fspath(file)]
        return command

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, path: str = "/subjects") -> float:
        """Start the process. Returns the seconds until a GET of the path succeeds."""
        began = time.perf_counter()
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self._environment},
            )
        with httpx.Client(trust_env=False, timeout=_START_S) as client:
            while not _succeeds(client, self.url + path):
                self._check(time.perf_counter() - began)
                time.sleep(_POLL_S)
        return time.perf_counter() - began

    def _check(self, waited_s: float) -> None:
        assert self._process is not None
        if self._process.poll() is not None or waited_s > _START_S:
            last = self._log.read_text(errors="replace").strip().splitlines()[-1:] or ["it has logged nothing"]
            raise LoadError(f"{self._side.title} does not respond: {last[0]}")

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _succeeds(client: httpx.Client, url: str) -> bool:
    try:
        return client.get(url).status_code == 200
    except httpx.TransportError:
        return False
