"""Prometheus and its blackbox exporter, from Debian's packages, as processes of a test."""

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from kaspar.supervisor.ports import free_ports
from tests.peers.debian import not_found, require_packages
from tests.peers.downloads import StepError, run_step

_START_S: Final = 20.0
_STOP_S: Final = 10.0
_PAUSE_S: Final = 0.05
_PATIENCE_S: Final = 30.0


def require_prometheus() -> None:
    """Raises ToolMissingError where it cannot be installed."""
    require_packages(["prometheus"], lambda: not_found(["prometheus", "promtool"]))


def require_blackbox_exporter() -> None:
    name = "prometheus-blackbox-exporter"
    require_packages([name], lambda: not_found([name]))


def promtool(*arguments: str) -> None:
    """Raises AssertionError with what it prints, if it finds something wrong."""
    require_prometheus()
    try:
        run_step(["promtool", *arguments], folder=Path("/"))
    except StepError as error:
        raise AssertionError(str(error)) from error


class _Server:
    """A process that serves HTTP on a port of 127.0.0.1."""

    def __init__(self, folder: Path, name: str, ready_path: str) -> None:
        self.folder = folder
        self.address = f"127.0.0.1:{next(free_ports())}"
        self._ready_path = ready_path
        self._log = folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def command(self) -> Sequence[str]:
        raise NotImplementedError

    def get(self, path: str) -> bytes:
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=10) as response:
            content: bytes = response.read()
        return content

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(self.command(), stdout=log, stderr=log, cwd=self.folder)
        until = time.monotonic() + _START_S
        while True:
            try:
                self.get(self._ready_path)
            except OSError:
                if self._process.poll() is not None or time.monotonic() > until:
                    self._end()
                    raise AssertionError(f"it does not serve: {self._log.read_text()[-2000:]}") from None
                time.sleep(_PAUSE_S)
            else:
                return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        """At once: there is nothing to keep, and Prometheus takes five seconds to stop."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(_STOP_S)


class BlackboxExporter(_Server):
    def __init__(self, folder: Path, config: Path) -> None:
        require_blackbox_exporter()
        super().__init__(folder, "blackbox", "/-/healthy")
        self._config = config

    def command(self) -> Sequence[str]:
        return [
            "prometheus-blackbox-exporter",
            f"--config.file={self._config}",
            f"--web.listen-address={self.address}",
            "--timeout-offset=0.1",  # of half a second, in which Prometheus scrapes, the usual 0.5 s leave nothing
        ]


class Prometheus(_Server):
    """Scrapes and evaluates twice a second."""

    def __init__(
        self, folder: Path, *, rules: Mapping[str, Any], jobs: Sequence[Mapping[str, Any]], interval: str = "500ms"
    ) -> None:
        """`rules` is a rules file, and `jobs` are entries of scrape_configs, as plain values."""
        require_prometheus()
        super().__init__(folder, "prometheus", "/-/ready")
        # JSON is YAML, too.
        (folder / "rules.yml").write_text(json.dumps(rules))
        config = {
            "global": {"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval},
            "rule_files": ["rules.yml"],
            "scrape_configs": list(jobs),
        }
        (folder / "prometheus.yml").write_text(json.dumps(config))

    def command(self) -> Sequence[str]:
        return [
            "prometheus",
            f"--config.file={self.folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={self.folder / 'tsdb'}",
            f"--web.listen-address={self.address}",
            "--log.level=warn",
        ]

    def query(self, expression: str) -> list[Mapping[str, Any]]:
        """The samples of an instant query. Raises AssertionError if the expression is not valid."""
        try:
            answer = json.loads(self.get(f"/api/v1/query?{urllib.parse.urlencode({'query': expression})}"))
        except urllib.error.HTTPError as problem:
            raise AssertionError(f"{expression}: {problem.read().decode()}") from None
        found: list[Mapping[str, Any]] = answer["data"]["result"]
        return found

    def firing(self) -> list[Mapping[str, Any]]:
        alerts = json.loads(self.get("/api/v1/alerts"))["data"]["alerts"]
        return [each for each in alerts if each["state"] == "firing"]

    def firing_names(self) -> set[str]:
        return {each["labels"]["alertname"] for each in self.firing()}

    def wait_firing(self, names: Collection[str], *, seconds: float = _PATIENCE_S) -> None:
        self._wait(lambda: set(names) <= self.firing_names(), f"{set(names)} fire", seconds)

    def wait_quiet(self, names: Collection[str], *, seconds: float = _PATIENCE_S) -> None:
        self._wait(lambda: self.firing_names().isdisjoint(names), f"none of {set(names)} fires", seconds)

    def _wait(self, holds: Callable[[], bool], what: str, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < until, f"not within {seconds:g} s: {what}; {self.firing_names()} do"
            time.sleep(_PAUSE_S)
