"""A query writes exactly once, whatever of it is killed with SIGKILL, and whenever.

Everything that was fed in is then read from the target topics by readers apart from the data source: once, all of it.
Half of the rounds go to the sink, a quarter to foreachBatch, at least one to each, and the rest to the sink on a
cluster of two workers, one of which dies at the end.
"""

import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar.spark.running.standalone import Cluster, ClusterPlan, start, stop
from tests.peers.wire import free_port
from tests.spark.chaos.checking import check
from tests.spark.chaos.conftest import ROUNDS, MortalBroker
from tests.spark.chaos.processes import processes_of
from tests.spark.chaos.program import FOREACH_BATCH, SINK
from tests.spark.chaos.siege import Siege, Strike

WITHOUT_A_CLUSTER = tuple(kind for kind in Strike if kind is not Strike.EXECUTOR)
# A driver that is paused keeps the cores of all workers, so another one would get none.
ON_A_CLUSTER = tuple(kind for kind in Strike if kind is not Strike.USURPED_DRIVER)
LONG_SECONDS = 4 * 3600


@pytest.mark.timeout(LONG_SECONDS)
@pytest.mark.parametrize("way", [SINK, FOREACH_BATCH])
def test_every_record_comes_out_once_over_kills(
    mortal_broker: MortalBroker, rng: random.Random, rounds: int, tmp_path: Path, way: str
) -> None:
    with Siege(mortal_broker, tmp_path / "siege", rng, way=way, listener=mortal_broker.listener) as siege:
        for number in range(max(1, rounds // 2 if way == SINK else rounds // 4)):
            siege.strike_at_random(WITHOUT_A_CLUSTER)
            siege.report(number)
        siege.wait_for_progress()
        siege.finish()
    assert check(siege.topics, siege.source, siege.targets) == []


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    folder = tmp_path / "cluster"
    folder.mkdir()
    yield start(ClusterPlan(folder=folder, workers=2, cores=1, memory="1g", port=free_port()))
    stop(folder)


@pytest.mark.timeout(LONG_SECONDS)
def test_a_worker_of_a_cluster_may_die_and_executors_and_drivers_before_it(
    mortal_broker: MortalBroker, cluster: Cluster, rng: random.Random, rounds: int, tmp_path: Path
) -> None:
    sessions = tuple(process.pid for process in cluster.processes)
    siege_of_cluster = Siege(
        mortal_broker,
        tmp_path / "siege",
        rng,
        way=SINK,
        master=cluster.master,
        cluster_sessions=sessions,
        listener=mortal_broker.listener,
    )
    with siege_of_cluster as siege:
        for number in range((rounds - ROUNDS) // 4):
            siege.strike_at_random(ON_A_CLUSTER)
            siege.report(number)
        siege.wait_for_progress()
        for process in processes_of(sessions[-1]):  # the last worker, its executor, and the Python workers of that
            process.send(signal.SIGKILL)
        siege.wait_for_progress()
        siege.finish()
    assert check(siege.topics, siege.source, siege.targets) == []
