"""Kafka's own commands, run one after the other in one JVM: a call takes as long as the command, not as a JVM's start.

    with KafkaTools() as tools:
        done = tools.run("org.apache.kafka.tools.LeaderElectionCommand", "--version")
        assert done == Done(0, "4.3.0\\n", "")

For commands that end by themselves; one that runs until it is killed is a process of its own (`run_tool`).
"""

import base64
from pathlib import Path
from typing import NamedTuple

from tests.peers.java_process import JavaProcess, compiled
from tests.peers.kafka import POM, classpath, kafka_archive_flags

SOURCE = Path(__file__).with_name("KafkaTools.java")
CALL_SECONDS = 90.0


class Done(NamedTuple):
    """How a command ended."""

    code: int
    output: str
    errors: str


class KafkaTools(JavaProcess):
    def __init__(self, *jvm_options: str) -> None:
        quiet = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-Djava.security.manager=allow")
        classes = compiled("kafka-tools", SOURCE, POM, classpath())
        super().__init__("KafkaTools", f"{classpath()}:{classes}", *kafka_archive_flags(), *quiet, *jvm_options)

    def run(self, tool_class: str, *arguments: str | Path, standard_input: bytes = b"") -> Done:
        words = [base64.b64encode(standard_input).decode(), tool_class, *map(str, arguments)]
        assert not any("\t" in word for word in words), "tabs separate the words of a command"
        code, output, errors = self.ask("\t".join(words), CALL_SECONDS).strip().rstrip(".").split(" ")
        return Done(int(code), base64.b64decode(output).decode(), base64.b64decode(errors).decode())
