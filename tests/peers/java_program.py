"""A program of Apache Kafka's platform as a process: Kafka Streams, Connect, MirrorMaker 2, as they come from Maven.

with JavaProgram(folder, "org.apache.kafka.connect.cli.ConnectStandalone", worker, source) as connect:
    connect.running, connect.log_text()
"""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.peers.downloads import BuildError, cached, require_tool, run_step
from tests.peers.kafka import KAFKA_VERSION, LIGHT_JVM, jars_of

POM = Path(__file__).with_name("platform-pom.xml")
STOP_TIMEOUT_SECONDS = 60.0


def platform_jars() -> Path:
    return jars_of(f"kafka-platform-{KAFKA_VERSION}", POM)


def compiled(name: str, sources: Sequence[Path]) -> Path:
    """The folder of the classes of a program that uses the platform."""

    def build(folder: Path, attempt: int) -> None:
        del attempt
        options = ("-proc:none", "-Werror", "-cp", platform_jars() / "*", "-d", folder)
        run_step([require_tool("javac"), *options, *sources], folder=folder, failure=BuildError)

    return cached(name, [*sources, POM], build)


class JavaProgram:
    """Its folder holds `program.log`: output and errors of all its runs."""

    def __init__(
        self, folder: Path, main_class: str, *arguments: str | Path, classes: Path | None = None, heap: str = "512m"
    ) -> None:
        own = f"{classes}:" if classes is not None else ""
        self.folder = folder
        self._log_file = folder / "program.log"
        self._command = [
            *(require_tool("java"), f"-Xmx{heap}", *LIGHT_JVM, "-Dorg.slf4j.simpleLogger.showDateTime=true"),
            *("-cp", f"{own}{platform_jars()}/*", main_class, *map(str, arguments)),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def log_text(self) -> str:
        return self._log_file.read_text(errors="replace") if self._log_file.exists() else ""

    def start(self) -> Self:
        assert not self.running
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._log_file.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=self.folder
            )
        return self

    def stop(self) -> None:
        """SIGTERM, then SIGKILL if that did not end it in time."""
        if self._process is not None and self.running:
            self._process.terminate()
            try:
                self._process.wait(STOP_TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
