"""Committed offsets: where the next member goes on."""

from tests.compat.clients.api import CommittedOffset, Feature, Protocol
from tests.compat.clients.stage import Stage, for_every_client, protocols
from tests.compat.clients.words import wait_for_offsets, wait_for_values, wait_until_shared
from tests.compat.scenario import refusal

TEN = [f"value-{number}" for number in range(10)]


@for_every_client(Feature.COMMIT, variants=protocols)
def test_the_next_member_goes_on_at_the_commit(stage: Stage, protocol: Protocol) -> None:
    topic = stage.new_topic()
    group = stage.new_name("group")
    stage.write(topic, *TEN)
    first = stage.consumer(group, topic, protocol=protocol)
    wait_for_values([first], TEN)
    first.commit()
    assert first.committed((topic, 0)) == {(topic, 0): 10}
    first.close()
    stage.write(topic, "next")
    second = stage.consumer(group, topic, protocol=protocol)
    wait_for_values([second], ["next"])
    assert second.look().records[0].offset == 10


@for_every_client(Feature.COMMIT)
def test_without_a_commit_the_next_member_reads_again(stage: Stage) -> None:
    topic = stage.new_topic()
    group = stage.new_name("group")
    stage.write(topic, *TEN)
    first = stage.consumer(group, topic)
    wait_for_values([first], TEN)
    assert first.committed((topic, 0)) == {}
    first.close()
    wait_for_values([stage.consumer(group, topic)], TEN)


@for_every_client(Feature.ASYNC_COMMIT, variants=protocols)
def test_a_commit_that_nobody_waits_for_arrives(stage: Stage, protocol: Protocol) -> None:
    topic = stage.new_topic()
    group = stage.new_name("group")
    stage.write(topic, *TEN)
    member = stage.consumer(group, topic, protocol=protocol)
    wait_for_values([member], TEN)
    member.commit(wait=False)
    wait_for_offsets(stage.admin, group, {(topic, 0): 10})


@for_every_client(Feature.COMMIT_METADATA)
def test_a_commit_names_its_offset_and_carries_words(stage: Stage) -> None:
    topic = stage.new_topic(partitions=2)
    group = stage.new_name("group")
    stage.write(topic, *TEN)
    member = stage.consumer(group, topic)
    wait_until_shared([member], {(topic, 0), (topic, 1)})
    member.commit([(topic, 0, 4, "half way"), (topic, 1, 0, "")])
    assert committed_words(stage, group) == [(topic, 0, 4, "half way"), (topic, 1, 0, "")]
    too_long = [(topic, 0, 5, "x" * 4097)]
    assert refusal(lambda: member.commit(too_long)) == "OFFSET_METADATA_TOO_LARGE"
    assert committed_words(stage, group) == [(topic, 0, 4, "half way"), (topic, 1, 0, "")]


def committed_words(stage: Stage, group: str) -> list[CommittedOffset]:
    """confluent-kafka sends the byte that ends a text in C, too."""
    return [(topic, at, offset, words.rstrip("\0")) for topic, at, offset, words in stage.admin.group_offsets(group)]


@for_every_client(variants=protocols)
def test_a_member_commits_by_itself(stage: Stage, protocol: Protocol) -> None:
    topic = stage.new_topic()
    group = stage.new_name("group")
    stage.write(topic, *TEN)
    member = stage.consumer(group, topic, protocol=protocol, auto_commit=True)
    wait_for_values([member], TEN)
    wait_for_offsets(stage.admin, group, {(topic, 0): 10})


@for_every_client(Feature.SEEK, variants=protocols)
def test_a_member_that_seeks_reads_from_there(stage: Stage, protocol: Protocol) -> None:
    topic = stage.new_topic()
    stage.write(topic, *TEN)
    member = stage.consumer(stage.new_name("group"), topic, protocol=protocol)
    wait_for_values([member], TEN)
    member.seek(topic, 0, 7)
    wait_for_values([member], TEN + TEN[7:])
