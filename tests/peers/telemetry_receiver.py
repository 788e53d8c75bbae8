"""A plugin with which Apache Kafka serves client telemetry: without one it announces none of it.

ApacheKafka(folder, overrides=REPORTERS, plugins=telemetry_receiver())
"""

from pathlib import Path

from tests.peers.downloads import BuildError, cached, require_tool, run_step
from tests.peers.kafka import POM, classpath

SOURCE = Path(__file__).with_name("TelemetryReceiver.java")
REPORTERS = {"metric.reporters": "org.apache.kafka.common.metrics.JmxReporter,TelemetryReceiver"}


def telemetry_receiver() -> Path:
    """The folder of its class."""

    def build(folder: Path, attempt: int) -> None:
        del attempt
        options = ("-proc:none", "-Werror", "-cp", classpath(), "-d", folder)
        run_step([require_tool("javac"), *options, SOURCE], folder=folder, failure=BuildError)

    return cached("telemetry-receiver", [SOURCE, POM], build)
