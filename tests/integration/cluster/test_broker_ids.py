"""The ids of brokers on ZooKeeper: two processes with one, and brokers without any."""

import os
from pathlib import Path

from kaspar.config import read_properties
from kaspar.testing import Cluster
from tests.integration.commands import refusal
from tests.peers.kaspar import KasparProcess
from tests.peers.observed import wait_until
from tests.peers.process import write_properties
from tests.peers.raw_client import RawClient
from tests.peers.wire import free_port

SHORT_SESSION = {"zookeeper.session.timeout.ms": "1000"}
"""A start waits for twice as long until an earlier process with the same id is gone."""


class WithoutId(KasparProcess):
    """A broker whose settings have no id."""

    def prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        listener = f"PLAINTEXT://{self.host}:{self.port}"
        settings = {"broker.id": "-1", "listeners": listener, "log.dirs": os.fspath(self.data_dir)}
        write_properties(self.properties_file, settings)

    @property
    def kept_id(self) -> int:
        return int(read_properties((self.data_dir / "meta.properties").read_text())["node.id"])


def brokers_known_at(port: int) -> dict[int, int]:
    """The port of each broker by its id."""
    with RawClient(port) as client:
        return {broker.node_id: broker.port for broker in client.metadata("none").brokers}


def test_a_second_process_with_the_id_of_a_running_broker_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    """In a cluster without topics, on the same ZooKeeper: of topics the second would lack the logs, and say that."""
    ensemble = {"zookeeper.connect": f"{cluster.zookeeper_connect}/one-id", **SHORT_SESSION}
    settings = {
        "node.id": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}",
        "log.dirs": str(tmp_path / "second"),
        **ensemble,
    }
    write_properties(tmp_path / "server.properties", settings)
    with KasparProcess(tmp_path / "first", overrides=ensemble) as first:
        assert refusal(tmp_path / "server.properties") == (
            f"Another broker is registered with the id 1, at 127.0.0.1:{first.port}: every broker needs its own node.id"
        )
        assert brokers_known_at(first.port) == {1: first.port}, "the first goes on as before"


def test_brokers_without_an_id_get_different_ones_and_keep_them(cluster: Cluster, tmp_path: Path) -> None:
    """In a cluster of their own, on the same ZooKeeper."""
    overrides = {"zookeeper.connect": f"{cluster.zookeeper_connect}/without-ids", **SHORT_SESSION}
    first, second = (WithoutId(tmp_path / name, overrides=overrides) for name in ("first", "second"))
    with first, second:
        ids = {first.kept_id: first.port, second.kept_id: second.port}
        assert set(ids) == {1001, 1002}
        wait_until(lambda: brokers_known_at(first.port) == ids, "both are up")
        kept = second.kept_id
        second.restart()
        assert second.kept_id == kept
        wait_until(lambda: brokers_known_at(first.port) == ids, "it is back with its id")
