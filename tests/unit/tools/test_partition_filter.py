"""Which partitions kafka-get-offsets is asked for."""

import pytest

from kaspar.base.ids import TopicPartition
from kaspar.tools.command_line import CommandFailed
from kaspar.tools.get_offsets.partition_filter import PartitionFilter, of_rules, of_topic_and_partitions

ALL = [TopicPartition(topic, number) for topic in ("orders", "orders-old", "clicks") for number in range(4)]


def _allowed(chosen: PartitionFilter) -> list[str]:
    allowed = [where for where in ALL if chosen.allows(where)]
    assert all(chosen.allows_topic(where.topic) for where in allowed)
    return [str(where) for where in allowed]


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ("orders:1", ["orders-1"]),
        ("orders:1-3", ["orders-1", "orders-2"]),
        ("orders:2-", ["orders-2", "orders-3"]),
        ("orders:-2", ["orders-0", "orders-1"]),
        ("clicks", ["clicks-0", "clicks-1", "clicks-2", "clicks-3"]),
        ("clicks:", ["clicks-0", "clicks-1", "clicks-2", "clicks-3"]),
        ("orders.*:3", ["orders-3", "orders-old-3"]),
        (":0", ["orders-0", "orders-old-0", "clicks-0"]),
        ("clicks:0,orders:3", ["orders-3", "clicks-0"]),
        ("nothing", []),
    ],
)
def test_rules(rules: str, allowed: list[str]) -> None:
    assert _allowed(of_rules(rules)) == allowed


def test_topic_that_no_rule_names_is_not_looked_up() -> None:
    assert not of_rules("orders:1,clicks").allows_topic("orders-old")


@pytest.mark.parametrize("rules", ["orders:x", "orders:1:2", "orders:1-2-3", "orders,clicks:-x"])
def test_wrong_rules(rules: str) -> None:
    with pytest.raises(CommandFailed, match="Invalid rule specification"):
        of_rules(rules)


def test_topic_and_partitions() -> None:
    assert _allowed(of_topic_and_partitions("orders,clicks", "3,9")) == ["orders-3", "clicks-3"]
    assert len(_allowed(of_topic_and_partitions(None, None))) == len(ALL)
    with pytest.raises(CommandFailed, match="numeric partition ids, but received: 1-2"):
        of_topic_and_partitions(None, "1-2")
