"""Recognized heartbeats lead to the same responses, records and state as decoded ones; and members that wait."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.broker.coordination import known_heartbeats
from kaspar.broker.server import Broker
from kaspar.controller.events import (
    AlterConfigs,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    FeatureUpdate,
    ResourceType,
    UpdateFeatures,
)
from kaspar.controller.features import UpgradeType
from kaspar.coordination import Decision, Now
from kaspar.groups.group import GroupClient
from kaspar.groups.shard import GroupShard
from kaspar.network.exchange import Exchange, Outcome
from kaspar.network.messages import MessageHandler
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
    handle = MessageHandler.handle

    def counted(handler: MessageHandler, exchange: Exchange, frame: memoryview) -> Outcome:
        counts[ApiKey(exchange.header.api_key)] += 1
        return handle(handler, exchange, frame)

    monkeypatch.setattr(MessageHandler, "handle", counted)
    return counts


class Member(Client):
    """It keeps every byte it received."""

    def __init__(self, broker: Broker, group_id: str = SHORT, versions: Versions = NEWEST) -> None:
        super().__init__(broker)
        self.group_id = group_id
        self.versions = versions
        self.received = b""
        self.member_id = ""
        self.generation_id = -1
        self.leads = False

    def look(self) -> list[Message]:
        self.received += bytes(self.transport.sent)
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
        response = await self.response(JoinGroupResponse)
        self.member_id, self.generation_id = response.member_id, response.generation_id
        self.leads = response.leader == self.member_id
        return response

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
        return await self.response(SyncGroupResponse)

    async def heartbeat(self) -> int:
        request = HeartbeatRequest(group_id=self.group_id, generation_id=self.generation_id, member_id=self.member_id)
        self.ask(request, self.versions.heartbeat)
        return (await self.response(HeartbeatResponse)).error_code

    # -- the consumer protocol -----------------------------------------------------------------------------------------

    async def enter(self, member_id: str) -> None:
        self.member_id, self.generation_id = member_id, 0
        await self.beat(rebalance_timeout_ms=20_000, subscribed_topic_names=("t",), topic_partitions=())

    async def beat(self, **said: Any) -> ConsumerGroupHeartbeatResponse:
        """A member acknowledges an assignment at once."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=self.generation_id,
            **{"topic_partitions": None, **said},
        )
        self.ask(request, 1)
        response = await self.response(ConsumerGroupHeartbeatResponse)
        if response.error_code == ErrorCode.NONE:
            self.generation_id = response.member_epoch
        if response.assignment is not None:
            has = response.assignment.topic_partitions
            await self.beat(
                topic_partitions=tuple(
                    RequestTopicPartitions(topic_id=each.topic_id, partitions=each.partitions) for each in has
                )
            )
        return response


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
        return [member.received for member in members], stored(broker, group_id), replace(described, group_id="")

    async def scenario() -> None:
        async with running(tmp_path, **SETTINGS) as broker:
            await create_topic(broker, "t", 6)
            await broker.groups.runtime.ensure_topic()
            long = await outcome(broker, LONG)
            in_all = long_ways[ApiKey.CONSUMER_GROUP_HEARTBEAT]
            short = await outcome(broker, SHORT)
            # It joins and takes a partition that one gives up; it leaves, and one takes that. Two move on twice.
            assert in_all - long_ways[ApiKey.CONSUMER_GROUP_HEARTBEAT] >= 3 + 4
            assert long_ways[ApiKey.CONSUMER_GROUP_HEARTBEAT] <= 10
            assert short == long

    run(scenario())


def test_a_second_join_is_refused_as_on_the_normal_path(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **SETTINGS) as broker:
            await broker.groups.runtime.ensure_topic()
            leader, second, third = members = [Member(broker) for _ in range(3)]
            await form(members)
            await rebalance(members)
            leader.join()
            second.join()
            second.join()
            assert (await second.response(JoinGroupResponse)).error_code == ErrorCode.REBALANCE_IN_PROGRESS
            third.join()
            for member in members:
                assert (await member.joined()).error_code == ErrorCode.NONE

    run(scenario())


