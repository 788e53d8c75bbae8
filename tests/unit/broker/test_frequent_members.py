"""Members that ask for the same again take a short way, and nobody can tell: answers, records and state are equal."""

import itertools
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.broker import frequent_members
from kaspar.broker.handlers import group_client
from kaspar.broker.requests import Requests
from kaspar.broker.server import Broker
from kaspar.metadata.events import FeatureUpdate, UpdateFeatures
from kaspar.metadata.features import UpgradeType
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    RequestTopicPartitions,
)
from kaspar.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kaspar.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kaspar.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from kaspar.protocol.schema import Message
from kaspar.records import iter_records
from tests.unit.broker.running import Client, create_topic, run, running
from tests.unit.broker.wire import frame, receive

SETTINGS = {
    "offsets_topic_num_partitions": "1",
    "group_initial_rebalance_delay_ms": "0",
    "group_consumer_assignment_interval_ms": "0",
    "group_consumer_min_assignment_interval_ms": "0",
}
LONG, SHORT = "long ", "short"
"""Two groups of one broker: the members of the first are strangers whenever they ask."""


NAMES = ("JoinGroup", "SyncGroup", "Heartbeat")


class Versions(NamedTuple):
    join: int
    sync: int
    heartbeat: int


NEWEST = Versions(9, 5, 4)
OLDER = Versions(5, 3, 3)  # with neither compact texts nor a protocol that is null


@pytest.fixture
def long_ways(monkeypatch: pytest.MonkeyPatch) -> Counter[ApiKey]:
    """The requests that went the way of all requests."""
    counts: Counter[ApiKey] = Counter()
    handle = Requests._handle_message

    def counted(requests: Requests, connection: Any, frame: memoryview, header: Any, *rest: Any) -> Any:
        counts[ApiKey(header.api_key)] += 1
        return handle(requests, connection, frame, header, *rest)

    monkeypatch.setattr(Requests, "_handle_message", counted)
    return counts


