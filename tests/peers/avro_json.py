"""Avro's JSON encoding as Java does it: JsonEncoder and JsonDecoder.

with AvroJson() as java:
    java.encode('"int"', "1") == b"\\x02"; java.decode('"int"', b"\\x02") == 1
"""

import json
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.peers.avro_java import POM
from tests.peers.downloads import BuildError, cached, require_tool, run_step
from tests.peers.kafka import LIGHT_JVM, jars_of

SOURCE = Path(__file__).with_name("AvroJson.java")
CALL_SECONDS = 30.0


class JavaRefused(Exception):
    """Java raised an exception."""


class AvroJson:
    def __init__(self) -> None:
        jars = jars_of("avro-1.12.0", POM)
        self._process = subprocess.Popen(
            [require_tool("java"), "-Xmx256m", *LIGHT_JVM, "-cp", f"{_classes(jars)}:{jars}/*", "AvroJson"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )

    def encode(self, schema: str, text: str) -> bytes:
        """Raises JavaRefused."""
        return bytes.fromhex(self._call("encode", schema, text))

    def decode(self, schema: str, data: bytes) -> Any:
        """Raises JavaRefused."""
        return json.loads(self._call("decode", schema, data.hex()))

    def _call(self, direction: str, schema: str, value: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{direction}\t{schema}\t{value}\n")
        self._process.stdin.flush()
        stuck = threading.Timer(CALL_SECONDS, self._process.kill)
        stuck.start()
        try:
            line = self._process.stdout.readline()
        finally:
            stuck.cancel()
        outcome, _, result = line.rstrip("\n").partition("\t")
        if outcome == "error":
            raise JavaRefused(result)
        assert outcome == "ok", f"the JVM did not respond within {CALL_SECONDS:.0f} s, or ended"
        return result

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

    return cached("avro-json", [SOURCE, POM], build)