@pytest.mark.parametrize("versions", [NEWEST, OLDER])
@pytest.mark.parametrize("waits_for", [JoinGroupResponse, SyncGroupResponse])
def test_waiting_requests_complete_when_the_coordinator_moves(
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
            response: Any = await second.response(waits_for)
            assert response.error_code == ErrorCode.NOT_COORDINATOR
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


def test_a_recognized_heartbeat_keeps_all_that_it_says(
    tmp_path: Path, long_ways: Counter[ApiKey], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A static member repeats its instance id, its rack and its timeout; the response has the interval of now."""
    asked: list[ConsumerGroupHeartbeatRequest] = []
    decide = GroupShard.consumer_heartbeat

    def noted(shard: GroupShard, request: ConsumerGroupHeartbeatRequest, client: GroupClient, now: Now) -> Decision:
        asked.append(request)
        return decide(shard, request, client, now)

    monkeypatch.setattr(GroupShard, "consumer_heartbeat", noted)

    async def scenario() -> None:
        async with running(tmp_path, **SETTINGS) as broker:
            await create_topic(broker, "t", 2)
            await broker.groups.runtime.ensure_topic()
            member, other = Member(broker), Member(broker)
            who: dict[str, Any] = {"instance_id": "i", "rack_id": "r", "rebalance_timeout_ms": 7_000}
            member.member_id, member.generation_id = "static", 0
            await member.beat(**{**who, "subscribed_topic_names": ("t",), "topic_partitions": ()})
            await member.beat(**who)
            for life in range(2):
                other.member_id, other.generation_id = f"other-{life}", 0
                await other.beat(rebalance_timeout_ms=1, subscribed_topic_names=("missing",), topic_partitions=())
                long_ways.clear()
                epoch = member.generation_id
                response = await member.beat(**who)
                assert not long_ways
                assert asked[-1] == ConsumerGroupHeartbeatRequest(
                    group_id=SHORT, member_id="static", member_epoch=epoch, topic_partitions=None, **who
                )
                assert response.error_code == ErrorCode.NONE
                assert response.member_id == "static"
                assert response.member_epoch == other.generation_id
                assert response.heartbeat_interval_ms == 5_000
            operation = ConfigOperation.set("consumer.heartbeat.interval.ms", "6000")
            change = ConfigChange(ConfigResource(ResourceType.GROUP, SHORT), (operation,))
            await broker.controller.submit(AlterConfigs((change,)))
            long_ways.clear()
            assert (await member.beat(**who)).heartbeat_interval_ms == 6_000
            assert not long_ways

    run(scenario())


def test_a_member_that_joins_again_or_leaves_is_not_recognized(tmp_path: Path, long_ways: Counter[ApiKey]) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **SETTINGS) as broker:
            await create_topic(broker, "t")
            await broker.groups.runtime.ensure_topic()
            member = Member(broker)
            await member.enter("only")
            epoch = member.generation_id
            await member.beat()
            long_ways.clear()
            member.generation_id = 0
            assert (await member.beat()).error_code == ErrorCode.INVALID_REQUEST
            member.generation_id = epoch
            await member.beat()
            assert long_ways == {ApiKey.CONSUMER_GROUP_HEARTBEAT: 1}
            member.generation_id = -1
            assert (await member.beat()).member_epoch == -1
            assert long_ways == {ApiKey.CONSUMER_GROUP_HEARTBEAT: 2}
            assert broker.groups.runtime.shard_of(SHORT).groups[SHORT].is_empty

    run(scenario())


def test_a_heartbeat_that_names_an_assignor_is_not_remembered(tmp_path: Path) -> None:
    """Which assignors there are may change, and is checked with each request."""

    async def scenario() -> None:
        async with running(tmp_path, **SETTINGS) as broker:
            await create_topic(broker, "t")
            await broker.groups.runtime.ensure_topic()
            member = Member(broker)
            await member.enter("only")
            await member.beat(server_assignor="range")
            assert ApiKey.CONSUMER_GROUP_HEARTBEAT not in member.connection.known

    run(scenario())


def test_what_is_large_or_has_tagged_fields_is_not_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **SETTINGS) as broker:
            await create_topic(broker, "t")
            await broker.groups.runtime.ensure_topic()
            member = Member(broker)
            await member.enter("only")
            request = ConsumerGroupHeartbeatRequest(
                group_id=SHORT, member_id="only", member_epoch=member.generation_id, topic_partitions=None
            )
            sent = member.core.send(request, 1)
            unknown = bytes((1, 99, 1, 0))
            receive(member.connection, frame(bytes(sent[4:-1]) + unknown))
            assert (await member.response(ConsumerGroupHeartbeatResponse)).error_code == ErrorCode.NONE
            assert ApiKey.CONSUMER_GROUP_HEARTBEAT not in member.connection.known
            monkeypatch.setattr(known_heartbeats, "MAX_BYTES", 10)
            await member.beat()
            assert ApiKey.CONSUMER_GROUP_HEARTBEAT not in member.connection.known
            monkeypatch.undo()
            await member.beat()
            assert ApiKey.CONSUMER_GROUP_HEARTBEAT in member.connection.known

    run(scenario())
