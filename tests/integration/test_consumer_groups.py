"""Consumer groups (KIP-848) over the wire: members in single steps, what is refused, groups that change protocol, and
what a restart brings back. `--against kafka` runs the same tests there.
"""

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.protocol.consumer_protocol import read_assignment, write_assignment
from kaspar.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kaspar.protocol.messages.consumer_protocol_assignment import TopicPartition as AssignedPartition
from kaspar.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription, TopicPartition
from kaspar.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kaspar.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.peers.against import broker_to_test
from tests.peers.observed import wait_until
from tests.peers.process import BrokerProcess
from tests.peers.raw_client import RawClient
from tests.peers.raw_consumer_groups import RawConsumer, describe_consumer_group
from tests.peers.raw_groups import RawGroups, RawMember
from tests.peers.raw_transactions import GROUP as GROUP_COORDINATOR
from tests.peers.raw_transactions import find_coordinator
from tests.unit.groups.subscriptions import write_subscription

SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.heartbeat.interval.ms": "5000",
    "group.consumer.max.size": "3",
}
GROUP_RESOURCE = 32
NOT_ASKED = -(2**31)
CLASSIC, CONSUMER = 0, 1
FIRST = 2
"""The epoch at which the first member of a group is."""

NewConsumer = Callable[..., RawConsumer]


@pytest.fixture(scope="module")
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with broker_to_test(request, tmp_path_factory.mktemp("broker"), SETTINGS) as running:
        yield running


@pytest.fixture
def client(broker: BrokerProcess) -> Iterator[RawClient]:
    with RawClient(broker.port) as client:
        yield client


_numbers = itertools.count()


@pytest.fixture
def group_id(client: RawClient) -> str:
    """Of a group whose coordinator has loaded."""
    name = f"readers-{next(_numbers)}"
    find_coordinator(client, name, GROUP_COORDINATOR)
    wait_until(
        lambda: describe_consumer_group(client, name).error_code == ErrorCode.GROUP_ID_NOT_FOUND,
        "the coordinator has loaded",
    )
    return name


@pytest.fixture
def topic(client: RawClient, group_id: str) -> str:
    """Of four partitions, and a name of its own. Apache Kafka's coordinator learns of it a moment after it was made."""
    name = f"orders-{next(_numbers)}"
    assert client.create_topic(name, partitions=4) == ErrorCode.NONE
    first = RawConsumer(client, f"first-of-{name}", (name,))
    find_coordinator(client, first.group_id, GROUP_COORDINATOR)

    def is_known() -> bool:
        first.join()
        return first.partitions == [0, 1, 2, 3]

    wait_until(is_known, "the coordinator knows the topic")
    return name


@pytest.fixture
def new_consumer(client: RawClient, group_id: str, topic: str) -> NewConsumer:
    return partial(RawConsumer, client, group_id, (topic,))


def code(response: Any) -> ErrorCode:
    return ErrorCode(response.error_code)


def settle(*consumers: RawConsumer) -> None:
    """Members apply their assignments until none of them changes."""

    def is_settled() -> bool:
        before = [(consumer.epoch, set(consumer.owned)) for consumer in consumers]
        for consumer in consumers:
            assert code(consumer.step()) is ErrorCode.NONE
        return before == [(consumer.epoch, consumer.owned) for consumer in consumers] and (
            len({consumer.epoch for consumer in consumers}) == 1
        )

    wait_until(is_settled, "every member has reached its target assignment")


# -- joining -----------------------------------------------------------------------------------------------------------


def test_the_first_member_has_everything_at_once(new_consumer: NewConsumer) -> None:
    one = new_consumer()
    joined = one.join()
    assert (code(joined), joined.member_epoch, joined.heartbeat_interval_ms) == (ErrorCode.NONE, FIRST, 5_000)
    assert one.partitions == [0, 1, 2, 3]
    again = one.heartbeat()
    assert (code(again), again.member_epoch, again.assignment) == (ErrorCode.NONE, FIRST, None)


def test_at_version_0_the_broker_makes_the_member_id(new_consumer: NewConsumer) -> None:
    one = new_consumer(member_id="")
    assert code(one.join(version=0)) is ErrorCode.NONE
    assert one.member_id
    assert code(one.say(FIRST, 0)) is ErrorCode.NONE


