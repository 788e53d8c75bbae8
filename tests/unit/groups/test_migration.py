"""Groups that change protocol while their members go on reading: upgrade, life together, downgrade."""

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.config.broker.groups import GroupSettings
from kaspar.groups.classic_group import ClassicGroup
from kaspar.groups.consumer_group import ConsumerGroup
from kaspar.protocol.consumer_protocol import write_assignment
from kaspar.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from tests.unit.groups.consumer.shell import (
    AT_ONCE,
    HEARTBEAT_MS,
    ClassicConsumer,
    Consumer,
    ConsumerShell,
    subscription,
)
from tests.unit.groups.consumer.test_heartbeat import ALL, code
from tests.unit.groups.shell import GROUP, REBALANCE_MS, SESSION_MS


def assignment(*partitions: int, user_data: bytes | None = None) -> bytes:
    topics = (TopicPartition(topic="orders", partitions=partitions),)
    return write_assignment(ConsumerProtocolAssignment(assigned_partitions=topics, user_data=user_data), 3)


def classic_group(shell: ConsumerShell, *, instance_id: str | None = None) -> ClassicConsumer:
    """A classic group of one consumer that has everything."""
    consumer = ClassicConsumer(shell, instance_id=instance_id).join()
    consumer.sync({consumer.member_id: assignment(0, 1, 2, 3)})
    assert consumer.partitions == ALL
    return consumer


def mixed_group(shell: ConsumerShell) -> tuple[ClassicConsumer, Consumer]:
    """One of each, with two partitions each."""
    classic = classic_group(shell)
    consumer = shell.consumer("new").join()
    share(shell, classic, consumer)
    assert len(classic.partitions) == len(consumer.partitions) == 2
    return classic, consumer


