"""The canary against a broker with faults: it reports the right ones, within a stated time, and no others."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar.base.ids import TopicPartition
from kaspar.client.admin.deletion import delete_topics
from kaspar.client.admin.records import delete_records
from kaspar.client.admin.session import Admin
from kaspar.client.cluster import Client
from kaspar.monitor.canary import CanaryReport, CanaryStatus
from kaspar.records import Record, build_batch, iter_headers
from kaspar.testing import Broker
from tests.integration.monitor.running_canary import RECOVERED_S, RunningCanary

TOPIC = "__kaspar_canary"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(data_dir=tmp_path_factory.mktemp("broker"), process=True) as broker:
        yield broker


def is_fully_available(report: CanaryReport) -> bool:
    measured = report.measured
    return report.status is CanaryStatus.OK and measured.produce_availability == measured.consume_availability == 1.0


def assert_nothing_is_wrong(report: CanaryReport) -> None:
    assert (report.counts.lost, report.counts.doubled, report.counts.out_of_order) == (0, 0, 0), report


def test_broker_that_is_killed_is_unavailable_and_returns_with_nothing_lost(broker: Broker) -> None:
    with RunningCanary(broker.bootstrap_servers) as canary:
        canary.wait_healthy(1)
        canary.wait(is_fully_available, "all that was tried within a window succeeded at once")
        broker.kill()
        down = canary.wait(lambda report: report.status is CanaryStatus.UNAVAILABLE, "the broker is unavailable")
        assert down.measured.produce_availability is not None
        assert down.measured.produce_availability < 1
        assert down.problem
        broker.start()
        back = canary.wait_healthy(1, since=down)
        assert_nothing_is_wrong(back)
        assert not back.problem
        canary.wait(lambda report: report.status is CanaryStatus.OK, "the window has passed", RECOVERED_S)


def test_paused_broker_is_unavailable_until_it_goes_on(broker: Broker) -> None:
    with RunningCanary(broker.bootstrap_servers) as canary:
        canary.wait_healthy(1)
        os.kill(broker.pid, signal.SIGSTOP)
        try:
            paused = canary.wait(lambda report: report.status is CanaryStatus.UNAVAILABLE, "the broker hangs")
        finally:
            os.kill(broker.pid, signal.SIGCONT)
        assert_nothing_is_wrong(canary.wait_healthy(1, since=paused))


def test_deleted_topic_is_created_again_and_nothing_is_called_lost(broker: Broker) -> None:
    with RunningCanary(broker.bootstrap_servers) as canary, Admin(broker.bootstrap_servers) as admin:
        before = canary.wait_healthy(1)
        delete_topics(admin, [TOPIC])
        again = canary.wait(
            lambda report: report.topics_created == before.topics_created + 1, "the topic is created again", RECOVERED_S
        )
        assert_nothing_is_wrong(canary.wait_healthy(1, since=again))


def test_truncated_log_has_lost_records(broker: Broker) -> None:
    """As after an unclean election, or where a disk lost its last writes."""
    with RunningCanary(broker.bootstrap_servers) as canary:
        canary.wait_healthy(1)
        broker.kill()
        cut_off(broker.data_dir / f"{TOPIC}-0", batches=5)
        broker.start()
        lost = canary.wait(lambda report: report.counts.lost > 0, "the loss is noticed", RECOVERED_S)
        assert lost.counts.lost == 5
        back = canary.wait_healthy(1, since=lost)
        assert back.counts.lost == 5
        assert back.counts.doubled == 0


def test_retention_and_the_records_of_others_are_no_faults(broker: Broker) -> None:
    with RunningCanary(broker.bootstrap_servers) as canary, Client(broker.bootstrap_servers) as client:
        before = canary.wait_healthy(1)
        for value in (b"not JSON", b'{"canary": "another", "sequence": 0}'):
            client.produce(TOPIC, 0, bytes(build_batch([Record(0, None, value)])))
        with Admin(broker.bootstrap_servers) as admin:
            delete_records(admin, {TopicPartition(TOPIC, 0): -1})
        report = canary.wait_healthy(1, since=before)
        assert report.status is CanaryStatus.OK
        assert_nothing_is_wrong(report)


def test_restarted_monitor_reports_no_losses(broker: Broker) -> None:
    with RunningCanary(broker.bootstrap_servers) as canary:
        canary.wait_healthy(1)
    with RunningCanary(broker.bootstrap_servers) as canary, RunningCanary(broker.bootstrap_servers) as beside:
        for each in (canary, beside):
            report = each.wait_healthy(1)
            assert report.status is CanaryStatus.OK
            assert report.topics_created == 0
            assert_nothing_is_wrong(report)


def test_canary_without_a_cluster_is_unavailable_and_waits_for_one(tmp_path: Path) -> None:
    broker = Broker(data_dir=tmp_path, process=True)
    with broker:
        address = broker.bootstrap_servers
    with RunningCanary(address) as canary:
        assert canary.report().status is CanaryStatus.STARTING
        canary.wait(lambda report: report.status is CanaryStatus.UNAVAILABLE, "there is no cluster")
        broker.start()
        try:
            canary.wait_healthy(1)
        finally:
            broker.close()


def cut_off(folder: Path, *, batches: int) -> None:
    """Remove the last batches of a log."""
    (segment,) = folder.glob("*.log")
    content = segment.read_bytes()
    starts = [position for position, _ in iter_headers(content, 0, len(content))]
    os.truncate(segment, starts[-batches])
