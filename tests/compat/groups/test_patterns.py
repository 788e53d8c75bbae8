"""Subscriptions by pattern: matched by classic members themselves, by the broker with RE2 under the new protocol."""

from tests.compat.clients.api import Feature, Protocol
from tests.compat.clients.stage import Stage, for_every_client, protocols
from tests.compat.clients.words import wait_for_values, wait_until_shared
from tests.compat.scenario import eventually


@for_every_client(variants=protocols)
def test_a_pattern_subscribes_to_every_topic_that_matches(stage: Stage, protocol: Protocol) -> None:
    name = stage.new_name("pattern")
    topics = [stage.new_topic(name=f"{name}-{ending}") for ending in ("a", "b", "other")]
    for topic in topics:
        stage.write(topic, topic)
    member = stage.consumer(stage.new_name("group"), pattern=f"^{name}-[a-c]$", protocol=protocol)
    wait_until_shared([member], {(topic, 0) for topic in topics[:2]})
    wait_for_values([member], topics[:2])


@for_every_client(Feature.NEW_PATTERN_TOPICS, variants=protocols)
def test_a_topic_made_later_is_found(stage: Stage, protocol: Protocol) -> None:
    name = stage.new_name("pattern")
    first = stage.new_topic(name=f"{name}-a")
    member = stage.consumer(stage.new_name("group"), pattern=f"^{name}-[a-c]$", protocol=protocol)
    wait_until_shared([member], {(first, 0)})
    second = stage.new_topic(name=f"{name}-c", partitions=2)
    wait_until_shared([member], {(first, 0), (second, 0), (second, 1)})


@for_every_client(Feature.CONSUMER_PROTOCOL, Feature.UNCHECKED_PATTERN)
def test_a_pattern_that_is_none_is_refused_by_the_broker(stage: Stage) -> None:
    member = stage.consumer(stage.new_name("group"), pattern="^(unclosed", protocol="consumer")
    eventually(lambda: member.look().error is not None, "the member gets an error")
    assert member.look().error == "INVALID_REGULAR_EXPRESSION"
