"""Apache Kafka 4.3 as a peer: its jars, its broker as one process (KRaft, broker and controller in one), and its tools.

    with ApacheKafka(folder, heap="1g", overrides={"num.partitions": "4"}) as kafka:
        kafka.bootstrap, kafka.pid, kafka.data_dir, kafka.log_text()
    run_tool("kafka.tools.DumpLogSegments", "--files", path)

`jvm_flags` chooses how the JVM runs: LIGHT_JVM (the default) starts fast and stays small, for tests; KAFKA_JVM is what
Kafka's own start script passes, for measuring.
"""

import base64
import os
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from tests.peers.class_archives import archive_flags
from tests.peers.downloads import cached, require_tool, run_step
from tests.peers.process import BrokerProcess, write_properties
from tests.peers.wire import free_port

KAFKA_VERSION = "4.3.0"
POM = Path(__file__).with_name("kafka-pom.xml")
TOOL_TIMEOUT_SECONDS = 120.0

DEFAULT_HEAP = "512m"
LIGHT_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
KAFKA_JVM = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
)
_LOG_FLAGS = ("-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS")

_SINGLE_NODE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


def kafka_jars() -> Path:
    """The folder of Kafka's jars, fetched now if it is not in the cache."""
    return jars_of(f"kafka-{KAFKA_VERSION}", POM)


def jars_of(name: str, pom: Path) -> Path:
    """The folder of all jars that a Maven project depends on, fetched now if it is not in the cache."""

    def fetch(folder: Path, attempt: int) -> None:
        command: list[str | Path] = [require_tool("mvn"), "--batch-mode", "--quiet", "--file", pom]
        if attempt > 1:
            command.append("-U")  # Maven remembers a failed download as failed unless this asks it to retry
        command += ["dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
        run_step(command, folder=folder)

    require_tool("java")
    return cached(name, [pom], fetch)


def classpath() -> str:
    return str(kafka_jars() / "*")


@cache
def kafka_archive_flags() -> tuple[str, ...]:
    """For JVMs whose class path starts with `classpath()`."""

    def train(folder: Path, flags: Sequence[str]) -> None:
        with ApacheKafka(folder / "broker", jvm_flags=(*flags, *LIGHT_JVM)) as broker:
            broker.stop(TOOL_TIMEOUT_SECONDS)

    return archive_flags(f"kafka-{KAFKA_VERSION}", [POM], train)


def run_tool(
    tool_class: str,
    *arguments: str | Path,
    check: bool = True,
    timeout: float = TOOL_TIMEOUT_SECONDS,
    archive: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's tools by its class; the result holds its standard output and error. It logs only warnings."""
    return subprocess.run(
        [
            require_tool("java"),
            "-Xmx256m",
            *LIGHT_JVM,
            *(kafka_archive_flags() if archive else ()),
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            "-cp",
            classpath(),
            tool_class,
            *map(str, arguments),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=check,
        timeout=timeout,
    )


class ApacheKafka(BrokerProcess):
    def __init__(
        self,
        folder: Path,
        *,
        heap: str = DEFAULT_HEAP,
        overrides: Mapping[str, str] | None = None,
        port: int | None = None,
        jvm_flags: Sequence[str] = LIGHT_JVM,
        features: Mapping[str, int] | None = None,
        plugins: Path | None = None,
    ) -> None:
        """`plugins`: a folder of classes that its settings name."""
        super().__init__(folder, overrides=overrides, port=port)
        self.heap = heap
        self.jvm_flags = tuple(jvm_flags)
        self.features = dict(features or {})  # levels that a new folder gets instead of the version's own
        self.plugins = plugins
        self.controller_port = free_port()
        self.cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")

    def command(self) -> list[str]:
        heap = [f"-Xmx{self.heap}", f"-Xms{self.heap}"]
        jars = classpath() if self.plugins is None else f"{self.plugins}:{classpath()}"
        archive = kafka_archive_flags() if self._has_archive else ()
        java = [require_tool("java"), *heap, *self.jvm_flags, *archive, *_LOG_FLAGS, "-cp", jars]
        return [*java, "kafka.Kafka", str(self.properties_file)]

    def prepare(self) -> None:
        """Write the settings; format the data folder if it is new."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_properties(self.properties_file, self._settings())
        if not (self.data_dir / "meta.properties").exists():
            arguments = ("format", f"--cluster-id={self.cluster_id}", "--config", self.properties_file)
            features = [word for name, level in self.features.items() for word in ("--feature", f"{name}={level}")]
            run_tool("kafka.tools.StorageTool", *arguments, *features, archive=self._has_archive)

    @property
    def _has_archive(self) -> bool:
        """Not when it is being made, nor where a JVM with Kafka's own flags is measured."""
        return self.jvm_flags[: len(LIGHT_JVM)] == LIGHT_JVM

    def _settings(self) -> dict[str, str]:
        return {
            **_SINGLE_NODE,
            "listeners": f"PLAINTEXT://{self.host}:{self.port},CONTROLLER://{self.host}:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.host}:{self.port}",
            "controller.quorum.voters": f"1@{self.host}:{self.controller_port}",
            "log.dirs": os.fspath(self.data_dir),
            **self.overrides,
        }
