"""Alerts on groups, transactions, the canary and services, each by its fault, with a monitor and Prometheus."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from kaspar.base.ids import TopicPartition
from kaspar.client.admin.quotas import alter_client_quotas
from kaspar.client.admin.session import Admin
from kaspar.client.cluster import LATEST_TIMESTAMP, Client
from kaspar.client.offsets import commit_offsets
from kaspar.quotas.entities import QuotaEntity
from kaspar.records import Record, build_batch, iter_records
from kaspar.supervisor.ports import free_ports
from kaspar.testing import Broker
from tests.integration.metrics.transactions import HOUR_MS, new_producer
from tests.integration.monitor.alerting import (
    REPOSITORY,
    covers,
    fires,
    observed,
    page_of,
    probes,
    running_monitor,
    watched,
    watching,
)
from tests.integration.monitor.test_canary import TOPIC, cut_off
from tests.peers.observed import wait_until
from tests.peers.prometheus import BlackboxExporter

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


class Reader:
    """Commits offsets of a group without members, as consumers do."""

    def __init__(self, client: Client, group: str, topic: str) -> None:
        self._client, self._group, self._where = client, group, TopicPartition(topic, 0)
        self.committed = 0

    def commit(self, *, advance: int) -> None:
        self.committed += advance
        assert commit_offsets(self._client, self._group, {self._where: self.committed}) == {}

    def write(self, count: int) -> None:
        records = [Record(time.time_ns() // 1_000_000, None, b"value") for _ in range(count)]
        self._client.produce(self._where.topic, self._where.partition, bytes(build_batch(records)))


@covers("KasparGroupStopped", "KasparGroupStalled", "KasparGroupFallsBehind", "KasparGroupLagGrows")
def test_groups_that_stop_that_stall_and_that_fall_behind(tmp_path: Path) -> None:
    names = ("stops", "stalls", "slow", "slower")
    with (
        observed(tmp_path) as broker,
        running_monitor(broker.bootstrap, {"canary.enable": "false", "lag.owners.interval.ms": "500"}) as monitor,
        watching(tmp_path / "prometheus", brokers=[page_of(broker)], monitor=monitor) as prometheus,
        Client(broker.bootstrap) as client,
        ExitStack() as until_the_end,
    ):
        with broker.client() as raw:
            for topic in names:
                assert raw.create_topic(topic) == 0
        stops, stalls, slow, slower = (Reader(client, f"group-{name}", name) for name in names)
        stops.write(1)
        stops.commit(advance=1)
        slower.write(12_000)
        stalls.write(1)
        until_the_end.enter_context(member_that_reads_once(broker.bootstrap, "group-stalls", "stalls"))

        def go_on() -> None:
            stops.write(1)
            stalls.write(1)
            slow.write(3)
            slow.commit(advance=1)
            slower.write(100)
            slower.commit(advance=1)

        fires(
            prometheus,
            ["KasparGroupStopped", "KasparGroupStalled", "KasparGroupFallsBehind", "KasparGroupLagGrows"],
            go_on,
        )
        named = {each["labels"]["alertname"]: each["labels"].get("consumer_group") for each in prometheus.firing()}
        assert named["KasparGroupStopped"] == "group-stops"
        assert named["KasparGroupLagGrows"] == "group-slower"


@contextmanager
def member_that_reads_once(bootstrap: str, group: str, topic: str) -> Iterator[None]:
    """And then holds its partitions without reading on."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    assert consumer.consume(1, timeout=30)
    consumer.commit(asynchronous=False)
    try:
        yield
    finally:
        consumer.close()


@covers("KasparHangingTransactions")
def test_transaction_that_hangs(tmp_path: Path) -> None:
    with observed(tmp_path) as broker, watched(broker, tmp_path) as prometheus, broker.client() as client:
        assert client.create_topic("t") == 0
        producer = new_producer(client)
        long_ago = time.time_ns() // 1_000_000 - HOUR_MS
        assert producer.write_batch("t", producer.batch_of("t", [Record(long_ago, b"key", b"value")])).error_code == 0
        fires(prometheus, ["KasparHangingTransactions"])
        assert producer.end(commit=False).error_code == 0
        prometheus.wait_quiet(["KasparHangingTransactions"])