def test_partitions_go_over_without_ever_having_two_owners(new_consumer: NewConsumer) -> None:
    one, two = new_consumer(), new_consumer()
    one.join()
    joined = two.join()
    assert (joined.member_epoch, two.partitions) == (FIRST + 1, [])
    response = one.heartbeat()
    assert (response.member_epoch, len(one.partitions)) == (FIRST, 2)
    assert two.heartbeat().assignment is None, "they have not been given up yet"
    assert one.step().member_epoch == FIRST + 1
    two.heartbeat()
    assert sorted(one.partitions + two.partitions) == [0, 1, 2, 3]


def test_a_member_that_leaves_frees_its_partitions(new_consumer: NewConsumer) -> None:
    one, two = new_consumer(), new_consumer()
    one.join()
    two.join()
    settle(one, two)
    left = two.leave()
    assert (code(left), left.member_epoch) == (ErrorCode.NONE, -1)
    one.heartbeat()
    assert one.partitions == [0, 1, 2, 3]


def test_a_full_group_takes_no_more(new_consumer: NewConsumer) -> None:
    for _ in range(3):
        assert code(new_consumer().join()) is ErrorCode.NONE
    assert code(new_consumer().join()) is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_range_gives_ranges(new_consumer: NewConsumer) -> None:
    one, two = new_consumer(member_id="a", assignor="range"), new_consumer(member_id="b", assignor="range")
    one.join()
    two.join()
    settle(one, two)
    assert (one.partitions, two.partitions) == ([0, 1], [2, 3])


def test_new_partitions_are_assigned(client: RawClient, topic: str, new_consumer: NewConsumer) -> None:
    one = new_consumer()
    one.join()
    request = CreatePartitionsRequest(
        topics=(CreatePartitionsTopic(name=topic, count=6, assignments=None),), timeout_ms=10_000, validate_only=False
    )
    assert client.call(request, CreatePartitionsResponse).results[0].error_code == ErrorCode.NONE

    def has_them() -> bool:
        one.heartbeat()
        return one.partitions == [0, 1, 2, 3, 4, 5]

    wait_until(has_them, "the new partitions are assigned")
    assert one.epoch == FIRST + 1


