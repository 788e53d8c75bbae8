"""Programs of Java that tests ask again and again: a JVM reads a line and responds with one."""

import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.peers.downloads import BuildError, cached, require_tool, run_step
from tests.peers.kafka import LIGHT_JVM


class JavaProcess:
    """Ends with its `with` block."""

    def __init__(self, main_class: str, class_path: str, *jvm_options: str) -> None:
        self._process = subprocess.Popen(
            [require_tool("java"), "-Xmx256m", *LIGHT_JVM, *jvm_options, "-cp", class_path, main_class],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )

    def ask(self, line: str, timeout_s: float) -> str:
        """The response, without the end of its line."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert "\n" not in line, "a line has one request"
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        stuck = threading.Timer(timeout_s, self._process.kill)
        stuck.start()
        try:
            response = self._process.stdout.readline()
        finally:
            stuck.cancel()
        assert response, f"the JVM did not respond within {timeout_s:.0f} s, or ended: {line[:200]}"
        return response.rstrip("\n")

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()  # the end of its input ends it
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def compiled(name: str, source: Path, pom: Path, class_path: str) -> Path:
    """The folder with the classes of a source file; compiled again when it or the POM has changed."""

    def build(folder: Path, attempt: int) -> None:
        del attempt
        options = ("-proc:none", "-Werror", "-cp", class_path, "-d", folder)
        run_step([require_tool("javac"), *options, source], folder=folder, failure=BuildError)

    return cached(name, [source, pom], build)
