"""Topics that come, grow and go under a consumer group."""

from tests.unit.groups.consumer.shell import ConsumerShell
from tests.unit.groups.consumer.test_heartbeat import ALL


def test_new_partitions_are_assigned_at_the_next_heartbeat() -> None:
    shell = ConsumerShell()
    only = shell.consumer("a").join()
    only.heartbeat()
    shell.change_topics(orders=6)
    assert shell.unchanged("a", 2) is None
    only.heartbeat()
    assert only.epoch == 3
    assert only.partitions == ALL | {"orders-4", "orders-5"}


def test_a_topic_that_comes_later_is_assigned_when_it_comes() -> None:
    shell = ConsumerShell()
    only = shell.consumer("a", "orders", "payments").join()
    shell.change_topics(payments=1)
    only.heartbeat()
    assert only.partitions == ALL | {"payments-0"}


def test_a_topic_that_goes_is_given_up() -> None:
    shell = ConsumerShell(orders=1, payments=1)
    only = shell.consumer("a", "orders", "payments").join()
    shell.change_topics(payments=0)
    only.heartbeat()
    only.heartbeat()
    assert only.partitions == {"orders-0"}
    assert shell.state == "Stable"


def test_a_recreated_topic_is_another() -> None:
    shell = ConsumerShell(orders=1, payments=1)
    only = shell.consumer("a", "orders", "payments").join()
    shell.change_topics(payments=0)
    shell.settle(only)
    shell.change_topics(payments=2)
    shell.settle(only)
    assert only.partitions == {"orders-0", "payments-0", "payments-1"}


def test_topics_that_the_group_does_not_read_change_nothing() -> None:
    shell = ConsumerShell()
    shell.consumer("a").join().heartbeat()
    shell.change_topics(payments=3)
    assert shell.unchanged("a", 2) is not None


def test_topics_are_looked_at_after_a_restart() -> None:
    shell = ConsumerShell()
    only = shell.consumer("a").join()
    shell.counts["orders"] = 6
    shell.crash()
    only.heartbeat()
    assert only.epoch == 3
    assert len(only.partitions) == 6


def test_topics_that_have_not_changed_bring_no_epoch_after_a_restart() -> None:
    shell = ConsumerShell()
    only = shell.consumer("a").join()
    shell.crash()
    only.heartbeat()
    assert only.epoch == 2
