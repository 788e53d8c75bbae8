"""Registries as processes: started, killed, paused, and asked over HTTP."""

import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from kaspar.services.__main__ import main
from tests.peers.forked import ForkedProcess
from tests.peers.process import write_properties
from tests.peers.wire import free_port

WAIT_S = 40.0
HEADERS = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
NOT_FORWARDED = {**HEADERS, "X-Forward": "false"}
QUICK_GROUPS = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "200"}
"""Settings of a broker, for elections that do not take long."""
QUICK_ELECTION = {
    "kafkagroup.session.timeout.ms": "1000",
    "kafkagroup.heartbeat.interval.ms": "150",
    "kafkastore.timeout.ms": "5000",
}


def wait_until(holds: Callable[[], bool], what: str, timeout_s: float = WAIT_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, f"within {timeout_s} s it did not come to this: {what}"
        time.sleep(0.02)


class Registry:
    """One instance. Its URL stays the same over restarts."""

    def __init__(self, folder: Path, bootstrap: str, name: str, settings: Mapping[str, str]) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.name = name
        self._file = folder / f"{name}.properties"
        self.log_file = folder / f"{name}.log"
        self._settings = {
            "listeners": self.url,
            "kafkastore.bootstrap.servers": f"PLAINTEXT://{bootstrap}",
            **QUICK_ELECTION,
            **settings,
        }
        self._process: ForkedProcess | None = None
        self.http = httpx.Client(base_url=self.url, headers=HEADERS, timeout=20.0, trust_env=False)

    # --- its process --------------------------------------------------------------------------------------------------

    def launch(self) -> Self:
        write_properties(self._file, self._settings)
        self.log_file.touch()
        self._process = ForkedProcess(main, ["--registry", str(self._file)], self.log_file)
        return self

    def start(self) -> Self:
        self.launch()
        wait_until(self.responds, f"{self.name} responds")
        return self

    @property
    def process(self) -> ForkedProcess:
        assert self._process is not None
        return self._process

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(WAIT_S)

    def pause(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def log_text(self) -> str:
        return self.log_file.read_text(errors="replace")

    # --- requests -----------------------------------------------------------------------------------------------------

    def responds(self) -> bool:
        assert self._process is None or self._process.poll() is None, f"{self.name} has ended:\n{self.log_text()}"
        try:
            return self.http.get("/subjects").status_code == 200
        except httpx.TransportError:
            return False

    def leads(self) -> bool:
        """Only the leader decides about a request that must not be forwarded."""
        try:
            response = self.http.delete("/subjects/no-such-subject", headers=NOT_FORWARDED, timeout=6.0)
        except httpx.TransportError:
            return False
        return response.status_code == 404

    def register(self, subject: str, schema: str) -> int:
        response = self.http.post(f"/subjects/{subject}/versions", json={"schema": schema})
        assert response.status_code == 200, response.text
        schema_id: int = response.json()["id"]
        return schema_id

    def subjects(self) -> list[str]:
        subjects: list[str] = self.get("/subjects")
        return subjects

    def get(self, path: str) -> Any:
        response = self.http.get(path)
        assert response.status_code == 200, f"{path}: {response.text}"
        return response.json()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.http.close()
        if self.is_running:
            self.resume()
            self.kill()


@contextmanager
def registries(
    folder: Path, bootstrap: str, count: int, settings: Mapping[str, str] | None = None
) -> Iterator[list[Registry]]:
    """Instances of one group, with a leader."""
    with ExitStack() as opened:
        instances = []
        for number in range(count):
            instance = Registry(folder, bootstrap, f"registry-{number}", settings or {})
            opened.callback(instance.close)
            instances.append(instance.launch())
        for instance in instances:
            wait_until(instance.responds, f"{instance.name} responds")
        leader_of(instances)
        yield instances


def leader_of(instances: Sequence[Registry]) -> Registry:
    """The one that leads; waited for."""
    found: list[Registry] = []

    def one_leads() -> bool:
        found[:] = [instance for instance in instances if instance.is_running and instance.leads()]
        return len(found) == 1

    wait_until(one_leads, "one instance leads")
    return found[0]


def record_schema(name: str) -> str:
    return f'{{"type":"record","name":"{name}","fields":[{{"name":"f","type":"int"}}]}}'