class Member(Client):
    """It keeps all that it was told."""

    def __init__(self, broker: Broker, group_id: str = SHORT, versions: Versions = NEWEST) -> None:
        super().__init__(broker)
        self.group_id = group_id
        self.versions = versions
        self.told = b""
        self.member_id = ""
        self.generation_id = -1
        self.leads = False

    def look(self) -> list[Message]:
        self.told += bytes(self.transport.sent)
        return super().look()

    def ask(self, request: Message, version: int) -> None:
        if self.group_id == LONG:
            self.connection.known.clear()
        self.send(request, version=version)

    # -- the classic protocol ------------------------------------------------------------------------------------------

    def join(self, metadata: bytes = b"says", **how: Any) -> None:
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=how.get("session_timeout_ms", 10_000),
            rebalance_timeout_ms=20_000,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=metadata),),
        )
        self.ask(request, self.versions.join)

    async def joined(self) -> JoinGroupResponse:
        answer = await self.answer(JoinGroupResponse)
        self.member_id, self.generation_id = answer.member_id, answer.generation_id
        self.leads = answer.leader == self.member_id
        return answer

    def sync(self, assignments: Sequence["Member"] = ()) -> None:
        older = self.versions.sync < NEWEST.sync
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            protocol_type=None if older else "consumer",
            protocol_name=None if older else "range",
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=each.member_id, assignment=each.member_id.encode())
                for each in assignments
            ),
        )
        self.ask(request, self.versions.sync)

    async def synced(self) -> SyncGroupResponse:
        return await self.answer(SyncGroupResponse)

    async def heartbeat(self) -> int:
        request = HeartbeatRequest(group_id=self.group_id, generation_id=self.generation_id, member_id=self.member_id)
        self.ask(request, self.versions.heartbeat)
        return (await self.answer(HeartbeatResponse)).error_code

    # -- the consumer protocol -----------------------------------------------------------------------------------------

    async def enter(self, member_id: str) -> None:
        self.member_id, self.generation_id = member_id, 0
        await self.beat(rebalance_timeout_ms=20_000, subscribed_topic_names=("t",), topic_partitions=())

    async def beat(self, **said: Any) -> ConsumerGroupHeartbeatResponse:
        """Whoever is told of an assignment says at once that it has it."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=self.generation_id,
            **{"topic_partitions": None, **said},
        )
        self.ask(request, 1)
        answer = await self.answer(ConsumerGroupHeartbeatResponse)
        if answer.error_code == ErrorCode.NONE:
            self.generation_id = answer.member_epoch
        if answer.assignment is not None:
            has = answer.assignment.topic_partitions
            await self.beat(
                topic_partitions=tuple(
                    RequestTopicPartitions(topic_id=each.topic_id, partitions=each.partitions) for each in has
                )
            )
        return answer


async def rebalance(members: list[Member]) -> None:
    """All join, in this order. Half of them ask for their assignment before the leader has brought it."""
    for member in members:
        member.join()
    for member in members:
        assert (await member.joined()).error_code == ErrorCode.NONE
    await assign(members)


async def assign(members: list[Member]) -> None:
    (leader,) = [member for member in members if member.leads]
    followers = [member for member in members if not member.leads]
    early = followers[: len(followers) // 2]
    for member in early:
        member.sync()
    leader.sync(members)
    for member in followers[len(early) :]:
        member.sync()
    for member in members:
        assert (await member.synced()).assignment == member.member_id.encode()


async def form(members: list[Member]) -> None:
    """One after the other comes; in the end the first of them leads."""
    for count, member in enumerate(members, 1):
        member.join()
        assert (await member.joined()).error_code == ErrorCode.MEMBER_ID_REQUIRED
        await rebalance([member, *members[: count - 1]])
    assert members[0].leads


def stored(broker: Broker, group_id: str) -> list[tuple[type[Message], dict[str, Any], dict[str, Any] | None]]:
    """What the log has of a group, but for its name and the time."""
    log = broker.partitions.by_name["__consumer_offsets"].partitions[0].log
    data = log.try_read(0, 1 << 20, log.log_end_offset)
    assert isinstance(data, bytes | bytearray)
    found = []
    for read in iter_records(data):
        assert read.key is not None
        record = broker.groups.runtime.shard_of(group_id).decode(read.key, read.value)
        assert record is not None
        key, value = _fields(record.key), None if record.value is None else _fields(record.value)
        if group_id in (key.pop("group", None), key.pop("group_id", None)):
            for time in ("current_state_timestamp", "assignment_timestamp"):
                if value is not None:
                    value.pop(time, None)
            found.append((type(record.key), key, value))
    return found


def _fields(message: Message) -> dict[str, Any]:
    return {field.name: getattr(message, field.name) for field in message.SCHEMA.fields}


@pytest.mark.parametrize("versions", [NEWEST, OLDER])
def test_a_classic_group_rebalances_on_the_short_way_as_on_the_long_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long_ways: Counter[ApiKey], versions: Versions
) -> None:
    async def outcome(broker: Broker, group_id: str) -> tuple[list[bytes], object, object]:
        ids = map(uuid.UUID, (f"{number:032x}" for number in itertools.count(1)))
        monkeypatch.setattr(group_client, "uuid", SimpleNamespace(uuid4=lambda: next(ids)))
        members = [Member(broker, group_id, versions) for _ in range(5)]
        await form(members)
        for member in members:
            assert await member.heartbeat() == ErrorCode.NONE
        await rebalance(members)
        long_ways.clear()
        for _ in range(2):
            members[0].join()
            for member in members[1:]:
                assert await member.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
                member.join()
            for member in members:
                await member.joined()
            await assign(members)
            for member in members:
                assert await member.heartbeat() == ErrorCode.NONE
        described = broker.groups.runtime.shard_of(group_id).describe(group_id, 6, broker.now())
        return [member.told for member in members], stored(broker, group_id), replace(described, group_id="")

    async def scenario() -> None:
        async with running(tmp_path, **SETTINGS) as broker:
            await broker.groups.runtime.ensure_topic()
            long = await outcome(broker, LONG)
            assert long_ways == {ApiKey.JOIN_GROUP: 10, ApiKey.SYNC_GROUP: 10, ApiKey.HEARTBEAT: 18}
            counted = [_counted(broker, name) for name in NAMES]
            short = await outcome(broker, SHORT)
            # Of each rebalance: the leader, and the last to have its assignment.
            assert long_ways == {ApiKey.SYNC_GROUP: 4}
            assert short == long
            for name, before in zip(NAMES, counted, strict=True):
                twice = {counter: 2 * count for counter, count in before.items()}
                assert _counted(broker, name) == twice, "counted whichever way they took"

    run(scenario())


def _counted(broker: Broker, name: str) -> dict[str, int]:
    """Requests by version, and error codes."""
    metrics = broker.metrics.requests.of(name)
    by_version = {f"version {version}": count for version, count in metrics.versions().items()}
    return by_version | {code.name: count for code, count in metrics.error_counts().items()}


def test_a_consumer_group_rebalances_on_the_short_way_as_on_the_long_one(
    tmp_path: Path, long_ways: Counter[ApiKey]
) -> None:
    async def outcome(broker: Broker, group_id: str) -> tuple[list[bytes], object, object]:
        first, second, third, last = members = [Member(broker, group_id) for _ in range(4)]
        for number, member in enumerate((first, second, third)):
            await member.enter(f"member-{number}")
        for _ in range(3):
            for member in (first, second, third):
                await member.beat()
        long_ways.clear()
        for member in (first, second, third):
            assert (await member.beat()).assignment is None
        await last.enter("member-3")
        for _ in range(3):
            for member in members:
                await member.beat()
        last.generation_id = -1
        await last.beat()
        for _ in range(3):
            for member in (first, second, third):
                await member.beat()
        described = broker.groups.runtime.shard_of(group_id).consumer_describe(group_id, broker.now())
        return [member.told for member in members], stored(broker, group_id), replace(described, group_id="")

    async def scenario() -> None:
        async with running(tmp_path, **SETTINGS) as broker:
            await create_topic(broker, "t", 6)
            await broker.groups.runtime.ensure_topic()
            long = await outcome(broker, LONG)
            in_all = long_ways[ApiKey.CONSUMER_GROUP_HEARTBEAT]
            short = await outcome(broker, SHORT)
            # It comes and takes a partition of one, who gives it up; it leaves, and one takes that. Two move on twice.
            assert in_all - long_ways[ApiKey.CONSUMER_GROUP_HEARTBEAT] >= 3 + 4
            assert long_ways[ApiKey.CONSUMER_GROUP_HEARTBEAT] <= 10
            assert short == long

    run(scenario())


def test_what_is_not_as_it_was_takes_the_long_way(tmp_path: Path, long_ways: Counter[ApiKey]) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **SETTINGS) as broker:
            await broker.groups.runtime.ensure_topic()
            leader, second, third, fourth = members = [Member(broker) for _ in range(4)]
            await form(members)
            await rebalance(members)
            assert await second.heartbeat() == ErrorCode.NONE
            long_ways.clear()
            second.generation_id += 7
            assert await second.heartbeat() == ErrorCode.ILLEGAL_GENERATION
            second.sync()
            assert (await second.synced()).error_code == ErrorCode.ILLEGAL_GENERATION
            assert long_ways == {ApiKey.HEARTBEAT: 1, ApiKey.SYNC_GROUP: 1}
            long_ways.clear()
            second.join()
            assert (await second.joined()).generation_id == leader.generation_id, "of a stable group all know all"
            leader.join()
            second.join(b"something else")
            third.join(session_timeout_ms=11_000)
            assert long_ways == {ApiKey.JOIN_GROUP: 2}
            fourth.join()
            answer = await leader.joined()
            assert {each.member_id: each.metadata for each in answer.members} == {
                leader.member_id: b"says",
                second.member_id: b"something else",
                third.member_id: b"says",
                fourth.member_id: b"says",
            }

    run(scenario())


def test_who_joins_twice_is_told_so_as_on_the_long_way(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **SETTINGS) as broker:
            await broker.groups.runtime.ensure_topic()
            leader, second, third = members = [Member(broker) for _ in range(3)]
            await form(members)
            await rebalance(members)
            leader.join()
            second.join()
            second.join()
            assert (await second.answer(JoinGroupResponse)).error_code == ErrorCode.REBALANCE_IN_PROGRESS
            third.join()
            for member in members:
                assert (await member.joined()).error_code == ErrorCode.NONE

    run(scenario())


@pytest.mark.parametrize("versions", [NEWEST, OLDER])
@pytest.mark.parametrize("waits_for", [JoinGroupResponse, SyncGroupResponse])
def test_who_waits_is_answered_when_the_coordinator_goes(
    tmp_path: Path, versions: Versions, waits_for: type[Message]
) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **SETTINGS) as broker:
            await broker.groups.runtime.ensure_topic()
            leader, second, third = members = [Member(broker, SHORT, versions) for _ in range(3)]
            await form(members)
            await rebalance(members)
            leader.join()
            second.join()
            if waits_for is SyncGroupResponse:
                third.join()
                for member in members:
                    await member.joined()
                second.sync()
            assert not second.look()
            await broker.groups.runtime.stop()
            answer: Any = await second.answer(waits_for)
            assert answer.error_code == ErrorCode.NOT_COORDINATOR
            assert await third.heartbeat() == ErrorCode.NOT_COORDINATOR

    run(scenario())


def test_a_member_whose_connection_is_lost_while_it_waits_holds_up_nobody(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **SETTINGS) as broker:
            await broker.groups.runtime.ensure_topic()
            leader, gone, third = members = [Member(broker) for _ in range(3)]
            await form(members)
            await rebalance(members)
            leader.join()
            gone.join()
            gone.connection.connection_lost(None)
            third.join()
            for member in (leader, third):
                assert (await member.joined()).error_code == ErrorCode.NONE

    run(scenario())


def test_a_cluster_that_no_longer_has_the_consumer_protocol_says_so_to_its_members(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **SETTINGS) as broker:
            await create_topic(broker, "t")
            await broker.groups.runtime.ensure_topic()
            member = Member(broker)
            await member.enter("only")
            for _ in range(3):
                assert (await member.beat()).error_code == ErrorCode.NONE
            off = FeatureUpdate("group.version", 0, UpgradeType.SAFE_DOWNGRADE)
            await broker.controller.submit(UpdateFeatures((off,)))
            assert (await member.beat()).error_code == ErrorCode.UNSUPPORTED_VERSION

    run(scenario())


def test_what_is_large_or_has_tagged_fields_is_not_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **SETTINGS) as broker:
            await broker.groups.runtime.ensure_topic()
            member = Member(broker)
            await form([member])
            assert ApiKey.HEARTBEAT not in member.connection.known
            request = HeartbeatRequest(group_id=SHORT, generation_id=member.generation_id, member_id=member.member_id)
            sent = member.core.send(request, NEWEST.heartbeat)
            unknown = bytes((1, 99, 1, 0))
            receive(member.connection, frame(bytes(sent[4:-1]) + unknown))
            assert (await member.answer(HeartbeatResponse)).error_code == ErrorCode.NONE
            assert ApiKey.HEARTBEAT not in member.connection.known
            monkeypatch.setattr(frequent_members, "LARGEST", 10)
            assert await member.heartbeat() == ErrorCode.NONE
            assert ApiKey.HEARTBEAT not in member.connection.known
            monkeypatch.undo()
            assert await member.heartbeat() == ErrorCode.NONE
            assert ApiKey.HEARTBEAT in member.connection.known

    run(scenario())
