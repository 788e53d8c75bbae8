"""Alerts on disks, logs, load, the clock and log-ins, each by its fault on a broker that Prometheus scrapes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from kaspar.records import Record, build_batch
from kaspar.supervisor.ports import free_ports
from kaspar.testing import Broker
from tests.chaos.faulty_clock import FaultyClock
from tests.chaos.faulty_disk import FaultyDisk
from tests.chaos.mounts import small_disk
from tests.integration.monitor.alerting import covers, fires, observed, watched, watching

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


@covers("KasparLogDirectoryOffline")
def test_log_directory_that_fails(tmp_path: Path) -> None:
    failing = tmp_path / "failing"
    disk = FaultyDisk.prepare(tmp_path, failing)
    dirs = f"{tmp_path / 'first'},{failing}"
    with observed(tmp_path, {"log.dirs": dirs}, disk.environment) as broker, watched(broker, tmp_path) as prometheus:
        broker.expect_error("")
        with broker.client() as client:
            assert client.create_topic("t", partitions=4) == 0
            disk.fail()
            for partition in range(4):
                client.produce("t", [b"x"], partition=partition)
            fires(prometheus, ["KasparLogDirectoryOffline"])


@covers("KasparDiskFullSoon", "KasparDiskAlmostFull")
def test_disk_that_fills_up(tmp_path: Path) -> None:
    with (
        small_disk(tmp_path / "disk", megabytes=64) as disk,
        observed(tmp_path, {"log.dirs": str(disk / "data")}) as broker,
        watched(broker, tmp_path) as prometheus,
    ):
        filler = disk / "filler"

        def fill() -> None:
            with filler.open("ab") as file:
                file.write(b"x" * 1024 * 512)

        fill()
        fires(prometheus, ["KasparDiskFullSoon"], fill)
        with filler.open("ab") as file:
            file.write(b"x" * (os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize - 1024 * 1024))
        fires(prometheus, ["KasparDiskAlmostFull"])


@covers("KasparUncleanablePartitions")
def test_damaged_partition_cannot_be_cleaned(tmp_path: Path) -> None:
    settings = {"log.cleaner.backoff.ms": "100"}
    with observed(tmp_path, settings) as broker, watched(broker, tmp_path) as prometheus:
        broker.expect_error("a partition cannot be cleaned")
        configs = {"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "1"}
        with broker.client() as client:
            assert client.create_topic("t", partitions=1, configs=configs) == 0
            for _ in range(50):
                batch = build_batch([Record(time.time_ns() // 1_000_000, b"key", b"value")])
                assert client.produce_batch("t", bytes(batch)).error_code == 0
        with broker.segment_files("t")[0].open("r+b") as file:
            file.seek(300)
            file.write(b"damage")
        command = [
            str(Path(sys.executable).with_name("kaspar")),
            "compact",
            "t",
            "--bootstrap-server",
            broker.bootstrap,
        ]
        fires(
            prometheus,
            ["KasparUncleanablePartitions"],
            lambda: subprocess.run(command, capture_output=True, timeout=60, check=False),
        )


@covers("KasparEventLoopStalled")
def test_broker_that_stands_still(tmp_path: Path) -> None:
    with observed(tmp_path) as broker, watched(broker, tmp_path) as prometheus:
        os.kill(broker.pid, signal.SIGSTOP)
        time.sleep(1)  # this is the fault: a second in which nothing runs
        os.kill(broker.pid, signal.SIGCONT)
        fires(prometheus, ["KasparEventLoopStalled"])


@covers("KasparClockSkew")
def test_clock_that_is_wrong(tmp_path: Path) -> None:
    clock = FaultyClock.prepare(tmp_path)
    with observed(tmp_path, {}, clock.environment) as broker, watched(broker, tmp_path) as prometheus:
        assert "KasparClockSkew" not in prometheus.firing_names()
        clock.set_ahead(30)
        fires(prometheus, ["KasparClockSkew"])
        clock.set_ahead(0)


@covers("KasparAuthenticationFailures")
def test_wrong_passwords(tmp_path: Path) -> None:
    address = f"127.0.0.1:{next(free_ports())}"
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    overrides = {
        "listeners": f"SASL_PLAINTEXT://{address}",
        "advertised.listeners": f"SASL_PLAINTEXT://{address}",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            f'{module} username="admin" password="secret" user_admin="secret" user_alice="secret";'
        ),
    }

    def guess() -> None:
        guesser = AdminClient(
            {
                "bootstrap.servers": address,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "alice",
                "sasl.password": "guessed",
            }
        )
        with pytest.raises(KafkaException):
            guesser.list_topics(timeout=0.5)

    page = f"127.0.0.1:{next(free_ports())}"
    with (
        Broker(data_dir=tmp_path / "data", process=True, overrides={**overrides, "kaspar.metrics.listener": page}),
        watching(tmp_path / "prometheus", brokers=[page]) as prometheus,
    ):
        fires(prometheus, ["KasparAuthenticationFailures"], guess)