@covers("KasparCanaryUnavailable", "KasparCanaryLosesRecords", "KasparCanaryDoublesRecords", "KasparCanaryLate")
def test_canary_finds_a_broker_that_hangs_loses_doubles_and_delays(tmp_path: Path) -> None:
    with (
        observed(tmp_path) as broker,
        running_monitor(broker.bootstrap, {"client.client.id": "watcher"}) as monitor,
        watching(tmp_path / "prometheus", brokers=[page_of(broker)], monitor=monitor) as prometheus,
    ):
        wait_until(lambda: bool(prometheus.query("kaspar_canary_records_consumed_total > 20")), "the canary runs")
        os.kill(broker.pid, signal.SIGSTOP)
        try:
            fires(prometheus, ["KasparCanaryUnavailable"])
        finally:
            os.kill(broker.pid, signal.SIGCONT)
        prometheus.wait_quiet(["KasparCanaryUnavailable"])
        broker.kill()
        cut_off(broker.data_dir / f"{TOPIC}-0", batches=5)
        broker.start()
        fires(prometheus, ["KasparCanaryLosesRecords"])
        with Client(broker.bootstrap) as client:
            last = client.offset_at(TOPIC, 0, LATEST_TIMESTAMP) - 1
            stored = client.fetch(TOPIC, 0, last).records
            assert stored
            copied = copy_of(stored)
            fires(prometheus, ["KasparCanaryDoublesRecords"], lambda: client.produce(TOPIC, 0, copied))
        with Admin(broker.bootstrap) as admin:
            entity = QuotaEntity(client_id="watcher-canary")
            alter_client_quotas(admin, {entity: {"consumer_byte_rate": 20.0}})
            fires(prometheus, ["KasparCanaryLate"])


def copy_of(stored: bytes) -> bytes:
    """The first record, in a batch without a producer."""

    record = next(iter_records(stored))
    return bytes(build_batch([Record(record.timestamp, record.key, record.value)]))


@covers("KasparCertificateExpires", "KasparMonitorDown", "KasparServiceDown")
def test_monitor_and_services_that_end_and_certificates_that_expire(tmp_path: Path) -> None:
    plain, secured = (port for port, _ in zip(free_ports(), range(2), strict=False))
    listeners = f"PLAINTEXT://127.0.0.1:{plain},SSL://127.0.0.1:{secured}"
    overrides = {"listeners": listeners, "advertised.listeners": listeners}
    overrides |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(certificate_of_days(tmp_path, 5))}
    with (
        ExitStack() as until_the_end,
        Broker(data_dir=tmp_path / "data", process=True, overrides=overrides),
        BlackboxExporter(tmp_path, REPOSITORY / "deploy/prometheus/blackbox.yml") as blackbox,
    ):
        with running_monitor(f"127.0.0.1:{plain}") as monitor:
            probed = probes(blackbox, {f"127.0.0.1:{secured}": "tls", f"http://{monitor}/burrow/admin": "http"})
            prometheus = until_the_end.enter_context(watching(tmp_path / "prometheus", monitor=monitor, more=[probed]))
            fires(prometheus, ["KasparCertificateExpires"])
            assert prometheus.firing_names().isdisjoint({"KasparMonitorDown", "KasparServiceDown"})
        fires(prometheus, ["KasparMonitorDown", "KasparServiceDown"])


def certificate_of_days(folder: Path, days: int) -> Path:
    """A key and its certificate, in one PEM file."""
    key, certificate, keystore = folder / "key.pem", folder / "certificate.pem", folder / "keystore.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", str(days), "-subj", "/CN=localhost"]
    subprocess.run([*command, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    keystore.write_text(key.read_text() + certificate.read_text())
    return keystore
