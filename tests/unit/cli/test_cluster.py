"""`kaspar cluster health` of clusters that are not well. Those that are: tests/integration/cli."""

import json
from uuid import uuid4

import pytest

from kaspar.cli.main import main
from kaspar.client.admin.cluster import ClusterDescription, ClusterNode
from kaspar.client.admin.topics import PartitionDescription, TopicDescription


def _partition(
    number: int, *, leader: int, isr: tuple[int, ...], offline: tuple[int, ...] = ()
) -> PartitionDescription:
    return PartitionDescription(number, leader, 0, (1, 2), isr, offline)


@pytest.fixture
def partitions(monkeypatch: pytest.MonkeyPatch) -> list[PartitionDescription]:
    """Those of the one topic of the cluster."""
    found: list[PartitionDescription] = []
    nodes = (ClusterNode(1, "a", 9092, None, is_fenced=False), ClusterNode(2, "b", 9092, None, is_fenced=False))
    monkeypatch.setattr(
        "kaspar.client.admin.cluster.describe_cluster", lambda admin, **_: ClusterDescription("c1", 1, nodes)
    )
    monkeypatch.setattr("kaspar.client.admin.topics.list_topics", lambda admin: ["orders"])
    monkeypatch.setattr(
        "kaspar.client.admin.topics.describe_topics",
        lambda admin, names: {"orders": TopicDescription("orders", uuid4(), False, tuple(found))},
    )
    return found


def test_cluster_with_all_replicas_in_sync_is_healthy(
    partitions: list[PartitionDescription], capsys: pytest.CaptureFixture[str]
) -> None:
    partitions.append(_partition(0, leader=1, isr=(1, 2)))
    assert main(["cluster", "health"]) == 0
    assert "The cluster is healthy." in capsys.readouterr().out


def test_what_is_wrong_is_listed(partitions: list[PartitionDescription], capsys: pytest.CaptureFixture[str]) -> None:
    partitions.append(_partition(0, leader=1, isr=(1,), offline=(2,)))
    partitions.append(_partition(1, leader=-1, isr=(2,), offline=(2,)))
    assert main(["cluster", "health"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "The cluster is NOT healthy.",
        "controller        broker 1",
        "brokers           2",
        "brokers down      2",
        "partitions        2",
        "without leader    1 (orders-1)",
        "under-replicated  2 (orders-0, orders-1)",
    ]
    assert main(["cluster", "health", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["leaderless_partitions"] == ["orders-1"]


def test_many_partitions_are_cut_short(
    partitions: list[PartitionDescription], capsys: pytest.CaptureFixture[str]
) -> None:
    partitions += [_partition(number, leader=1, isr=(1,)) for number in range(12)]
    assert main(["cluster", "health"]) == 1
    assert "orders-9 and 2 more)" in capsys.readouterr().out
