"""Groups of a real broker: seen, reset, deleted, and changed by two people at once."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as KafkaPosition

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.group_offsets import alter_group_offsets, list_group_offsets
from kaspar.client.admin.groups import list_groups
from kaspar.client.admin.session import Admin, accepted
from kaspar.console.groups.changing import delete_group, delete_offsets, remove_member
from kaspar.console.groups.describing import describe_group
from kaspar.console.groups.listing import GroupQuery, select, with_members
from kaspar.console.groups.resetting import Move, Preview, Scope, Target, TargetKind, execute, preview
from kaspar.console.problems import Conflict, NotThere, Unacceptable
from kaspar.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from tests.integration.console.administration.conftest import HER_GROUP, HERS, RECORDS, SecuredBroker
from tests.peers.observed import wait_until
from tests.peers.raw_client import RawClient

NewTopic = Callable[..., str]
BEFORE_KIP_394 = 3
"""A version of JoinGroup by which a member joins at once."""
EARLIEST, LATEST = Target(TargetKind.EARLIEST), Target(TargetKind.LATEST)
NOW_MS = 1_700_000_000_000
_numbers = itertools.count()


def group_name() -> str:
    return f"billing-{next(_numbers)}"


@contextmanager
def reading(broker: SecuredBroker, topic: str, group: str, **settings: str) -> Iterator[Consumer]:
    """A consumer that has joined its group."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "client.id": "reader",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
            **settings,
        }
    )
    try:
        consumer.subscribe([topic])
        while not consumer.assignment():
            consumer.poll(0.1)
        yield consumer
    finally:
        consumer.close()


def commit(admin: Admin, group: str, offsets: dict[TopicPartition, int]) -> None:
    assert set(alter_group_offsets(admin, group, offsets).values()) == {None}


def committed(admin: Admin, group: str) -> dict[TopicPartition, int]:
    found = accepted(list_group_offsets(admin, [group])[group])
    return {where: each.offset for where, each in found.items()}


def moves(shown: Preview) -> list[Move]:
    return [each.move for each in shown.moves]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_and_partitions_of_both_protocols_are_shown(
    broker: SecuredBroker, admin: Admin, new_topic: NewTopic, protocol: str
) -> None:
    topic, group = new_topic(2), group_name()
    with reading(broker, topic, group, **{"group.protocol": protocol}) as consumer:
        consumer.commit(offsets=_positions(topic, 4), asynchronous=False)
        view = describe_group(admin, group, None)
        assert (view.type.lower(), view.state, view.is_active) == (protocol, "Stable", True)
        (member,) = view.members
        assert (member.client_id, member.host) == ("reader", "127.0.0.1")
        assert member.assignment == {topic: (0, 1)}
        assert (member.target_assignment is None) is (protocol == "classic")
        assert [(each.partition, each.committed_offset, each.end_offset, each.lag) for each in view.partitions] == [
            (0, 4, RECORDS, RECORDS - 4),
            (1, None, RECORDS, None),
        ]
        assert view.partitions[0].owner == view.partitions[1].owner == "reader"
        assert view.total_lag == RECORDS - 4
        listed = with_members(admin, select(list_groups(admin), {}, GroupQuery(search=group)))
        assert [(row.group_id, row.members, row.state) for row in listed.rows] == [(group, 1, "Stable")]


def _positions(topic: str, offset: int) -> list[KafkaPosition]:
    return [KafkaPosition(topic, 0, offset)]


def test_offsets_are_reset_as_they_were_previewed(admin: Admin, new_topic: NewTopic) -> None:
    topic, group = new_topic(2), group_name()
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    commit(admin, group, {first: 4, second: 7})

    shown = preview(admin, group, EARLIEST, (), now_ms=NOW_MS)
    assert moves(shown) == [Move(topic, 0, 4, 0), Move(topic, 1, 7, 0)]
    assert (shown.skipped, shown.read_again, shown.refusal) == (0, 11, None)
    assert committed(admin, group) == {first: 4, second: 7}

    execute(admin, group, moves(shown))
    assert committed(admin, group) == {first: 0, second: 0}
    latest = preview(admin, group, LATEST, [Scope(topic, (1,))], now_ms=NOW_MS)
    assert (moves(latest), latest.skipped) == ([Move(topic, 1, 0, RECORDS)], RECORDS)


@pytest.mark.parametrize(
    ("target", "offset"),
    [
        (Target(TargetKind.TIME, 3_000), 2),
        (Target(TargetKind.TIME, 99_000), RECORDS),
        (Target(TargetKind.DURATION, NOW_MS - 3_000), 2),
        (Target(TargetKind.SHIFT, -1), 3),
        (Target(TargetKind.OFFSET, 6), 6),
        (Target(TargetKind.OFFSET, 600), RECORDS),
    ],
)
def test_every_target_is_found_in_the_log(admin: Admin, new_topic: NewTopic, target: Target, offset: int) -> None:
    topic = _shared_topic(new_topic)
    group = group_name()
    commit(admin, group, {TopicPartition(topic, 0): 4})
    assert moves(preview(admin, group, target, (), now_ms=NOW_MS)) == [Move(topic, 0, 4, offset)]


