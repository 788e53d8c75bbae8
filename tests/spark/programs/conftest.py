"""A standalone Spark cluster for programs that do not run in the session of the tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar.spark.running.standalone import Cluster, ClusterPlan, start, stop
from tests.peers.wire import free_port


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Its worker has room for two executors."""
    (folder := tmp_path / "cluster").mkdir()
    yield start(ClusterPlan(folder=folder, workers=1, cores=2, memory="1g", port=free_port()))
    stop(folder)
