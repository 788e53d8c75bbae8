"""docs/cluster.md, "On three machines": from nothing, with the files and the commands of the page."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cluster.up import needs_java
from tests.peers.machines import CLIENT, NUMBERS, ClusterOfMachines
from tests.peers.missing import unless_missing
from tests.peers.observed import wait_until

ROOT = Path(__file__).parents[3]
BOOTSTRAP = "k1:9092,k2:9092,k3:9092"
SECONDS = 60.0


def round_trip(cluster: ClusterOfMachines, topic: str, count: int) -> dict[str, Any]:
    command = (sys.executable, "-m", "tests.integration.cluster.round_trip", BOOTSTRAP, topic, str(count))
    done = subprocess.run(
        cluster.network[CLIENT].command(*command), cwd=ROOT, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ClusterOfMachines]:
    """Nothing runs yet."""
    needs_java()
    with contextlib.ExitStack() as stack:
        yield unless_missing(lambda: stack.enter_context(ClusterOfMachines(tmp_path, {}, by_name=True).prepared()))


def test_three_machines_from_nothing(cluster: ClusterOfMachines) -> None:
    with cluster.network[CLIENT].entered():
        cluster.zookeepers[1].launch()
        wait_until(lambda: "is waiting for a majority" in cluster.zookeepers[1].text(), "it says what it waits for")
        assert not cluster.zookeepers[1].serves()
        cluster.zookeepers[2].start()
        wait_until(cluster.zookeepers[1].serves, "two of three serve", seconds=SECONDS)
        cluster.zookeepers[3].start()

        for number in NUMBERS:
            cluster.brokers[number].start()
        cluster.wait_for_brokers()
        report = round_trip(cluster, "orders", 300)
        assert report["brokers"] == {str(number): f"k{number}:9092" for number in NUMBERS}
        assert report["replicas"] == [[1, 2, 3]] * 3
        assert report["read"] == list(range(300))

        for number in NUMBERS:
            assert cluster.brokers[number].stop() == 0
            assert not cluster.brokers[number].unexpected_errors()
        for number in NUMBERS:
            assert cluster.zookeepers[number].stop() == 0