_shared: list[str] = []


def _shared_topic(new_topic: NewTopic) -> str:
    if not _shared:
        _shared.append(new_topic())
    return _shared[0]


def test_an_active_group_is_previewed_but_not_reset(broker: SecuredBroker, admin: Admin, new_topic: NewTopic) -> None:
    topic, group = new_topic(), group_name()
    with reading(broker, topic, group) as consumer:
        consumer.commit(offsets=_positions(topic, 4), asynchronous=False)
        shown = preview(admin, group, EARLIEST, (), now_ms=NOW_MS)
        assert shown.refusal is not None
        assert "its state is Stable, with the members reader" in shown.refusal
        with pytest.raises(Conflict, match="Stop its members first"):
            execute(admin, group, moves(shown))
    assert committed(admin, group) == {TopicPartition(topic, 0): 4}


def test_of_two_people_who_reset_the_same_group_the_second_is_told(admin: Admin, new_topic: NewTopic) -> None:
    topic, group = new_topic(), group_name()
    where = TopicPartition(topic, 0)
    commit(admin, group, {where: 4})
    one, other = (preview(admin, group, each, (), now_ms=NOW_MS) for each in (EARLIEST, LATEST))
    execute(admin, group, moves(one))
    with pytest.raises(Conflict, match=f"{topic}-0 have changed since the preview"):
        execute(admin, group, moves(other))
    assert committed(admin, group) == {where: 0}


def test_a_reset_names_what_exists(admin: Admin, new_topic: NewTopic) -> None:
    topic, group = new_topic(), group_name()
    commit(admin, group, {TopicPartition(topic, 0): 4})
    with pytest.raises(NotThere, match="no group nobody"):
        preview(admin, "nobody", EARLIEST, (), now_ms=NOW_MS)
    with pytest.raises(NotThere, match="no topic nowhere"):
        preview(admin, group, EARLIEST, [Scope("nowhere")], now_ms=NOW_MS)
    with pytest.raises(NotThere, match=f"no partition {topic}-7"):
        preview(admin, group, EARLIEST, [Scope(topic, (0, 7))], now_ms=NOW_MS)
    with pytest.raises(Unacceptable):
        execute(admin, group, [])


def test_a_group_of_another_protocol_is_shown_without_its_members(broker: SecuredBroker, admin: Admin) -> None:
    group = group_name()
    join = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        member_id="",
        protocol_type="connect",
        protocols=(JoinGroupRequestProtocol(name="default", metadata=b""),),
    )
    with RawClient(broker.process.port) as client:
        assert client.call(join, JoinGroupResponse, BEFORE_KIP_394).error_code == ErrorCode.NONE
    view = describe_group(admin, group, None)
    assert (view.type, view.protocol_type, view.members, view.is_active) == ("Classic", "connect", (), True)
    assert "protocol is connect" in view.remark
    (row,) = with_members(admin, select(list_groups(admin), {}, GroupQuery(search=group))).rows
    assert (row.protocol_type, row.members) == ("connect", None)


def test_groups_offsets_and_members_are_removed(broker: SecuredBroker, admin: Admin, new_topic: NewTopic) -> None:
    topic, other, group = new_topic(), new_topic(), group_name()
    with reading(broker, topic, group) as consumer:
        consumer.commit(offsets=[*_positions(topic, 4), *_positions(other, 2)], asynchronous=False)
        with pytest.raises(Conflict, match="has members"):
            delete_group(admin, group)
        with pytest.raises(Conflict, match="are subscribed"):
            delete_offsets(admin, group, topic)
        assert delete_offsets(admin, group, other) == 1
        (member,) = describe_group(admin, group, None).members
        remove_member(admin, group, member.member_id)
        with pytest.raises(NotThere, match="no longer in the group"):
            remove_member(admin, group, member.member_id)
    wait_until(lambda: not describe_group(admin, group, None).is_active, "the group is empty")
    assert committed(admin, group) == {TopicPartition(topic, 0): 4}
    delete_group(admin, group)
    with pytest.raises(NotThere):
        describe_group(admin, group, None)
    with pytest.raises(NotThere):
        delete_group(admin, group)


def test_a_caller_sees_and_changes_what_the_broker_allows(admin: Admin, alice: Admin, new_topic: NewTopic) -> None:
    topic, group = new_topic(), group_name()
    commit(admin, group, {TopicPartition(topic, 0): 4})
    commit(admin, HER_GROUP, {TopicPartition(HERS, 0): 0})
    assert [row.group_id for row in select(list_groups(alice), {}, GroupQuery()).rows] == [HER_GROUP]
    assert describe_group(alice, HER_GROUP, None).partitions[0].topic == HERS
    for attempt in (lambda: describe_group(alice, group, None), lambda: delete_group(alice, group)):
        with pytest.raises(Refused) as refused:
            attempt()
        assert refused.value.code is ErrorCode.GROUP_AUTHORIZATION_FAILED
