"""A cluster on three machines under consume-transform-produce, with everything that can happen to machines, links and
processes (`machine_faults.py`): every record once, transactions whole, nothing acknowledged lost.

Afterwards the checker of histories goes through all that happened (`tests/chaos/history`), and every replica has the
same bytes. `CHAOS_ROUNDS` draws so many faults from all of them; without it a few come that show most.
"""

import contextlib
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.chaos.actors.membership import COOPERATIVE
from tests.chaos.faulty_clock import FaultyClock
from tests.chaos.history import check
from tests.chaos.machine_faults import (
    FAULTS,
    Fault,
    Scene,
    cut_controller_inwards,
    cut_off_leader_with_clients,
    kill_leader,
)
from tests.chaos.mounts import small_disk
from tests.chaos.pipeline import COORDINATION, PIPELINE, PipelineRun
from tests.integration.cluster.up import needs_java
from tests.peers.machines import CLIENT, NUMBERS, ClusterOfMachines
from tests.peers.missing import unless_missing
from tests.peers.observed import wait_until

SESSION_S = 4.0
PARTITIONS = 3
REPLICATED = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}
SETTINGS = {
    **COORDINATION,
    **REPLICATED,
    "zookeeper.session.timeout.ms": str(int(SESSION_S * 1000)),
    "zookeeper.connection.timeout.ms": "60000",  # brokers start beside an ensemble that has no majority yet
    "replica.lag.time.max.ms": "3000",
    "replica.high.watermark.checkpoint.interval.ms": "100",
    "leader.imbalance.check.interval.seconds": "2",
}
SMALL_SERVERS = {"tickTime": "1000", "forceSync": "no"}  # kills lose nothing that is in the page cache
TOPIC_SETTINGS = {
    "internal.segment.bytes": "1000000",
    "message.timestamp.type": "LogAppendTime",  # otherwise a clock that is an hour behind refuses records of the future
}
SOON: dict[str, str | int] = {  # a link that is cut is silent: the clients' patience decides when they look elsewhere
    "socket.timeout.ms": 3000,
    "socket.connection.setup.timeout.ms": 2000,
}
DISK_MEGABYTES = 512
SHOW_MOST: tuple[Fault, ...] = (cut_off_leader_with_clients, kill_leader, cut_controller_inwards)
PATIENCE_S = 90.0
FINISH_S = 600.0  # after many rounds much is left
PAUSE_S = 0.03
CUT_OFF = (  # what a broker says that loses its session, or ZooKeeper
    "this broker is no longer registered",
    "no longer the controller",
    "the controller has lost the metadata store",
)


def faults_of_this_run(rng: random.Random) -> list[Fault]:
    """All of them come before one comes again."""
    if "CHAOS_ROUNDS" not in os.environ:
        return list(SHOW_MOST)
    drawn: list[Fault] = []
    while len(drawn) < int(os.environ["CHAOS_ROUNDS"]):
        drawn += rng.sample(FAULTS, len(FAULTS))
    return drawn[: int(os.environ["CHAOS_ROUNDS"])]


@pytest.fixture
def scene(tmp_path: Path, rng: random.Random) -> Iterator[Scene]:
    needs_java()
    clocks = unless_missing(
        lambda: {number: FaultyClock.prepare(_clock_folder(tmp_path, number)) for number in NUMBERS}
    )
    cluster = unless_missing(
        lambda: ClusterOfMachines(
            tmp_path,
            SETTINGS,
            zookeeper_settings=SMALL_SERVERS,
            environments={number: clock.environment for number, clock in clocks.items()},
        )
    )
    disks = {number: cluster.disk(number) for number in NUMBERS}

    def enter_all() -> None:
        for disk in disks.values():
            stack.enter_context(small_disk(disk, megabytes=DISK_MEGABYTES))
        stack.enter_context(cluster)
        stack.enter_context(cluster.network[CLIENT].entered())
        for broker in cluster.brokers.values():
            for error in CUT_OFF:
                broker.expect_error(error)

    with contextlib.ExitStack() as stack:
        unless_missing(enter_all)
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0, **SOON})
        yield Scene(cluster, rng, PIPELINE.source, SESSION_S, clocks, disks, admin)


@pytest.mark.timeout(7200)
def test_every_record_once_whatever_happens_to_machines(scene: Scene, rng: random.Random, tmp_path: Path) -> None:
    cluster = scene.cluster
    with PipelineRun(
        cluster.bootstrap,
        tmp_path / "actors",
        rng,
        COOPERATIVE,
        partitions=PARTITIONS,
        processors=2,
        feeders=1,
        configs=TOPIC_SETTINGS,
        client=SOON,
        leaders_change=True,
        pause_seconds=PAUSE_S,
    ) as run:
        for number, fault in enumerate(faults_of_this_run(rng), start=1):
            run.wait_for_progress(PATIENCE_S)
            print(f"{number}: {fault.__name__}", flush=True)
            fault(scene)
        run.wait_for_progress(PATIENCE_S)
        history = run.finish(FINISH_S)
    assert check(history) == []
    wait_until(scene.is_in_sync, "every replica is in sync again", seconds=PATIENCE_S)
    wait_until(lambda: replicas_are_equal(cluster), "all replicas have the same bytes", seconds=PATIENCE_S)
    for number, broker in cluster.brokers.items():
        code = broker.stop()
        assert code == 0, f"broker {number} ended with code {code}"
    assert cluster.unexpected_errors() == []


def _clock_folder(parent: Path, number: int) -> Path:
    folder = parent / f"clock-{number}"
    folder.mkdir()
    return folder


def replicas_are_equal(cluster: ClusterOfMachines) -> bool:
    for topic in (PIPELINE.source, PIPELINE.target):
        for partition in range(PARTITIONS):
            folders = [cluster.broker_data(number) / f"{topic}-{partition}" for number in NUMBERS]
            if len({_bytes_of(folder) for folder in folders}) > 1:
                return False
    return True


def _bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))
