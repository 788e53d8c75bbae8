"""Which partitions the canary's topic gets."""

from collections.abc import Mapping

from kaspar.monitor.canary.layout import Changes, TopicPartitionState, changes


def led(leader: int, *replicas: int, isr: tuple[int, ...] | None = None) -> TopicPartitionState:
    return TopicPartitionState(leader, replicas, replicas if isr is None else isr)


def brokers(*ids: int) -> dict[int, str | None]:
    return dict.fromkeys(ids)


def applied(
    partitions: Mapping[int, TopicPartitionState] | None, change: Changes
) -> dict[int, TopicPartitionState] | None:
    """What the cluster makes of a change."""
    if change.create:
        return {number: led(replicas[0], *replicas) for number, replicas in enumerate(change.create)}
    if partitions is None:
        return None
    changed = dict(partitions)
    for replicas in change.add:
        changed[len(changed)] = led(replicas[0], *replicas)
    for number, replicas in change.reassign.items():
        leader = changed[number].leader
        changed[number] = led(leader if leader in replicas else replicas[0], *replicas)
    for number in change.elect:
        changed[number] = led(changed[number].replicas[0], *changed[number].replicas)
    return changed


def settled(
    partitions: Mapping[int, TopicPartitionState] | None, racks: Mapping[int, str | None]
) -> dict[int, TopicPartitionState]:
    """The topic once nothing is left to change."""
    current = None if partitions is None else dict(partitions)
    for _ in range(20):
        change = changes(current, racks)
        if change == Changes():
            assert current is not None
            return current
        current = applied(current, change)
    raise AssertionError("the layout does not settle")


def test_new_topic_has_a_partition_led_by_each_broker() -> None:
    assert changes(None, brokers(3, 1, 2, 7)).create == ((1, 2, 3), (2, 3, 7), (3, 7, 1), (7, 1, 2))


def test_small_cluster_has_as_many_replicas_as_brokers() -> None:
    assert changes(None, brokers(1)).create == ((1,),)
    assert changes(None, brokers(1, 2)).create == ((1, 2), (2, 1))


def test_replicas_are_in_different_racks() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}
    created = changes(None, racks).create
    assert len(created) == 6
    assert all(len({racks[broker] for broker in replicas}) == 3 for replicas in created)


def test_nothing_changes_where_each_broker_leads_a_partition() -> None:
    assert changes({0: led(1, 1, 2), 1: led(2, 2, 1)}, brokers(1, 2)) == Changes()


def test_nothing_is_decided_without_brokers() -> None:
    assert changes(None, {}) == Changes()


def test_added_broker_gets_a_partition() -> None:
    three = {0: led(1, 1, 2, 3), 1: led(2, 2, 3, 1), 2: led(3, 3, 1, 2)}
    assert changes(three, brokers(1, 2, 3, 4)).add == ((4, 1, 2),)


def test_topic_of_one_broker_gets_replicas_and_partitions_as_the_cluster_grows() -> None:
    grown = settled({0: led(1, 1)}, brokers(1, 2, 3))
    assert sorted(each.leader for each in grown.values()) == [1, 2, 3]
    assert all(len(each.replicas) == 3 for each in grown.values())


def test_broker_that_is_away_keeps_its_replicas() -> None:
    three = {0: led(1, 1, 2, 3), 1: led(2, 2, 3, 1), 2: led(1, 3, 1, 2, isr=(1, 2))}
    assert changes(three, brokers(1, 2), absent={3}) == Changes()


def test_replicas_of_a_removed_broker_are_moved() -> None:
    three = {0: led(1, 1, 2, 3), 1: led(2, 2, 3, 1), 2: led(1, 3, 1, 2, isr=(1, 2))}
    moved = settled(three, brokers(1, 2))
    assert all(3 not in each.replicas for each in moved.values())
    assert {each.leader for each in moved.values()} == {1, 2}


def test_new_broker_takes_over_the_partition_of_a_removed_one() -> None:
    three = {0: led(1, 1, 2, 3), 1: led(2, 2, 3, 1), 2: led(1, 3, 1, 2, isr=(1, 2))}
    change = changes(three, brokers(1, 2, 4))
    assert change.reassign[2][0] == 4
    replaced = settled(three, brokers(1, 2, 4))
    assert len(replaced) == 3
    assert {each.leader for each in replaced.values()} == {1, 2, 4}


def test_partition_that_is_being_moved_waits() -> None:
    moving = {0: led(1, 4, 2, 3, 1), 1: led(2, 2, 3, 4), 2: led(3, 3, 4, 2)}
    assert changes(moving, brokers(2, 3, 4)).reassign == {}


def test_preferred_replica_is_elected_once_it_is_in_sync() -> None:
    behind = {0: led(2, 1, 2, isr=(2,)), 1: led(2, 2, 1)}
    assert changes(behind, brokers(1, 2)) == Changes()
    caught_up = {0: led(2, 1, 2), 1: led(2, 2, 1)}
    assert changes(caught_up, brokers(1, 2)).elect == (0,)
