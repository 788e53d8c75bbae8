"""Scenarios of groups and their offsets."""

import contextlib
import uuid
from collections.abc import Iterator

from kaspar.base.errors import ErrorCode
from tests.integration.metrics.stage import Stage
from tests.peers.raw_client import RawClient
from tests.peers.raw_consumer_groups import RawConsumer
from tests.peers.raw_groups import NO_TOPICS, RawGroups, RawMember
from tests.peers.raw_offsets import RawOffsets
from tests.peers.raw_transactions import GROUP, find_coordinator, until_settled

COMMIT_WITH_RETENTION = 4


def new_group() -> str:
    return f"group-{uuid.uuid4().hex[:8]}"


@contextlib.contextmanager
def a_coordinator_of_groups(stage: Stage) -> Iterator[None]:
    with stage.client() as client:
        find_coordinator(client, new_group(), GROUP)
        yield


def _member(stage: Stage, group_id: str) -> RawMember:
    """A static one, which joins with its first request: a group without members does not live long here."""
    return RawMember(stage.broker.port, group_id, instance_id=str(uuid.uuid4()))


def _remove(client: RawClient, group_id: str) -> None:
    """At once, rather than when the coordinator next looks for empty groups."""
    assert RawGroups(client).delete(group_id)[group_id] in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND)


@contextlib.contextmanager
def a_stable_group(stage: Stage) -> Iterator[None]:
    with stage.client() as client, _member(stage, new_group()) as member:
        find_coordinator(client, member.group_id, GROUP)
        member.join()
        assert member.sync({member.member_id: NO_TOPICS}).error_code == 0
        yield
        assert member.leave() == ErrorCode.NONE
        _remove(client, member.group_id)


@contextlib.contextmanager
def a_group_that_has_joined(stage: Stage) -> Iterator[None]:
    with stage.client() as client, _member(stage, new_group()) as member:
        find_coordinator(client, member.group_id, GROUP)
        member.join()
        yield
        assert member.leave() == ErrorCode.NONE
        _remove(client, member.group_id)


@contextlib.contextmanager
def a_group_that_rebalances(stage: Stage) -> Iterator[None]:
    """One member is there, a second wants to join and has to wait for the first to come again."""
    with stage.client() as client, _member(stage, new_group()) as first:
        find_coordinator(client, first.group_id, GROUP)
        first.join()
        assert first.sync({first.member_id: NO_TOPICS}).error_code == 0
        with _member(stage, first.group_id) as second:
            second.ask_to_join()
            yield
            assert first.leave() == ErrorCode.NONE
            second.joined()
            assert second.leave() == ErrorCode.NONE
            _remove(client, first.group_id)


@contextlib.contextmanager
def an_empty_group_with_offsets(stage: Stage) -> Iterator[None]:
    with stage.topic() as (client, topic):
        offsets = RawOffsets(client, new_group())
        assert offsets.commit(topic, {0: 5}) == {0: ErrorCode.NONE}
        yield
        _remove(client, offsets.group)


@contextlib.contextmanager
def a_deleted_group(stage: Stage) -> Iterator[None]:
    with stage.topic() as (client, topic):
        offsets = RawOffsets(client, new_group())
        assert offsets.commit(topic, {0: 5}) == {0: ErrorCode.NONE}
        assert RawGroups(client).delete(offsets.group) == {offsets.group: ErrorCode.NONE}
        yield


@contextlib.contextmanager
def an_offset_that_expires(stage: Stage) -> Iterator[None]:
    with stage.topic() as (client, topic):
        offsets = RawOffsets(client, new_group())
        assert offsets.commit(topic, {0: 5}, COMMIT_WITH_RETENTION, retention_ms=1) == {0: ErrorCode.NONE}
        yield


@contextlib.contextmanager
def a_group_of_the_new_protocol(stage: Stage) -> Iterator[None]:
    with stage.topic() as (client, topic):
        member = RawConsumer(client, new_group(), topics=(topic,))
        find_coordinator(client, member.group_id, GROUP)
        until_settled(member.join)
        yield
        member.leave()
