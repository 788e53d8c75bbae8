"""No false alarm under ordinary load with rebalances, and the right one within the stated time.

Rounds are a second apart, a tenth of the default, and everything that the load does is as much quicker: six minutes
have as many rounds, commits and rebalances as an hour. `MONITOR_SOAK_MINUTES` says how long, `MONITOR_SOAK_SEED` which
load.
"""

import asyncio
import os
import time
from collections import Counter

import pytest

from kaspar.client.admin.creation import NewTopic, create_topics
from kaspar.client.admin.session import Admin
from kaspar.monitor.core import Monitor
from kaspar.monitor.settings import MonitorConfig
from kaspar.monitor.views import GroupLag, Status
from kaspar.testing import Broker
from tests.integration.monitor.ordinary_load import PARTITIONS, PLAIN, TRANSACTIONAL, OrdinaryLoad

MINUTES = float(os.environ.get("MONITOR_SOAK_MINUTES", "2"))
SEED = int(os.environ.get("MONITOR_SOAK_SEED", "1"))
GROUPS = {"classic-readers", "kip-848-readers", "committed-readers", "query"}
ROUND_S = 1.0
WINDOW_S = 10 * ROUND_S
SETTINGS = {
    "lag.interval.ms": "1000",
    "lag.owners.interval.ms": "6000",
    "rates.idle.interval.ms": "1000",
    "cluster.interval.ms": "1000",
    "doctor.interval.ms": "6000",
}


@pytest.mark.long
@pytest.mark.timeout(MINUTES * 60 + 300)
def test_ordinary_load_raises_no_alarm_and_its_end_does() -> None:
    overrides = {"group.initial.rebalance.delay.ms": "0", "group.consumer.heartbeat.interval.ms": "1000"}
    with Broker(process=True, overrides=overrides) as broker, Admin(broker.bootstrap_servers) as admin:
        create_topics(admin, [NewTopic(name, PARTITIONS) for name in (PLAIN, TRANSACTIONAL)])
        asyncio.run(watch(broker.bootstrap_servers))


async def watch(servers: str) -> None:
    monitor = Monitor(MonitorConfig.of({"bootstrap.servers": servers, **SETTINGS}))
    await monitor.start()
    try:
        with OrdinaryLoad(servers, SEED) as load:
            seen = await rounds_without_alarm(monitor, MINUTES * 60)
            assert load.rebalances >= MINUTES * 4
        assert set(seen) >= GROUPS
        assert min(seen[name] for name in GROUPS) > MINUTES * 60 * 0.5, seen
        await asyncio.to_thread(write_on, servers)
        await alarm_of_all(monitor)
    finally:
        await monitor.stop()


async def rounds_without_alarm(monitor: Monitor, seconds: float) -> Counter[str]:
    """How often each group was seen."""
    seen: Counter[str] = Counter()
    last_round = 0
    until = time.monotonic() + seconds
    async with monitor.subscribe() as changes:
        while time.monotonic() < until:
            await anext(changes)
            report = monitor.lag.last_round
            if report is None or report.at_ms == last_round:
                continue
            last_round = report.at_ms
            assert report.is_complete, report
            for group in monitor.lag.groups().values():
                seen[group.group] += 1
                assert group.status is Status.OK, described(group)
    return seen


def described(group: GroupLag) -> str:
    lines = [f"{group.group}: {group.status.name}, {group.state}, {group.members} members"]
    for each in group.partitions:
        commits = [(commit.at_ms % 1_000_000, commit.offset, commit.unread) for commit in each.commits]
        lines.append(
            f"  {each.where} {each.status.name} lag {each.lag} ({each.stable_lag}) {each.lag_seconds}: {commits}"
        )
    return "\n".join(lines)


def write_on(servers: str) -> None:
    """Records that nobody reads any more."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    for topic in (PLAIN, TRANSACTIONAL):
        for partition in range(PARTITIONS):
            producer.produce(topic, b"unread", partition=partition)
    assert producer.flush(10) == 0


async def alarm_of_all(monitor: Monitor) -> None:
    """A group is reported when it has committed nothing for as long as its last ten commits took."""
    spans = [
        partition.end.at_ms - partition.start.at_ms
        for name in GROUPS
        for partition in monitor.lag.groups()[name].partitions
    ]
    until = time.monotonic() + max(max(spans) / 1000, WINDOW_S) + WINDOW_S + 3 * ROUND_S
    while {name: monitor.lag.groups()[name].status for name in GROUPS} != dict.fromkeys(GROUPS, Status.ERR):
        assert time.monotonic() < until, {name: monitor.lag.groups()[name].status for name in GROUPS}
        await asyncio.sleep(0.1)
    for name in GROUPS:
        assert {each.status for each in monitor.lag.groups()[name].partitions} == {Status.STOP}
