"""What rounds cost a broker, and what they do without one."""

import time
from collections.abc import Callable, Iterator

import httpx
import pytest
from confluent_kafka import Producer

from kaspar.base.ids import TopicPartition
from kaspar.client.admin.creation import NewTopic, create_topics
from kaspar.client.admin.group_offsets import alter_group_offsets
from kaspar.client.admin.session import Admin
from kaspar.monitor.running import MonitorServer
from kaspar.monitor.scraping.exposition import parse
from kaspar.monitor.views import Status
from kaspar.testing import Broker
from kaspar.web.host_thread import HostThread
from tests.integration.monitor.lag_rounds import WINDOW, DrivenMonitor
from tests.peers.wire import free_port

GROUPS = 150


def requests_of(page: str) -> dict[str, float]:
    """How many requests of each API the broker has had."""
    samples = parse(httpx.get(page, params={"name[]": "kafka_network_requestmetrics_requests_total"}).text)
    counts: dict[str, float] = {}
    for each in samples:
        counts[each.labels["request"]] = counts.get(each.labels["request"], 0) + each.value
    return counts


def test_all_groups_are_read_by_a_handful_of_requests() -> None:
    port = free_port()
    page = f"http://127.0.0.1:{port}/metrics"
    overrides = {"kaspar.metrics.listener": f"127.0.0.1:{port}", "offsets.topic.num.partitions": "5"}
    with Broker(overrides=overrides) as broker, Admin(broker.bootstrap_servers) as admin:
        create_topics(admin, [NewTopic("t", 4)])
        produce(broker, "t", 10)
        for number in range(GROUPS):
            alter_group_offsets(admin, f"group-{number}", {TopicPartition("t", each): 0 for each in range(4)})
        with DrivenMonitor(broker.bootstrap_servers) as monitor:
            monitor.round()  # connects
            before = requests_of(page)
            monitor.round()
            after = requests_of(page)
            groups = monitor.monitor.lag.groups()
    assert len(groups) == GROUPS
    assert sum(group.total_lag for group in groups.values()) == GROUPS * 10
    sent = {name: count - before.get(name, 0) for name, count in after.items() if count > before.get(name, 0)}
    assert sent == {
        "Metadata": 3,  # of the brokers, and of the leaders for each ListOffsets
        "ListGroups": 1,
        "FindCoordinator": 1,
        "OffsetFetch": 1,
        "ListOffsets": 2,
        "ListTimestamps": 1,
    }


def test_a_broker_that_is_lost_leaves_the_last_state_and_is_reported() -> None:
    with Broker(process=True) as broker, Admin(broker.bootstrap_servers) as admin:
        create_topics(admin, [NewTopic("t", 1)])
        produce(broker, "t", 10)
        alter_group_offsets(admin, "g", {TopicPartition("t", 0): 4})
        with DrivenMonitor(broker.bootstrap_servers, **{"client.default.api.timeout.ms": "300"}) as monitor:
            assert monitor.round()
            known = monitor.group("g")
            assert (known.total_lag, known.is_stale) == (6, False)
            broker.kill()
            for _ in range(2):
                assert not monitor.round()
                assert not monitor.look_at_cluster()
                stale = monitor.group("g")
                assert (stale.total_lag, stale.is_stale, stale.at_ms) == (6, True, known.at_ms)
            report = monitor.monitor.lag.last_round
            assert report is not None
            assert "cluster" in report.problems
            assert monitor.monitor.cluster_problem
            broker.start()
            wait_for(lambda: monitor.round() and not monitor.group("g").is_stale)  # its coordinator loads first
            assert monitor.look_at_cluster()
            assert monitor.monitor.cluster_problem == ""
            statuses = [monitor.status_after_round("g") for _ in range(WINDOW + 2)]
            assert statuses[-1] is Status.STOP


def produce(broker: Broker, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    for _ in range(count):
        producer.produce(topic, b"value")
    assert producer.flush(10) == 0


@pytest.fixture(scope="module")
def monitored() -> Iterator[str]:
    """The address of a monitor as a service that has seen group `g`."""
    with Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        create_topics(admin, [NewTopic("t", 1)])
        produce(broker, "t", 10)
        alter_group_offsets(admin, "g", {TopicPartition("t", 0): 4})
        values = {"bootstrap.servers": broker.bootstrap_servers, "lag.interval.ms": "200", "cluster.interval.ms": "200"}
        host = HostThread([MonitorServer(values | {"listeners": "http://127.0.0.1:0"})])
        host.start()
        try:
            (url,) = host.urls["monitor"]
            wait_for(lambda: httpx.get(f"{url}/burrow/admin/ready").text == "READY")
            wait_for(lambda: httpx.get(f"{url}/v1/cluster").json()["cluster"] is not None)
            yield url
        finally:
            host.stop()


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.parametrize("name", ["kafka_brokers", "burrow_kafka_consumer_lag_total", "kaspar_monitor_cluster_up"])
def test_the_service_shows_it_over_http(monitored: str, name: str) -> None:
    samples = {each.name: each.value for each in parse(httpx.get(f"{monitored}/metrics").text)}
    assert samples[name] == {"burrow_kafka_consumer_lag_total": 6}.get(name, 1)


def test_a_group_is_forgotten_by_delete_and_comes_back_with_the_next_round(monitored: str) -> None:
    path = f"{monitored}/v3/kafka/local/consumer/g"
    assert httpx.get(f"{path}/lag").json()["status"]["totallag"] == 6
    removed = httpx.delete(path)
    assert (removed.status_code, removed.json()["message"]) == (200, "consumer group removed")
    wait_for(lambda: httpx.get(path).status_code == 200)
