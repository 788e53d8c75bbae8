"""Kafka's own commands, run one after the other in one JVM: a call takes as long as the command, not as a JVM's start.

    with KafkaTools() as tools:
        done = tools.run("org.apache.kafka.tools.LeaderElectionCommand", "--version")
        assert done == Done(0, "4.3.0\\n", "")

For commands that end by themselves; one that runs until it is killed is a process of its own (`run_tool`).
"""

import base64
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from tests.peers.downloads import BuildError, cached, require_tool, run_step
from tests.peers.kafka import LIGHT_JVM, POM, classpath, kafka_archive_flags

SOURCE = Path(__file__).with_name("KafkaTools.java")
CALL_SECONDS = 90.0


class Done(NamedTuple):
    """How a command ended."""

    code: int
    output: str
    errors: str


class KafkaTools:
    def __init__(self, *jvm_options: str) -> None:
        quiet = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-Djava.security.manager=allow")
        java = [require_tool("java"), "-Xmx256m", *LIGHT_JVM, *kafka_archive_flags(), *quiet, *jvm_options]
        self._process = subprocess.Popen(
            [*java, "-cp", f"{classpath()}:{_classes()}", "KafkaTools"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run(self, tool_class: str, *arguments: str | Path, standard_input: bytes = b"") -> Done:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        words = [base64.b64encode(standard_input).decode(), tool_class, *map(str, arguments)]
        assert not any(character in word for word in words for character in "\t\n"), "a line has one command"
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()
        stuck = threading.Timer(CALL_SECONDS, self._process.kill)
        stuck.start()
        try:
            answer = self._process.stdout.readline()
        finally:
            stuck.cancel()
        assert answer, f"{tool_class} did not end within {CALL_SECONDS:.0f} s, or ended the JVM"
        code, output, errors = answer.strip().rstrip(".").split(" ")
        return Done(int(code), base64.b64decode(output).decode(), base64.b64decode(errors).decode())

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


def _classes() -> Path:
    def build(folder: Path, attempt: int) -> None:
        del attempt
        options = ("-proc:none", "-Werror", "-cp", classpath(), "-d", folder)
        run_step([require_tool("javac"), *options, SOURCE], folder=folder, failure=BuildError)

    return cached("kafka-tools", [SOURCE, POM], build)
