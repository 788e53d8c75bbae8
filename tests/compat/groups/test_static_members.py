"""Static members (KIP-345): a restart within the session moves nothing, and an instance id has one holder."""

from collections.abc import Sequence

from tests.compat.clients.api import ClientKind, Feature, Protocol
from tests.compat.clients.stage import Stage, for_every_client, protocols
from tests.compat.clients.words import healthy, partitions_of, wait_until_shared
from tests.compat.scenario import eventually

LONG_SESSION_MS = 30_000  # longer than any restart takes


def restartable(kind: ClientKind) -> Sequence[Protocol]:
    return protocols(kind) if kind.can([Feature.RELEASED_INSTANCE]) else ("classic",)


@for_every_client(Feature.STATIC_MEMBER, variants=restartable)
def test_a_static_member_that_restarts_gets_its_partitions_without_a_rebalance(
    stage: Stage, protocol: Protocol
) -> None:
    topic = stage.new_topic(partitions=4)
    group = stage.new_name("group")
    options = {"protocol": protocol, "session_timeout_ms": LONG_SESSION_MS}
    other = stage.consumer(group, topic, instance_id="other", **options)
    process = stage.spare()
    restarting = process.consumer(group, topic, instance_id="restarting", **options)
    wait_until_shared([other, restarting], partitions_of(topic, 4))
    held = restarting.look().assignment
    rebalances = other.look().rebalances
    if protocol == "consumer":
        restarting.close()  # under KIP-848 it must let go of its instance id, or wait until its session ends
    process.kill()
    restarted = stage.spare().consumer(group, topic, instance_id="restarting", **options)
    eventually(lambda: healthy(restarted).assignment == held, lambda: f"{held}, but {restarted.look().assignment}")
    assert other.look().rebalances == rebalances
    assert other.look().assignment == partitions_of(topic, 4) - held


@for_every_client(Feature.STATIC_MEMBER, Feature.FENCED_INSTANCE)
def test_a_newer_holder_of_an_instance_id_fences_the_older(stage: Stage) -> None:
    topic = stage.new_topic(partitions=2)
    group = stage.new_name("group")
    older = stage.consumer(group, topic, instance_id="one")
    wait_until_shared([older], partitions_of(topic, 2))
    newer = stage.spare().consumer(group, topic, instance_id="one")
    wait_until_shared([newer], partitions_of(topic, 2))
    eventually(lambda: older.look().error is not None, "the older member gets an error")
    assert older.look().error == "FENCED_INSTANCE_ID"


@for_every_client(Feature.STATIC_MEMBER, Feature.CONSUMER_PROTOCOL)
def test_under_the_new_protocol_an_instance_id_in_use_is_refused(stage: Stage) -> None:
    topic = stage.new_topic(partitions=2)
    group = stage.new_name("group")
    holder = stage.consumer(group, topic, instance_id="one", protocol="consumer")
    wait_until_shared([holder], partitions_of(topic, 2))
    refused = stage.spare().consumer(group, topic, instance_id="one", protocol="consumer")
    eventually(lambda: refused.look().error is not None, "the second is refused")
    assert refused.look().error == "UNRELEASED_INSTANCE_ID"
    assert healthy(holder).assignment == partitions_of(topic, 2)