def test_a_group_may_set_its_own_heartbeat_interval(
    client: RawClient, group_id: str, new_consumer: NewConsumer
) -> None:
    config = AlterableConfig(name="consumer.heartbeat.interval.ms", config_operation=0, value="7000")
    resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group_id, configs=(config,))
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    assert client.call(request, IncrementalAlterConfigsResponse).responses[0].error_code == ErrorCode.NONE
    one = new_consumer()
    wait_until(lambda: one.join().heartbeat_interval_ms == 7_000, "the group's own interval is reported")


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_an_unknown_member_is_refused(new_consumer: NewConsumer) -> None:
    one, other = new_consumer(), new_consumer()
    assert code(one.say(1)) is ErrorCode.GROUP_ID_NOT_FOUND
    assert code(one.say(-1)) is ErrorCode.GROUP_ID_NOT_FOUND
    one.join()
    assert code(other.say(1)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert code(other.say(-1)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_wrong_epochs_are_fenced(new_consumer: NewConsumer) -> None:
    one, two = new_consumer(), new_consumer()
    one.join()
    everything = one.reported
    two.join()
    settle(one, two)
    assert code(one.say(FIRST + 2)) is ErrorCode.FENCED_MEMBER_EPOCH
    assert code(one.say(FIRST)) is ErrorCode.FENCED_MEMBER_EPOCH
    assert code(one.say(FIRST, topic_partitions=everything)) is ErrorCode.FENCED_MEMBER_EPOCH
    missed = one.say(FIRST, topic_partitions=one.reported)
    assert (code(missed), missed.member_epoch) == (ErrorCode.NONE, FIRST + 1)


@pytest.mark.parametrize(
    ("epoch", "said"),
    [
        (0, {"rebalance_timeout_ms": -1}),
        (0, {"subscribed_topic_names": None}),
        (0, {"topic_partitions": None}),
        (0, {"instance_id": ""}),
        (0, {"rack_id": ""}),
        (-2, {}),
        (-3, {}),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(new_consumer: NewConsumer, epoch: int, said: dict[str, Any]) -> None:
    one = new_consumer()
    refused = one.say(epoch, **{**one.everything, **said})
    assert code(refused) is ErrorCode.INVALID_REQUEST
    assert refused.error_message


def test_an_assignor_that_is_not_there_is_refused(new_consumer: NewConsumer) -> None:
    assert code(new_consumer(assignor="mine").join()) is ErrorCode.UNSUPPORTED_ASSIGNOR


@pytest.mark.parametrize("pattern", ["(", "*", "[a", "(?=a)"])
def test_a_bad_pattern_is_refused(client: RawClient, group_id: str, pattern: str) -> None:
    refused = RawConsumer(client, group_id, pattern=pattern).join()
    assert code(refused) is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert refused.error_message


# -- patterns ----------------------------------------------------------------------------------------------------------


def test_a_pattern_is_resolved_soon(client: RawClient, group_id: str, topic: str) -> None:
    one = RawConsumer(client, group_id, pattern=f"{topic[:-1]}.")
    assert code(one.join()) is ErrorCode.NONE

    def has_them() -> bool:
        one.heartbeat()
        return {0, 1, 2, 3} <= set(one.partitions)

    wait_until(has_them, "the pattern is resolved and assigned")


# -- static members ----------------------------------------------------------------------------------------------------


def test_a_static_member_comes_back_to_what_it_had(new_consumer: NewConsumer) -> None:
    static, other = new_consumer(instance_id="i"), new_consumer()
    static.join()
    other.join()
    settle(static, other)
    had, epoch = static.partitions, static.epoch
    left = static.leave(-2)
    assert (code(left), left.member_epoch) == (ErrorCode.NONE, -2)
    back = new_consumer(instance_id="i")
    assert back.join().member_epoch == epoch
    assert back.partitions == had
    assert code(static.say(epoch)) is ErrorCode.FENCED_INSTANCE_ID


def test_an_instance_id_in_use_is_not_given_away(new_consumer: NewConsumer) -> None:
    new_consumer(instance_id="i").join()
    assert code(new_consumer(instance_id="i").join()) is ErrorCode.UNRELEASED_INSTANCE_ID


# -- descriptions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1])
def test_a_group_is_described(
    client: RawClient, group_id: str, topic: str, new_consumer: NewConsumer, version: int
) -> None:
    one = new_consumer(instance_id="i")
    one.join()
    group = describe_consumer_group(client, group_id, version)
    assert (group.error_code, group.group_state, group.group_epoch) == (0, "Stable", FIRST)
    assert (group.assignment_epoch, group.assignor_name) == (FIRST, "uniform")
    assert group.authorized_operations == NOT_ASKED
    (member,) = group.members
    assert (member.member_id, member.instance_id, member.member_epoch) == (one.member_id, "i", FIRST)
    assert member.subscribed_topic_names == (topic,)
    assert member.client_host == "/127.0.0.1"
    assert member.member_type == (CONSUMER if version else -1)
    for assignment in (member.assignment, member.target_assignment):
        assert [(each.topic_name, sorted(each.partitions)) for each in assignment.topic_partitions] == [
            (topic, [0, 1, 2, 3])
        ]


def test_a_group_that_is_not_there_is_not_described(client: RawClient, group_id: str) -> None:
    group = describe_consumer_group(client, group_id)
    assert code(group) is ErrorCode.GROUP_ID_NOT_FOUND
    assert group.error_message


def test_consumer_groups_are_listed_with_their_type(
    client: RawClient, group_id: str, new_consumer: NewConsumer
) -> None:
    new_consumer().join()
    groups = RawGroups(client)
    listed = groups.listed(types=("consumer",))[group_id]
    assert (listed.group_state, listed.group_type, listed.protocol_type) == ("Stable", "consumer", "consumer")
    assert group_id not in groups.listed(types=("classic",))
    described = groups.describe(group_id)
    assert (code(described), described.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")


# -- groups that change protocol ---------------------------------------------------------------------------------------


def subscription(topic: str, *owned: int) -> bytes:
    owned_partitions = (TopicPartition(topic=topic, partitions=owned),) if owned else ()
    return write_subscription(ConsumerProtocolSubscription(topics=(topic,), owned_partitions=owned_partitions), 3)


def assignment(topic: str, *partitions: int) -> bytes:
    assigned = (AssignedPartition(topic=topic, partitions=partitions),)
    return write_assignment(ConsumerProtocolAssignment(assigned_partitions=assigned), 3)


def assigned_to(octets: bytes) -> list[int]:
    return [each for topic in read_assignment(octets).assigned_partitions for each in topic.partitions]


def classic_member(broker: BrokerProcess, group_id: str, topic: str) -> RawMember:
    """Alone in its group, with all partitions."""
    member = RawMember(broker.port, group_id, protocols={"cooperative-sticky": subscription(topic)})
    member.join()
    assert member.sync({member.member_id: assignment(topic, 0, 1, 2, 3)}).error_code == ErrorCode.NONE
    return member


def test_a_group_goes_over_to_the_new_protocol_and_back(
    broker: BrokerProcess, client: RawClient, group_id: str, topic: str, new_consumer: NewConsumer
) -> None:
    with classic_member(broker, group_id, topic) as old:
        new = new_consumer()
        assert new.join().member_epoch == 2
        assert new.partitions == []
        assert old.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
        old.protocols = {"cooperative-sticky": subscription(topic, 0, 1, 2, 3)}
        joined = old.join()
        assert (joined.generation_id, joined.leader, joined.members) == (1, "", ())
        kept = assigned_to(old.sync().assignment)
        assert len(kept) == 2
        assert new.heartbeat().assignment is None, "they have not been given up yet"
        assert old.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
        old.protocols = {"cooperative-sticky": subscription(topic, *kept)}
        assert old.join().generation_id == 2
        assert assigned_to(old.sync().assignment) == kept
        assert old.heartbeat() is ErrorCode.NONE
        new.heartbeat()
        assert sorted(new.partitions + kept) == [0, 1, 2, 3]
        types = {member.member_id: member.member_type for member in describe_consumer_group(client, group_id).members}
        assert types == {old.member_id: CLASSIC, new.member_id: CONSUMER}

        new.leave()
        groups = RawGroups(client)
        assert groups.listed()[group_id].group_type == "classic"
        wait_until(lambda: groups.state(group_id) == "PreparingRebalance", "the classic group rebalances")
        assert old.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
        joined = old.join()
        assert (joined.generation_id, joined.leader) == (3, old.member_id)


def test_a_group_of_no_consumers_is_not_upgraded(
    broker: BrokerProcess, group_id: str, new_consumer: NewConsumer
) -> None:
    with RawMember(broker.port, group_id, protocol_type="connect") as worker:
        worker.join()
        assert code(new_consumer().join()) is ErrorCode.GROUP_ID_NOT_FOUND


def test_an_empty_group_gives_way_to_either_protocol(
    broker: BrokerProcess, client: RawClient, group_id: str, topic: str, new_consumer: NewConsumer
) -> None:
    groups = RawGroups(client)
    new = new_consumer()
    new.join()
    new.leave()
    with classic_member(broker, group_id, topic) as old:
        assert groups.listed()[group_id].group_type == "classic"
        old.leave()
    assert new_consumer().join().member_epoch == FIRST
    assert groups.listed()[group_id].group_type == "consumer"


# -- restarts ----------------------------------------------------------------------------------------------------------


def test_a_group_goes_on_after_a_restart(broker: BrokerProcess, topic: str) -> None:
    group = f"restarted-{next(_numbers)}"
    with RawClient(broker.port) as client:
        find_coordinator(client, group, GROUP_COORDINATOR)
        one, two = RawConsumer(client, group, (topic,)), RawConsumer(client, group, (topic,), instance_id="i")
        one.join()
        two.join()
        settle(one, two)
        before = describe_consumer_group(client, group)
    broker.restart()
    with RawClient(broker.port) as client:
        find_coordinator(client, group, GROUP_COORDINATOR)
        wait_until(
            lambda: describe_consumer_group(client, group).error_code == ErrorCode.NONE, "the coordinator has loaded"
        )
        after = describe_consumer_group(client, group)
        assert (after.group_state, after.group_epoch) == ("Stable", before.group_epoch)
        assert {each.member_id for each in after.members} == {each.member_id for each in before.members}
        one.client = two.client = client
        assert one.heartbeat().member_epoch == two.heartbeat().member_epoch == before.group_epoch
