"""The monitor without a broker, and its rounds over time."""

import asyncio
from uuid import UUID

import pytest

from kaspar.base.errors import InvalidSetting
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.cluster import ClusterDescription, ClusterNode
from kaspar.client.admin.topics import PartitionDescription, TopicDescription
from kaspar.monitor.cluster import snapshot
from kaspar.monitor.core import Monitor
from kaspar.monitor.settings import MonitorConfig, MonitorSettings
from tests.peers.wire import free_port
from tests.unit.broker.running import until

SHORT = {"client.default.api.timeout.ms": "100", "client.request.timeout.ms": "100"}


def test_without_a_broker_it_starts_reports_that_and_stops() -> None:
    async def scenario() -> None:
        monitor = Monitor(MonitorConfig.of({"bootstrap.servers": f"127.0.0.1:{free_port()}", **SHORT}))
        await monitor.start()
        await until(lambda: monitor.lag.last_round is not None and bool(monitor.cluster_problem))
        report = monitor.lag.last_round
        assert report is not None
        assert (set(report.problems), dict(monitor.lag.groups())) == ({"cluster"}, {})
        assert (monitor.cluster, monitor.canary, monitor.findings) == (None, None, ())
        await monitor.stop()

    asyncio.run(scenario())


def test_watchers_are_told_of_every_round_and_make_rates_more_frequent() -> None:
    """An interval of an hour ends when the first watcher comes."""
    values = {
        "bootstrap.servers": f"127.0.0.1:{free_port()}",
        "kaspar.metrics.urls": f"1=http://127.0.0.1:{free_port()}/",
        "rates.idle.interval.ms": "3600000",
        "rates.interval.ms": "100",
        **SHORT,
    }

    async def scenario() -> None:
        monitor = Monitor(MonitorConfig.of(values))
        await monitor.start()
        await until(lambda: bool(monitor.page_problems))
        monitor._pages.problems = {}
        async with monitor.subscribe() as changes:
            async with asyncio.timeout(20):
                async for _ in changes:
                    if monitor.page_problems:
                        break
        await monitor.stop()

    asyncio.run(scenario())


def test_rounds_go_on_after_a_bug_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    async def fail() -> bool:
        calls.append(1)
        raise ZeroDivisionError

    async def scenario() -> None:
        monitor = Monitor(
            MonitorConfig.of({"bootstrap.servers": f"127.0.0.1:{free_port()}", "lag.interval.ms": "100", **SHORT})
        )
        monkeypatch.setattr(monitor, "read_lag", fail)
        await monitor.start()
        await until(lambda: len(calls) == 2)
        await monitor.stop()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "values",
    [
        {"lag.group.allowlist": "("},
        {"lag.intervals": "1"},
        {"lag.minimum.complete": "1.5"},
        {"client.security.protocol": "NONE"},
        {"client.request.timeout.ms": "soon"},
        {"client.default.api.timeout.ms": "-1"},
        {"bootstrap.servers": "kafka"},
    ],
)
def test_settings_that_cannot_be_used_are_refused_at_the_start(values: dict[str, str]) -> None:
    with pytest.raises(InvalidSetting):
        MonitorConfig.of(values)


def test_properties_behind_client_are_those_of_clients() -> None:
    config = MonitorConfig.of({"bootstrap.servers": "a:1", "client.client.id": "mine", "lag.intervals": "5"})
    assert config.client == {"bootstrap.servers": "a:1", "client.id": "mine"}
    assert MonitorSettings.warnings_about({"client.anything": "x", "lag.interval": "5"}) == [
        "lag.interval is not a known setting and has no effect. Did you mean lag.intervals?"
    ]


def test_a_snapshot_counts_leaders_replicas_and_what_is_missing() -> None:
    nodes = (
        ClusterNode(1, "h", 1, "r", False),
        ClusterNode(2, "h", 2, None, False),
        ClusterNode(3, "h", 3, None, True),
    )
    partitions = (
        PartitionDescription(0, 1, 0, (1, 2), (1, 2), ()),
        PartitionDescription(1, 2, 0, (2, 3), (2,), (3,)),
        PartitionDescription(2, -1, 0, (3,), (3,), (3,)),
    )
    topic = TopicDescription("t", UUID(int=1), False, partitions)
    seen = snapshot(ClusterDescription("id", 2, nodes), [topic], now_ms=7)
    assert [(each.broker_id, each.leaders, each.replicas, each.is_controller) for each in seen.brokers] == [
        (1, 1, 1, False),
        (2, 1, 2, True),
    ]
    assert (seen.fenced_brokers, seen.topics, seen.partitions, seen.at_ms) == ((3,), 1, 3, 7)
    assert seen.under_replicated == (TopicPartition("t", 1),)
    assert seen.offline == (TopicPartition("t", 2),)
