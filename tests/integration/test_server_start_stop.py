"""The broker as people run it: kafka-server-start, signals, kafka-server-stop, and what a restart keeps."""

import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compat.drivers.api import EARLIEST, Record
from tests.compat.drivers.confluent import ConfluentDriver
from tests.peers.kaspar import KasparProcess

PROGRAMS = Path(sys.executable).parent
COMMAND_TIMEOUT_SECONDS = 30


def test_sigterm_and_sigint_stop_it_cleanly(tmp_path: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        with KasparProcess(tmp_path / number.name) as broker:
            broker.signal(number)
            assert broker.wait() == 0
        assert (broker.data_dir / ".kafka_cleanshutdown").exists()


def test_a_restart_keeps_topics_settings_and_records(tmp_path: Path) -> None:
    records = [Record(b"value-%d" % n, b"key", headers=(("n", b"%d" % n),)) for n in range(100)]
    with KasparProcess(tmp_path) as broker:
        driver = ConfluentDriver(broker.bootstrap)
        driver.create_topic("kept", partitions=3, config={"retention.ms": "1234567"})
        driver.produce("kept", records, idempotent=True)
        before = driver.consume("kept", start=EARLIEST, count=100)
        broker.restart()
        assert not (broker.data_dir / ".kafka_cleanshutdown").exists(), "the mark of a clean stop is used up by a start"
        driver = ConfluentDriver(broker.bootstrap)
        assert driver.partition_count("kept") == 3
        assert driver.describe_config("kept")["retention.ms"] == "1234567"
        assert driver.consume("kept", start=EARLIEST, count=100) == before
        assert driver.produce("kept", [Record(b"next")]) == [100]


def test_a_killed_broker_starts_again_with_what_it_acknowledged(tmp_path: Path) -> None:
    with KasparProcess(tmp_path) as broker:
        driver = ConfluentDriver(broker.bootstrap)
        driver.create_topic("kept")
        driver.produce("kept", [Record(b"%d" % n) for n in range(50)], acks="all")
        broker.kill()
        broker.start()
        driver = ConfluentDriver(broker.bootstrap)
        received = driver.consume("kept", start=EARLIEST, count=50)
        assert [record.value for record in received] == [b"%d" % n for n in range(50)]


def test_a_second_broker_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    with KasparProcess(tmp_path / "first") as first:
        second = KasparProcess(tmp_path / "second", overrides={"log.dirs": str(first.data_dir)})
        second.prepare()
        second.launch()
        assert second.wait() == 1
        assert str(first.data_dir) in second.log_text()
        assert "Traceback" not in second.log_text()
        assert first.running


@pytest.mark.parametrize("override", ["num.partitions=none", "log.retention.ms=soon", "num.partitions"])
def test_a_wrong_setting_ends_the_start_with_a_sentence(tmp_path: Path, override: str) -> None:
    broker = KasparProcess(tmp_path)
    broker.prepare()
    done = subprocess.run(
        [*broker.command(), "--override", override],
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode != 0
    assert override.partition("=")[0] in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_setting_is_warned_about_with_the_closest_known_one(tmp_path: Path) -> None:
    with KasparProcess(tmp_path, overrides={"num.partition": "4"}) as broker:
        warnings = [line for line in broker.log_text().splitlines() if " WARNING " in line]
    assert any("num.partition" in line and "num.partitions" in line for line in warnings), warnings


def test_kafka_server_stop_stops_the_broker_with_this_node_id(tmp_path: Path) -> None:
    # Other brokers may run on this machine, so the ids are such as nobody else has.
    stopped_id, other_id = random.sample(range(1_000_000, 2_000_000), 2)
    with (
        KasparProcess(tmp_path / "stopped", overrides={"node.id": str(stopped_id)}) as stopped,
        KasparProcess(tmp_path / "other", overrides={"node.id": str(other_id)}) as other,
    ):
        assert _stop(stopped_id) == 0
        assert stopped.wait() == 0
        assert other.running
        assert _stop(stopped_id) == 1, "there is no such broker any more"


def _stop(node_id: int) -> int:
    command = [str(PROGRAMS / "kafka-server-stop"), "--node-id", str(node_id)]
    return subprocess.run(command, capture_output=True, timeout=COMMAND_TIMEOUT_SECONDS, check=False).returncode


def test_the_log_says_where_to_connect(tmp_path: Path) -> None:
    with KasparProcess(tmp_path) as broker:
        assert re.search(rf"INFO the broker is ready .*{broker.port}", broker.log_text())
