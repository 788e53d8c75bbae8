"""Members of a group share its partitions as members join, leave or die, under both protocols."""

from tests.compat.clients.api import Protocol
from tests.compat.clients.stage import Stage, for_every_client, protocols
from tests.compat.clients.words import partitions_of, wait_for_values, wait_until_shared


@for_every_client(variants=protocols)
def test_members_share_the_partitions_and_each_record_goes_to_one(stage: Stage, protocol: Protocol) -> None:
    topic = stage.new_topic(partitions=4)
    group = stage.new_name("group")
    members = [stage.consumer(group, topic, protocol=protocol) for _ in range(2)]
    wait_until_shared(members, partitions_of(topic, 4))
    for partition in range(4):
        stage.write(topic, f"first-{partition}", f"second-{partition}", partition=partition)
    wait_for_values(members, [f"{which}-{partition}" for which in ("first", "second") for partition in range(4)])


@for_every_client(variants=protocols)
def test_partitions_move_to_a_member_that_joins_and_back_when_it_leaves(stage: Stage, protocol: Protocol) -> None:
    topic = stage.new_topic(partitions=4)
    group = stage.new_name("group")
    first = stage.consumer(group, topic, protocol=protocol)
    wait_until_shared([first], partitions_of(topic, 4))
    second = stage.consumer(group, topic, protocol=protocol)
    wait_until_shared([first, second], partitions_of(topic, 4))
    second.close()
    wait_until_shared([first], partitions_of(topic, 4))


@for_every_client(variants=protocols)
def test_the_others_take_over_from_a_member_that_dies(stage: Stage, protocol: Protocol) -> None:
    topic = stage.new_topic(partitions=4)
    group = stage.new_name("group")
    doomed = stage.spare()
    members = [stage.consumer(group, topic, protocol=protocol), doomed.consumer(group, topic, protocol=protocol)]
    wait_until_shared(members, partitions_of(topic, 4))
    doomed.kill()
    wait_until_shared(members[:1], partitions_of(topic, 4))
    for partition in range(4):
        stage.write(topic, f"to-{partition}", partition=partition)
    wait_for_values(members[:1], [f"to-{partition}" for partition in range(4)])


@for_every_client(variants=protocols)
def test_groups_do_not_share_with_each_other(stage: Stage, protocol: Protocol) -> None:
    topic = stage.new_topic(partitions=2)
    stage.write(topic, "a", "b", partition=0)
    stage.write(topic, "c", partition=1)
    groups = [stage.consumer(stage.new_name("group"), topic, protocol=protocol) for _ in range(2)]
    for only_member in groups:
        wait_for_values([only_member], ["a", "b", "c"])


@for_every_client(variants=protocols)
def test_more_members_than_partitions_leave_some_without(stage: Stage, protocol: Protocol) -> None:
    topic = stage.new_topic(partitions=1)
    group = stage.new_name("group")
    first = stage.consumer(group, topic, protocol=protocol)
    wait_until_shared([first], {(topic, 0)})
    second = stage.consumer(group, topic, protocol=protocol)
    stage.write(topic, "one")
    wait_for_values([first, second], ["one"])
    first.close()
    wait_until_shared([second], {(topic, 0)})
