"""The pure parts of kafka-cluster, kafka-features, kafka-metadata-quorum and kafka-transactions."""

import uuid

import pytest

from kaspar.base.ids import ZERO_UUID, TopicPartition
from kaspar.client.admin.cluster import ClusterNode
from kaspar.client.admin.features import FeatureMetadata, LevelRange
from kaspar.client.admin.producers import ProducerState
from kaspar.client.admin.quorum import Endpoint, QuorumInfo, QuorumReplica
from kaspar.tools.cluster import endpoint_table
from kaspar.tools.feature_levels import UnknownLevel, level_text, parse_level, parse_release
from kaspar.tools.features import described
from kaspar.tools.metadata_quorum import replication_rows, status
from kaspar.tools.transactions.hanging import OpenTransaction, hanging


def test_endpoints_are_as_wide_as_hosts_and_racks() -> None:
    nodes = [ClusterNode(1, "a-long-host", 9092, "r1", is_fenced=False), ClusterNode(2, "b", 9, None, is_fenced=True)]
    header, first, second = endpoint_table(nodes, are_controllers=False)
    assert header == "ID         HOST        PORT       RACK STATE      ENDPOINT_TYPE  "
    assert first.split() == ["1", "a-long-host", "9092", "r1", "unfenced", "broker"]
    assert second.split() == ["2", "b", "9", "null", "fenced", "broker"]
    assert "STATE" not in next(endpoint_table(nodes, are_controllers=True))


@pytest.mark.parametrize(
    ("name", "level"), [("3.3-IV3", 7), ("3.9", 21), ("3.9.1", 21), ("4.0", 25), ("4.3", 30), ("4.4-IV0", 31)]
)
def test_releases_are_levels_of_metadata_version(name: str, level: int) -> None:
    assert parse_release(name).level == level


@pytest.mark.parametrize("name", ["4.4", "odd", "4.3-IV9", ""])
def test_unknown_releases(name: str) -> None:
    with pytest.raises(UnknownLevel, match="Supported"):
        parse_release(name)


def test_levels_are_read_and_shown() -> None:
    assert parse_level(" group.version = 1") == ("group.version", 1)
    assert level_text("metadata.version", 30) == "4.3-IV0"
    assert level_text("metadata.version", 99) == "UNKNOWN [99]"
    for wrong in ("odd", "odd=x", "odd=99999"):
        with pytest.raises(UnknownLevel, match="Can't parse"):
            parse_level(wrong)


def test_feature_that_is_not_finalized_is_at_level_0() -> None:
    (line,) = described(FeatureMetadata({"x": LevelRange(0, 1)}, {}, None))
    assert line.split()[-3:] == ["0", "Epoch:", "-"]


def _replica(number: int, end: int, caught_up: int | None = None, directory: uuid.UUID = ZERO_UUID) -> QuorumReplica:
    return QuorumReplica(number, directory, end, caught_up, caught_up, (Endpoint("C", "h", number),))


def test_quorum_with_followers_and_observers() -> None:
    quorum = QuorumInfo(1, 5, 90, (_replica(1, 100, 50), _replica(2, 80, 30)), (_replica(3, 70),))
    lines = dict(line.split(":", 1) for line in status("id", quorum).splitlines())
    assert (lines["MaxFollowerLag"].strip(), lines["MaxFollowerLagTimeMs"].strip()) == ("20", "20")
    assert lines["CurrentObservers"].strip() == '[{"id": 3, "endpoints": ["C://h:3"]}]'
    rows = replication_rows(quorum, human_readable=False)
    assert [(row[0], row[3], row[4], row[-1]) for row in rows] == [
        (1, 0, "50", "Leader"),
        (2, 20, "30", "Follower"),
        (3, 30, "-1", "Observer"),
    ]


def test_transaction_hangs_if_its_coordinator_does_not_expect_the_partition() -> None:
    a, b = TopicPartition("orders", 0), TopicPartition("orders", 1)
    known, unknown = ProducerState(1, 0, 0, 0, None, 5), ProducerState(2, 0, 0, 0, None, 5)
    candidates = [OpenTransaction(a, known), OpenTransaction(b, known), OpenTransaction(a, unknown)]
    assert hanging(candidates, {1: (a,)}) == candidates[1:]
