"""The canary on Apache Kafka: the same topic, the same faults."""

from pathlib import Path

import pytest

from kaspar.client.admin.deletion import delete_topics
from kaspar.client.admin.session import Admin
from kaspar.monitor.canary import CanaryStatus
from tests.integration.monitor.running_canary import RECOVERED_S, RunningCanary
from tests.integration.monitor.test_canary import TOPIC, assert_nothing_is_wrong, cut_off
from tests.peers.kafka import ApacheKafka

pytestmark = pytest.mark.long


def test_canary_measures_apache_kafka_and_finds_its_faults(tmp_path: Path) -> None:
    with ApacheKafka(tmp_path) as kafka, RunningCanary(kafka.bootstrap) as canary:
        healthy = canary.wait_healthy(1)
        assert healthy.measured.produce_availability == 1.0
        assert_nothing_is_wrong(healthy)
        with Admin(kafka.bootstrap) as admin:
            delete_topics(admin, [TOPIC])
        canary.wait(lambda report: report.topics_created == 2, "the topic is created again", RECOVERED_S)
        assert_nothing_is_wrong(canary.wait_healthy(1, since=canary.report()))
        kafka.kill()
        down = canary.wait(lambda report: report.status is CanaryStatus.UNAVAILABLE, "the broker is unavailable")
        cut_off(kafka.data_dir / f"{TOPIC}-0", batches=5)
        kafka.start()
        canary.wait(lambda report: report.counts.lost > 0, "the loss is noticed", 2 * RECOVERED_S)
        back = canary.wait_healthy(1, since=down)
        assert back.counts.lost == 5
        assert back.counts.doubled == 0
