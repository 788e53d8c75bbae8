"""Avro's Java library, which Confluent's registry uses: how it reads a schema, and what it finds incompatible.

with AvroJava() as java:
    java.parse('{"type": "string"}').canonical, java.compare(reader, writer)
"""

import json
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.peers.downloads import BuildError, cached, require_tool, run_step
from tests.peers.kafka import LIGHT_JVM, jars_of

POM = Path(__file__).with_name("avro-pom.xml")
SOURCE = Path(__file__).with_name("AvroJava.java")
CALL_SECONDS = 30.0


class JavaRefused(Exception):
    """The library raised an exception."""


@dataclass(frozen=True, slots=True)
class JavaSchema:
    canonical: str
    resolved: str


class AvroJava:
    def __init__(self) -> None:
        jars = jars_of("avro-1.12.0", POM)
        self._process = subprocess.Popen(
            [require_tool("java"), "-Xmx256m", *LIGHT_JVM, "-cp", f"{_classes(jars)}:{jars}/*", "AvroJava"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )

    def parse(self, text: str, references: Sequence[str] = (), *, validate_defaults: bool = True) -> JavaSchema:
        response = self._call(text=text, references=references, validateDefaults=validate_defaults)
        return JavaSchema(response["canonical"], response["resolved"])

    def compare(self, reader: str, writer: str) -> list[tuple[str, str, str]]:
        """Kind, location and message of each incompatibility."""
        return [tuple(found) for found in self._call(reader=reader, writer=writer)["incompatibilities"]]

    def _call(self, **request: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        stuck = threading.Timer(CALL_SECONDS, self._process.kill)
        stuck.start()
        try:
            line = self._process.stdout.readline()
        finally:
            stuck.cancel()
        assert line, f"the JVM did not respond within {CALL_SECONDS:.0f} s, or ended"
        response: dict[str, Any] = json.loads(line)
        if "error" in response:
            raise JavaRefused(response["error"])
        return response

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


def _classes(jars: Path) -> Path:
    def build(folder: Path, attempt: int) -> None:
        del attempt
        options = ("-proc:none", "-Werror", "-cp", f"{jars}/*", "-d", folder)
        run_step([require_tool("javac"), *options, SOURCE], folder=folder, failure=BuildError)

    return cached("avro-java", [SOURCE, POM], build)
