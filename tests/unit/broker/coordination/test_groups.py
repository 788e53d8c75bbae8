"""The group coordinator hears of what changes around it: topics, settings, and what ran in a thread for it."""

import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from kaspar.broker.coordination.internal_topics import CONSUMER_OFFSETS
from kaspar.broker.coordination.loading import ShardLoader
from kaspar.broker.server import Broker
from kaspar.controller.events import (
    AlterConfigs,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    DeleteTopics,
    FeatureUpdate,
    ResourceType,
    TopicReference,
    UpdateFeatures,
)
from kaspar.controller.features import UpgradeType
from kaspar.coordination import Decision, Now
from kaspar.groups.consumer.patterns import PatternsResolved, ResolvePatterns
from kaspar.groups.shard import GroupShard
from kaspar.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from tests.unit.broker.running import Client, create_topic, run, running, until

ONE = {"offsets_topic_num_partitions": "1"}


async def coordinator(broker: Broker) -> GroupShard:
    await broker.groups.runtime.ensure_topic()
    return broker.groups.runtime.shard_of("group")


async def commit(broker: Broker, topic: str, offset: int) -> int:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    client = Client(broker)
    client.send(
        OffsetCommitRequest(
            group_id="group", member_id="", topics=(OffsetCommitRequestTopic(name=topic, partitions=(partition,)),)
        ),
        version=8,
    )
    response = await client.response(OffsetCommitResponse)
    return response.topics[0].partitions[0].error_code


def committed(shard: GroupShard) -> dict[str, int]:
    return {topic: value.offset for topic, _, value in shard.offsets.committed("group")}


def test_a_shard_knows_topics_that_come_and_forgets_the_offsets_of_those_that_go(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **ONE) as broker:
            await create_topic(broker, "before")
            shard = await coordinator(broker)
            await create_topic(broker, "after")
            assert {*shard.context.topics.names()} >= {"before", "after"}
            assert await commit(broker, "before", 5) == await commit(broker, "after", 6) == 0
            await broker.controller.submit(DeleteTopics((TopicReference("before"),)))
            await until(lambda: committed(shard) == {"after": 6})

    run(scenario())


def test_what_changes_while_a_shard_is_loaded_it_knows_when_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **ONE) as broker:
            await coordinator(broker)
            await create_topic(broker, "going")
            await create_topic(broker, "staying")
            assert await commit(broker, "going", 5) == await commit(broker, "staying", 6) == 0
        may_go_on = threading.Event()
        real = ShardLoader.load_up_to

        def load_up_to(loader: ShardLoader, end: int) -> None:
            may_go_on.wait(10)
            real(loader, end)

        monkeypatch.setattr(ShardLoader, "load_up_to", load_up_to)
        async with running(tmp_path, **ONE) as broker:
            assert broker.groups.runtime.loading_count == 1
            await create_topic(broker, "coming")
            await broker.controller.submit(DeleteTopics((TopicReference("going"),)))
            may_go_on.set()
            await until(lambda: broker.groups.runtime.loading_count == 0)
            shard = broker.groups.runtime.shard_of("group")
            assert {*shard.context.topics.names()} == {"staying", "coming", CONSUMER_OFFSETS}
            await until(lambda: committed(shard) == {"staying": 6})

    run(scenario())


def test_settings_of_groups_and_of_the_broker_reach_the_shards(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **ONE) as broker:
            shard = await coordinator(broker)
            assert shard.context.assignment_interval_ms("group") == 1000
            of_broker = ConfigChange(
                ConfigResource(ResourceType.BROKER, ""),
                (ConfigOperation.set("group.consumer.assignment.interval.ms", "2000"),),
            )
            of_group = ConfigChange(
                ConfigResource(ResourceType.GROUP, "special"),
                (ConfigOperation.set("consumer.assignment.interval.ms", "3000"),),
            )
            await broker.controller.submit(AlterConfigs((of_broker, of_group)))
            assert shard.context.assignment_interval_ms("group") == 2000
            assert shard.context.assignment_interval_ms("special") == 3000

    run(scenario())


def test_the_consumer_protocol_is_served_where_the_cluster_has_the_feature(tmp_path: Path) -> None:
    async def scenario() -> None:
        served = []
        async with running(tmp_path, **ONE) as broker:
            served.append(broker.groups.serves_consumer_protocol)
            off = FeatureUpdate("group.version", 0, UpgradeType.SAFE_DOWNGRADE)
            await broker.controller.submit(UpdateFeatures((off,)))
            served.append(broker.groups.serves_consumer_protocol)
        assert served == [True, False]

    run(scenario())


def test_the_consumer_protocol_is_served_where_the_settings_have_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, group_coordinator_rebalance_protocols="classic") as broker:
            assert not broker.groups.serves_consumer_protocol

    run(scenario())


def test_work_for_a_group_that_meets_a_bug_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        bugs = [MemoryError(), ZeroDivisionError()]
        heard: list[PatternsResolved] = []

        def resolve(patterns: Iterable[str], names: Iterable[str]) -> dict[str, frozenset[str]]:
            if bugs:
                raise bugs.pop()
            return {}

        def resolved(shard: GroupShard, event: PatternsResolved, now: Now) -> Decision:
            heard.append(event)
            return Decision()

        monkeypatch.setattr("kaspar.broker.coordination.groups.FIRST_PAUSE_S", 0.001)
        monkeypatch.setattr("kaspar.groups.consumer.patterns.resolve", resolve)
        monkeypatch.setattr(GroupShard, "patterns_resolved", resolved)
        async with running(tmp_path, **ONE) as broker:
            shard = await coordinator(broker)
            broker.groups._perform(0, ResolvePatterns("group", frozenset(), shard.context.topics, 7))
            await until(lambda: heard == [PatternsResolved("group", {}, 7)])

    run(scenario())