def share(shell: ConsumerShell, *members: ClassicConsumer | Consumer, rounds: int = 8) -> None:
    for _ in range(rounds):
        shell.advance(SESSION_MS // 4)
        for member in members:
            member.heartbeat()


def kind(shell: ConsumerShell) -> str:
    return shell.shard.groups[GROUP].kind.value


# -- upgrade -----------------------------------------------------------------------------------------------------------


def test_a_member_of_the_new_protocol_upgrades_a_classic_group() -> None:
    shell = ConsumerShell()
    classic = classic_group(shell)
    generation = classic.generation
    consumer = shell.consumer("new").join()
    assert kind(shell) == "consumer"
    assert consumer.epoch == generation + 1
    assert consumer.partitions == set(), "the other has everything"
    assert shell.member(classic.member_id).uses_classic_protocol
    assert classic.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS


def test_partitions_go_over_one_by_one_and_never_to_two() -> None:
    shell = ConsumerShell()
    classic, consumer = mixed_group(shell)
    assert classic.partitions | consumer.partitions == ALL
    assert not classic.partitions & consumer.partitions
    assert shell.state == "Stable"


def test_an_empty_classic_group_gives_way() -> None:
    shell = ConsumerShell(GroupSettings(group_consumer_migration_policy="disabled", group_initial_rebalance_delay_ms=0))
    classic = classic_group(shell)
    shell.leave((classic.member_id, None))
    assert (kind(shell), shell.state) == ("classic", "Empty")
    assert shell.consumer("new").join().partitions == ALL
    assert kind(shell) == "consumer"


def test_an_empty_consumer_group_gives_way() -> None:
    shell = ConsumerShell()
    shell.consumer("new").join().leave()
    classic = classic_group(shell)
    assert kind(shell) == "classic"
    assert classic.generation == 1


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_the_policy_may_forbid_it(policy: str) -> None:
    shell = ConsumerShell(GroupSettings(group_consumer_migration_policy=policy, group_initial_rebalance_delay_ms=0))
    classic_group(shell)
    assert code(shell.consumer("new").join().response) is ErrorCode.GROUP_ID_NOT_FOUND
    assert kind(shell) == "classic"


def test_a_group_of_something_else_than_consumers_stays_what_it_is() -> None:
    shell = ConsumerShell()
    shell.join(instance_id="i", protocol_type="connect")
    assert code(shell.consumer("new").join().response) is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_above_the_limit_of_consumer_groups_stays_what_it_is() -> None:
    shell = ConsumerShell(GroupSettings(group_consumer_max_size=1, group_initial_rebalance_delay_ms=0))
    shell.join(instance_id="i", protocols={"range": subscription("orders")})
    shell.join(instance_id="j", protocols={"range": subscription("orders")})
    assert code(shell.consumer("new").join().response) is ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("metadata", [b"", b"\0", b"\0\1\0", b"\xff\xff"])
def test_a_subscription_that_cannot_be_read_keeps_the_group_what_it_is(metadata: bytes) -> None:
    shell = ConsumerShell()
    shell.join(instance_id="i", protocols={"range": metadata})
    assert code(shell.consumer("new").join().response) is ErrorCode.GROUP_ID_NOT_FOUND
    assert kind(shell) == "classic"


def test_an_assignor_that_keeps_data_of_its_own_keeps_the_group_what_it_is() -> None:
    shell = ConsumerShell()
    consumer = ClassicConsumer(shell).join()
    consumer.sync({consumer.member_id: assignment(0, user_data=b"mine")})
    assert code(shell.consumer("new").join().response) is ErrorCode.GROUP_ID_NOT_FOUND


def test_members_that_wait_for_the_classic_group_have_to_rejoin() -> None:
    shell = ConsumerShell(
        GroupSettings(group_consumer_assignment_interval_ms=0, group_initial_rebalance_delay_ms=3_000)
    )
    waiting = shell.join(instance_id="i", protocols={"range": subscription("orders")})
    assert waiting.response is None
    shell.consumer("new").join()
    assert waiting.code is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_refused_upgrade_leaves_the_classic_group_as_it_was() -> None:
    shell = ConsumerShell()
    classic = classic_group(shell)
    shell.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
    shell.consumer("new").join()
    shell.refuses = None
    assert kind(shell) == "classic"
    assert shell.heartbeat(classic.member_id, classic.generation) is ErrorCode.NONE


def test_a_static_member_may_change_protocol() -> None:
    shell = ConsumerShell()
    classic_group(shell, instance_id="i")
    consumer = shell.consumer("new", instance_id="i").join()
    assert consumer.partitions == ALL
    assert set(shell.membership.state.members) == {"new"}


def test_a_static_member_that_changes_protocol_while_its_group_rebalances_gets_what_it_reads() -> None:
    shell = ConsumerShell(orders=1, payments=1)
    shell.consumer("old", "orders", instance_id="i").join()
    shell.join(instance_id="i", protocols={"range": subscription("orders", "payments")})
    assert kind(shell) == "classic"
    consumer = shell.consumer("new", "orders", "payments", instance_id="i").join()
    assert consumer.partitions == {"orders-0", "payments-0"}


# -- together ----------------------------------------------------------------------------------------------------------


def test_members_of_the_classic_protocol_come_and_go() -> None:
    shell = ConsumerShell()
    classic, consumer = mixed_group(shell)
    third = ClassicConsumer(shell).join()
    third.sync()
    share(shell, classic, consumer, third)
    owned = [classic.partitions, consumer.partitions, third.partitions]
    assert sorted(len(each) for each in owned) == [1, 1, 2]
    assert set().union(*owned) == ALL
    shell.leave((third.member_id, None))
    share(shell, classic, consumer)
    assert classic.partitions | consumer.partitions == ALL


def test_a_member_of_the_classic_protocol_is_given_an_id_first() -> None:
    shell = ConsumerShell()
    mixed_group(shell)
    assert shell.join(protocols={"cooperative-sticky": subscription("orders")}).code is ErrorCode.MEMBER_ID_REQUIRED


def test_protocols_have_to_fit() -> None:
    shell = ConsumerShell()
    mixed_group(shell)
    other = {"range": subscription("orders")}
    assert shell.join("x", protocols=other).code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert shell.join("x", protocols={"cooperative-sticky": b""}).code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    fits = {"cooperative-sticky": subscription("orders")}
    assert shell.join("x", protocols=fits, protocol_type="connect").code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_the_generation_of_a_member_is_its_epoch() -> None:
    shell = ConsumerShell()
    classic, _ = mixed_group(shell)
    assert shell.heartbeat(classic.member_id, classic.generation + 1) is ErrorCode.ILLEGAL_GENERATION
    assert shell.sync(classic.member_id, classic.generation - 1).code is ErrorCode.ILLEGAL_GENERATION
    assert shell.heartbeat("nobody", 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_of_the_new_protocol_is_not_served_the_old() -> None:
    shell = ConsumerShell()
    _, consumer = mixed_group(shell)
    assert shell.heartbeat(consumer.member_id, consumer.epoch) is ErrorCode.UNKNOWN_MEMBER_ID
    assert shell.sync(consumer.member_id, consumer.epoch).code is ErrorCode.UNKNOWN_MEMBER_ID


def test_sync_names_the_protocol_that_was_joined_with() -> None:
    shell = ConsumerShell()
    classic, _ = mixed_group(shell)
    wrong = shell.sync(classic.member_id, classic.generation, protocol_name="range")
    assert wrong.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    right = shell.sync(
        classic.member_id, classic.generation, protocol_type="consumer", protocol_name="cooperative-sticky"
    )
    assert (right.code, right.response.protocol_name) == (ErrorCode.NONE, "cooperative-sticky")


def test_a_sync_after_the_group_epoch_moved_on_has_to_rejoin() -> None:
    shell = ConsumerShell()
    classic, _ = mixed_group(shell)
    shell.consumer("third").join()
    assert shell.sync(classic.member_id, classic.generation).code is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_session_of_a_member_of_the_classic_protocol_is_its_own() -> None:
    shell = ConsumerShell()
    _, consumer = mixed_group(shell)
    shell.advance(SESSION_MS)
    assert set(shell.membership.state.members) == {"new"}
    consumer.heartbeat()
    assert consumer.partitions == ALL


def test_a_member_that_has_to_rejoin_and_does_not_is_removed() -> None:
    shell = ConsumerShell()
    classic, consumer = mixed_group(shell)
    third = shell.consumer("third").join()
    for _ in range(REBALANCE_MS // HEARTBEAT_MS):
        assert classic.member_id in shell.membership.state.members
        shell.heartbeat(classic.member_id, classic.generation)
        consumer.heartbeat()
        third.heartbeat()
        shell.advance(HEARTBEAT_MS)
    assert classic.member_id not in shell.membership.state.members


def test_a_member_that_joins_and_does_not_sync_is_removed() -> None:
    shell = ConsumerShell()
    _, consumer = mixed_group(shell)
    third = ClassicConsumer(shell).join()
    for _ in range(REBALANCE_MS // HEARTBEAT_MS):
        assert third.member_id in shell.membership.state.members
        shell.heartbeat(third.member_id, third.generation)
        consumer.heartbeat()
        shell.advance(HEARTBEAT_MS)
    assert third.member_id not in shell.membership.state.members


def test_admin_tools_remove_static_members_of_either_protocol() -> None:
    shell = ConsumerShell()
    classic, _ = mixed_group(shell)
    shell.consumer("s", instance_id="i").join()
    response = shell.leave(("", "i"), ("", "nobody"), ("x", "i"), (classic.member_id, None)).response
    assert [ErrorCode(member.error_code) for member in response.members] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.NONE,
    ]
    assert set(shell.membership.state.members) == {"new"}


def test_a_mixed_group_goes_on_after_a_restart() -> None:
    shell = ConsumerShell()
    classic, consumer = mixed_group(shell)
    shell.crash()
    assert shell.heartbeat(classic.member_id, classic.generation) is ErrorCode.NONE
    consumer.heartbeat()
    assert shell.state == "Stable"


# -- downgrade ---------------------------------------------------------------------------------------------------------


def test_the_last_member_of_the_new_protocol_leaves_a_classic_group_behind() -> None:
    shell = ConsumerShell()
    classic, consumer = mixed_group(shell)
    epoch = shell.membership.state.group_epoch
    consumer.leave()
    assert kind(shell) == "classic"
    shell.advance(0)
    group = shell.shard.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    assert (group.membership.generation_id, group.state_name) == (epoch, "PreparingRebalance")
    assert [member.member_id for member in group.membership.roster] == [classic.member_id]
    classic.join()
    classic.sync({classic.member_id: assignment(0, 1, 2, 3)})
    assert classic.generation == epoch + 1
    assert classic.partitions == ALL


def test_a_session_that_ends_does_the_same() -> None:
    shell = ConsumerShell()
    classic, _ = mixed_group(shell)
    for _ in range(20):
        shell.advance(SESSION_MS // 4)
        if kind(shell) == "classic":
            break
        shell.heartbeat(classic.member_id, classic.generation)
    assert kind(shell) == "classic"
    assert shell.heartbeat(classic.member_id, classic.generation) is ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("policy", ["disabled", "upgrade"])
def test_the_policy_may_keep_it_a_consumer_group(policy: str) -> None:
    shell = ConsumerShell()
    classic, consumer = mixed_group(shell)
    shell.shard.context.settings = GroupSettings(group_consumer_migration_policy=policy)
    consumer.leave()
    assert kind(shell) == "consumer"
    assert set(shell.membership.state.members) == {classic.member_id}


def test_the_last_member_of_all_leaves_an_empty_consumer_group_behind() -> None:
    shell = ConsumerShell()
    shell.consumer("new").join().leave()
    assert isinstance(shell.shard.groups[GROUP], ConsumerGroup)


def test_a_group_that_was_downgraded_is_a_classic_one_after_a_restart() -> None:
    shell = ConsumerShell()
    _, consumer = mixed_group(shell)
    consumer.leave()
    shell.crash()
    assert (kind(shell), shell.state) == ("classic", "Stable")
    group = shell.shard.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    shell.advance(SESSION_MS)
    assert shell.state == "Empty"


def test_a_static_member_that_goes_back_takes_the_group_along() -> None:
    shell = ConsumerShell()
    shell.consumer("new", instance_id="i").join()
    back = ClassicConsumer(shell, instance_id="i").join()
    assert kind(shell) == "classic"
    assert back.member_id != "new"
    shell.advance(0)
    assert shell.state == "Stable", "it reads the same: there is nothing to rebalance for"
    assert back.sync() is ErrorCode.NONE
    assert back.partitions == ALL


def test_a_static_member_that_goes_back_to_read_something_else_rebalances() -> None:
    shell = ConsumerShell(AT_ONCE, orders=1, payments=1)
    shell.consumer("new", instance_id="i").join()
    ClassicConsumer(shell, topics=("payments",), instance_id="i").join()
    shell.advance(0)
    assert (kind(shell), shell.state) == ("classic", "PreparingRebalance")


def test_a_group_may_go_back_and_forth() -> None:
    shell = ConsumerShell()
    classic, consumer = mixed_group(shell)
    for _ in range(3):
        consumer.leave()
        shell.advance(0)
        classic.join()
        classic.sync({classic.member_id: assignment(0, 1, 2, 3)})
        assert (kind(shell), shell.state) == ("classic", "Stable")
        consumer = shell.consumer("new").join()
        share(shell, classic, consumer)
        assert (kind(shell), shell.state) == ("consumer", "Stable")
