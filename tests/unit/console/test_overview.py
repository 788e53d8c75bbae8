"""The overview shows what the monitor has seen and the caller may see."""

from kaspar.base.ids import TopicPartition
from kaspar.console.overview import Overview, overview_of
from kaspar.monitor.views import BrokerSnapshot, ClusterSnapshot, GroupLag, Status

CLUSTER = ClusterSnapshot(
    at_ms=1,
    cluster_id="c",
    controller_id=1,
    brokers=(BrokerSnapshot(1, "localhost", 9092, None, 3, 3, 3, True),),
    fenced_brokers=(2,),
    topics=3,
    partitions=7,
    under_replicated=(TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("secret", 0)),
    offline=(TopicPartition("secret", 0),),
)


def _group(name: str, status: Status, lag: int) -> GroupLag:
    return GroupLag(name, status, (), lag, None, None, 1.0)


GROUPS = {
    each.group: each
    for each in (
        _group("fine", Status.OK, 0),
        _group("slow", Status.WARN, 900),
        _group("stopped", Status.ERR, 5),
        _group("worse", Status.ERR, 50),
    )
}


def _seen(topics: dict[str, int] | None = None, groups: set[str] | None = None) -> Overview:
    return overview_of(CLUSTER, GROUPS, None, visible_topics=topics, visible_groups=groups)


def test_the_worst_groups_come_first() -> None:
    seen = _seen()
    assert [each.group for each in seen.worst_groups] == ["worse", "stopped", "slow"]
    assert (seen.groups, seen.groups_in_trouble) == (4, 3)
    assert seen.brokers_down == (2,)


def test_partitions_in_trouble_are_counted_with_the_names_of_their_topics() -> None:
    seen = _seen()
    assert (seen.under_replicated.count, seen.under_replicated.examples) == (3, ("orders", "secret"))


def test_what_a_caller_may_not_describe_is_neither_named_nor_counted() -> None:
    seen = _seen({"orders": 2}, {"fine", "slow"})
    assert (seen.topics, seen.partitions) == (1, 2)
    assert (seen.under_replicated.count, seen.under_replicated.examples) == (2, ("orders",))
    assert (seen.offline.count, seen.offline.examples) == (0, ())
    assert [each.group for each in seen.worst_groups] == ["slow"]
    assert (seen.groups, seen.groups_in_trouble) == (2, 1)
