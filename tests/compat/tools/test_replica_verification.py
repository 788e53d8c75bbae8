"""kafka-replica-verification beside Kafka's: both run until they are interrupted, at the same time."""

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.compat.tools.comparing import VERIFICATION, Side
from tests.peers.downloads import require_tool
from tests.peers.kafka import LIGHT_JVM, classpath
from tests.peers.kafka_cluster import KafkaCluster

OPTIONS = ("--report-interval-ms", "300", "--max-wait-ms", "100", "--time", "-2")
OURS = (sys.executable, "-m", "kaspar.tools.replica_verification.command")
WAIT_SECONDS = 60.0
INTERRUPTED = 130


def _theirs() -> list[str]:
    java = [require_tool("java"), "-Xmx256m", *LIGHT_JVM, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
    return [*java, "-cp", classpath(), VERIFICATION.kafka_class]


class Running:
    """A command that runs until it is interrupted."""

    def __init__(self, command: Sequence[str], cluster: KafkaCluster, topic: str) -> None:
        self._process = subprocess.Popen(
            [*command, "--broker-list", cluster.bootstrap_servers, "--topics-include", topic, *OPTIONS],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def lines_until(self, text: str) -> list[str]:
        """What it printed up to a line with this text, without the times; then it is interrupted."""
        assert self._process.stdout is not None
        stuck = threading.Timer(WAIT_SECONDS, self._process.kill)
        stuck.start()
        lines = []
        for line in self._process.stdout:
            lines.append(re.sub(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}: ", "TIME: ", line.rstrip("\n")))
            if text in line:
                break
        self._process.send_signal(signal.SIGINT)
        rest = self._process.stdout.read()
        self._process.wait()
        self._process.stdout.close()
        stuck.cancel()
        assert text in lines[-1], f"{lines[:5]} {rest}"
        assert "Traceback" not in rest
        return lines

    @property
    def code(self) -> int:
        return self._process.wait()


def test_equal_replicas_are_reported_up_to_their_end(sides: tuple[Side, Side]) -> None:
    kafka, ours = sides
    topic = kafka.new_topic([(1, 2, 3)])
    kafka.produce(topic, batches=7)
    theirs, own = (Running(command, ours.cluster, topic) for command in (_theirs(), OURS))
    end = f"max lag is 0 for partition {topic}-0 at offset 7 among 1 partitions"
    reports = [_without_repetition(each.lines_until(end)) for each in (theirs, own)]
    assert reports[1] == reports[0] == ["TIME: verification process is started", f"TIME: {end}"]
    assert theirs.code == own.code == INTERRUPTED


def _without_repetition(lines: Sequence[str]) -> list[str]:
    """Before the last, a report may have found the replicas at an earlier offset."""
    return [line for line in lines[:-1] if "max lag" not in line] + [lines[-1]]


def test_topic_that_does_not_exist_is_a_sentence(sides: tuple[Side, Side]) -> None:
    kafka, ours = sides
    for side in sides:
        side.run(VERIFICATION, "--broker-list", side.cluster.bootstrap_servers, "--topics-include", "nowhere")
    assert (ours.seen[0].code, ours.seen[0].output) == (kafka.seen[0].code, kafka.seen[0].output) == (1, "")
    assert ours.seen[0].errors in kafka.seen[0].errors


@pytest.mark.long
def test_checksum_that_differs_is_reported(sides: tuple[Side, Side]) -> None:
    """A byte of a batch's checksum is changed in the log of a follower, while its node is stopped."""
    kafka, ours = sides
    cluster = ours.cluster
    topic = kafka.new_topic([(1, 2)])
    kafka.produce(topic, batches=3)
    path = kafka.log_dir_of(topic, 2)
    assert path is not None
    cluster.stop(2)
    segment = Path(path) / f"{topic}-0" / "00000000000000000000.log"
    content = bytearray(segment.read_bytes())
    content[17] ^= 1  # the first byte of the first batch's checksum
    segment.write_bytes(content)
    cluster.start(2)
    found = [
        Running(command, cluster, topic).lines_until("has unmatched checksum at offset 0; ")
        for command in (_theirs(), OURS)
    ]
    assert _sorted_words(found[1][-1]) == _sorted_words(found[0][-1])  # which replica comes first is not the same


def _sorted_words(line: str) -> list[str]:
    return sorted(line.replace(";", "").split())
