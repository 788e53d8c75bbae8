"""A query writes exactly once on three brokers, of which leaders, coordinators and the controller are killed."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar.testing import Cluster
from tests.spark.chaos.checking import check
from tests.spark.chaos.program import SINK
from tests.spark.chaos.siege import Siege, Strike
from tests.spark.conftest import SETTINGS
from tests.spark.topics import wait_until

STRIKES = (Strike.BROKER, Strike.BROKER, Strike.BROKER_AND_DRIVER)
ROUNDS = 6
LONG_SECONDS = 4 * 3600


class OneOfThree:
    """The broker that is killed is another one each time: each leads partitions, and coordinates transactions."""

    def __init__(self, cluster: Cluster, rng: random.Random) -> None:
        self.bootstrap = cluster.bootstrap_servers
        self.killed: list[int] = []
        self._cluster = cluster
        self._rng = rng

    def kill(self) -> None:
        """The controller first, and then any other than the last one."""
        last = self.killed[-1:]
        victims = [each for each in self._cluster.broker_ids if [each] != last]
        self.killed.append(self._rng.choice(victims) if last else self._cluster.controller_id())
        self._cluster.kill(self.killed[-1])

    def start(self) -> None:
        """Not before the others have taken over."""
        gone = self.killed[-1]
        wait_until(lambda: self._cluster.controller_id() != gone, "there is a controller")
        self._cluster.start_broker(gone)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(brokers=3, data_dir=tmp_path / "brokers", overrides=SETTINGS) as running:
        yield running


@pytest.mark.long
@pytest.mark.timeout(LONG_SECONDS)
def test_every_record_comes_out_once_over_kills_of_brokers(
    cluster: Cluster, rng: random.Random, tmp_path: Path
) -> None:
    brokers = OneOfThree(cluster, rng)
    with Siege(brokers, tmp_path / "siege", rng, way=SINK) as siege:
        for number in range(int(os.environ.get("CHAOS_ROUNDS", ROUNDS))):
            siege.strike_at_random(STRIKES)
            siege.report(number)
        siege.wait_for_progress()
        siege.finish()
    assert check(siege.topics, siege.source, siege.targets) == []
    assert len(set(brokers.killed)) > 1
