"""The metrics of replication, which stand still on one broker, move in a cluster."""

import asyncio
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import BrokerId
from kaspar.broker.metrics.catalogue import metrics_page
from kaspar.broker.server import Broker
from kaspar.broker.view import RunningBroker
from kaspar.controller.events import AlterReassignments, Reassignment
from tests.integration.in_process_cluster import PATIENCE_S, InProcessCluster, running_cluster, until
from tests.integration.metrics.table import ALWAYS_0, NEVER_MOVED
from tests.unit.storage.logs import make_batch

_SAMPLE = re.compile(r"^([a-z_]+)(?:\{.*\})? (\S+)$", re.MULTILINE)


def moved(brokers: Iterable[Broker]) -> set[str]:
    """The metrics that are not 0 on one of the brokers."""
    pages = (b"".join(metrics_page(broker.metrics, RunningBroker(broker))).decode() for broker in brokers)
    return {found[1] for page in pages for found in _SAMPLE.finditer(page) if float(found[2])}


async def until_moved(cluster: InProcessCluster, waiting: set[str], *names: str) -> None:
    def all_moved() -> bool:
        waiting.difference_update(moved(cluster.brokers.values()))
        return waiting.isdisjoint(names)

    try:
        async with asyncio.timeout(PATIENCE_S):
            await until(all_moved)
    except TimeoutError:
        pytest.fail(f"not moved: {sorted(waiting.intersection(names))}")


def test_what_stands_still_on_one_broker_moves_in_a_cluster(tmp_path: Path) -> None:
    replicas, topics = "kafka_server_replicamanager_", "kafka_server_brokertopicmetrics_"
    waiting = set(ALWAYS_0 - NEVER_MOVED)

    async def scenario() -> None:
        lag = {"replica_lag_time_max_ms": "1000", "follower_replication_throttled_rate": "1000"}
        async with running_cluster(tmp_path, 1, 2, 3, **lag) as cluster:
            await cluster.create_topic(
                "orders", (1, 2), min_insync_replicas="2", follower_replication_throttled_replicas="0:3"
            )
            for _ in range(4):
                produced = await cluster.produce(1, "orders", batch=make_batch([bytes(700_000)]))
                assert produced.error_code == ErrorCode.NONE
            await until_moved(
                cluster,
                waiting,
                *(f"{topics}replicationbytes{way}_total" for way in ("in", "out")),
                "kafka_server_replicafetchermanager_minfetchrate",
            )
            # A third replica, which is throttled so that it is not there soon.
            reassignment = Reassignment("orders", 0, (BrokerId(1), BrokerId(2), BrokerId(3)))
            (outcome,) = await cluster.brokers[1].controller.submit(AlterReassignments((reassignment,)))
            assert outcome.outcome.error is ErrorCode.NONE
            await until_moved(
                cluster,
                waiting,
                f"{replicas}reassigningpartitions",
                *(f"{topics}reassignmentbytes{way}_total" for way in ("in", "out")),
                "kafka_server_replicafetchermanager_maxlag",
                "kafka_server_fetcherlagmetrics_consumerlag",
            )
            assert f"{replicas}underreplicatedpartitions" in waiting, "an adding replica need not be in sync"
            # A follower that hangs leaves the in-sync replicas.
            await cluster.brokers[2].replicas.fetchers.stop()
            assert (await cluster.produce(1, "orders", b"more", acks=1)).error_code == ErrorCode.NONE
            await until_moved(
                cluster,
                waiting,
                f"{replicas}isrshrinks_total",
                f"{replicas}underreplicatedpartitions",
                f"{replicas}underminisrpartitioncount",
                "kafka_cluster_partition_underreplicated",
                "kafka_cluster_partition_underminisr",
            )
            await cluster.crash(2)
            await until_moved(cluster, waiting, "kafka_controller_kafkacontroller_fencedbrokercount")
            await cluster.start(2)
            await until_moved(cluster, waiting, f"{replicas}isrexpands_total")
            assert not waiting

    asyncio.run(asyncio.wait_for(scenario(), 6 * PATIENCE_S))
