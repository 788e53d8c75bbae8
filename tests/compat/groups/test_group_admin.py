"""The admin clients: groups listed, described and deleted, their offsets altered and deleted."""

from tests.compat.clients.api import Feature, Protocol
from tests.compat.clients.stage import Stage, for_every_client, protocols
from tests.compat.clients.words import partitions_of, wait_for_offsets, wait_for_values, wait_until_shared
from tests.compat.scenario import eventually, refusal


@for_every_client(Feature.LIST_GROUPS, variants=protocols)
def test_a_group_in_use_is_listed_and_described(stage: Stage, protocol: Protocol) -> None:
    topic = stage.new_topic(partitions=3)
    group = stage.new_name("group")
    member = stage.consumer(group, topic, protocol=protocol)
    wait_until_shared([member], partitions_of(topic, 3))
    assert stage.client.groups()[group] in ("Stable", None)
    described = stage.client.describe_group(group)
    assert described.state == "Stable"
    assert [set(each.assignment) for each in described.members] == [partitions_of(topic, 3)]
    member.close()
    eventually(lambda: stage.client.describe_group(group).state == "Empty", "the group is empty")
    assert stage.client.describe_group(group).members == ()


@for_every_client(Feature.DELETE_GROUPS)
def test_only_an_empty_group_can_be_deleted(stage: Stage) -> None:
    topic = stage.new_topic()
    group = stage.new_name("group")
    stage.write(topic, "value")
    member = stage.consumer(group, topic)
    wait_for_values([member], ["value"])
    member.commit()
    assert refusal(lambda: stage.client.delete_group(group)) == "NON_EMPTY_GROUP"
    member.close()
    stage.client.delete_group(group)
    assert group not in stage.client.groups()
    assert stage.admin.group_offsets(group) == []
    assert refusal(lambda: stage.client.delete_group(group)) == "GROUP_ID_NOT_FOUND"


@for_every_client(Feature.SET_OFFSETS)
def test_offsets_of_an_empty_group_can_be_altered(stage: Stage) -> None:
    topic = stage.new_topic(partitions=2)
    group = stage.new_name("group")
    stage.write(topic, "a", "b", "c")
    stage.client.set_group_offsets(group, (topic, 0, 2, ""), (topic, 1, 0, ""))
    assert [row[:3] for row in stage.client.group_offsets(group)] == [(topic, 0, 2), (topic, 1, 0)]
    wait_for_values([stage.consumer(group, topic)], ["c"])


@for_every_client(Feature.DELETE_OFFSETS)
def test_offsets_can_be_deleted_where_nobody_is_subscribed(stage: Stage) -> None:
    used, unused = stage.new_topic(), stage.new_topic()
    group = stage.new_name("group")
    stage.admin.set_group_offsets(group, (used, 0, 0, ""), (unused, 0, 0, ""))
    member = stage.consumer(group, used)
    wait_until_shared([member], {(used, 0)})
    stage.client.delete_group_offsets(group, (unused, 0))
    wait_for_offsets(stage.admin, group, {(used, 0): 0})
    assert refusal(lambda: stage.client.delete_group_offsets(group, (used, 0))) == "GROUP_SUBSCRIBED_TO_TOPIC"
    wait_for_offsets(stage.admin, group, {(used, 0): 0})
