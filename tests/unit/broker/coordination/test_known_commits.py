"""Typical commits take a fast path with the same effect: the response, the record and the state are the same."""

import errno
import os
import uuid
from pathlib import Path
from typing import Any

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ZERO_UUID, ProducerIdAndEpoch
from kaspar.broker.coordination import known_commits
from kaspar.broker.server import Broker
from kaspar.controller.events import DeleteTopics, TopicReference
from kaspar.coordination import Decision, Now
from kaspar.groups.offsets.records import OffsetCommitValue
from kaspar.groups.shard import GroupShard
from kaspar.network.exchange import Exchange, Outcome
from kaspar.network.messages import MessageHandler
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kaspar.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from kaspar.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kaspar.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from kaspar.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kaspar.records import iter_records
from tests.unit.broker.running import Client, create_topic, run, running, until
from tests.unit.broker.wire import frame, receive

ONE = {"offsets_topic_num_partitions": "1"}
GROUP = "readers"
BY_NAME, BY_ID = 9, 10


def request(
    offset: int, *, topic_id: uuid.UUID = ZERO_UUID, partition: int = 0, epoch: int = -1, **others: Any
) -> OffsetCommitRequest:
    wanted = OffsetCommitRequestPartition(
        partition_index=partition,
        committed_offset=offset,
        committed_leader_epoch=epoch,
        committed_metadata=others.pop("metadata", ""),
    )
    return OffsetCommitRequest(
        group_id=GROUP,
        member_id=others.pop("member_id", ""),
        topics=(OffsetCommitRequestTopic(name="t", topic_id=topic_id, partitions=(wanted,)),),
        **others,
    )


class Bench:
    """A broker with a topic, a client, and a count of the commits that went the long way."""

    def __init__(self, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
        self.broker = broker
        self.client = Client(broker)
        self.long_ways = 0
        handle = MessageHandler.handle

        def counted(handler: MessageHandler, exchange: Exchange, frame: memoryview) -> Outcome:
            self.long_ways += exchange.header.api_key == ApiKey.OFFSET_COMMIT
            return handle(handler, exchange, frame)

        monkeypatch.setattr(MessageHandler, "handle", counted)

    async def start(self) -> "Bench":
        await create_topic(self.broker, "t", 2)
        await self.broker.groups.runtime.ensure_topic()
        return self

    @property
    def shard(self) -> GroupShard:
        return self.broker.groups.runtime.shard_of(GROUP)

    async def commit(self, wanted: OffsetCommitRequest, version: int = BY_NAME) -> int:
        counted = self.broker.metrics.requests.of("OffsetCommit").errors
        before = counted.copy()
        self.client.send(wanted, version=version)
        response = await self.client.response(OffsetCommitResponse)
        (topic,) = response.topics
        (partition,) = topic.partitions
        assert counted[partition.error_code] == before[partition.error_code] + 1
        assert partition.partition_index == wanted.topics[0].partitions[0].partition_index
        assert (topic.topic_id if version == BY_ID else topic.name) == (
            wanted.topics[0].topic_id if version == BY_ID else "t"
        )
        return partition.error_code

    async def join(self) -> JoinGroupResponse:
        """As the only member, up to its assignment."""
        protocols = (JoinGroupRequestProtocol(name="range", metadata=b""),)
        self.client.send(
            JoinGroupRequest(
                group_id=GROUP,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                member_id="",
                protocol_type="consumer",
                protocols=protocols,
            ),
            version=3,
        )
        joined = await self.client.response(JoinGroupResponse)
        assigned = (SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all"),)
        self.client.send(
            SyncGroupRequest(
                group_id=GROUP, generation_id=joined.generation_id, member_id=joined.member_id, assignments=assigned
            ),
            version=3,
        )
        assert (await self.client.response(SyncGroupResponse)).error_code == ErrorCode.NONE
        return joined

    def committed(self) -> dict[int, OffsetCommitValue]:
        return {partition: value for _, partition, value in self.shard.offsets.committed(GROUP)}

    def records(self) -> list[tuple[bytes | None, bytes | None]]:
        log = self.broker.partitions.by_name["__consumer_offsets"].partitions[0].log
        data = log.try_read(0, 1 << 20, log.log_end_offset)
        assert isinstance(data, bytes | bytearray)
        return [(record.key, record.value) for record in iter_records(data)]


def test_the_next_commit_of_the_same_names_takes_the_short_way_to_the_same_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **ONE) as broker:
            bench = await Bench(broker, monkeypatch).start()
            for offset in (5, 6, 1 << 40, 3):
                assert await bench.commit(request(offset, epoch=offset % 7)) == ErrorCode.NONE
            assert bench.long_ways == 1
            value = bench.committed()[0]
            assert (value.offset, value.leader_epoch, value.metadata) == (3, 3, "")
            assert value.topic_id == broker.image.topics["t"].topic_id
            assert bench.shard.counts.offset_commits == 4
            keys, values = zip(*bench.records(), strict=True)
            assert len(set(keys)) == 1
            decoded = [bench.shard.decode(keys[0], each) for each in values]
            offsets = [each.value.offset for each in decoded if each and isinstance(each.value, OffsetCommitValue)]
            assert offsets == [5, 6, 1 << 40, 3]
            assert {len(each) for each in values} == {len(values[0])}, "the same form, whichever way it came"
            restored = GroupShard(broker.config, 0)
            for key, each in bench.records():
                assert restored.load(key, each, None)  # type: ignore[arg-type]
            assert [*restored.offsets.committed(GROUP)] == [*bench.shard.offsets.committed(GROUP)]

    run(scenario())


def test_topics_by_id_null_metadata_and_other_partitions_are_distinguished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **ONE) as broker:
            bench = await Bench(broker, monkeypatch).start()
            topic_id = broker.image.topics["t"].topic_id
            for offset in (1, 2):
                assert await bench.commit(request(offset)) == ErrorCode.NONE
                assert await bench.commit(request(offset + 10, partition=1)) == ErrorCode.NONE
            assert bench.long_ways == 2
            assert await bench.commit(request(7, topic_id=topic_id), BY_ID) == ErrorCode.NONE
            assert await bench.commit(request(8, topic_id=topic_id), BY_ID) == ErrorCode.NONE
            assert await bench.commit(request(9, metadata=None)) == ErrorCode.NONE
            assert bench.long_ways == 3
            assert await bench.commit(request(10, metadata="note")) == ErrorCode.NONE
            assert bench.long_ways == 4
            assert {index: (each.offset, each.metadata) for index, each in bench.committed().items()} == {
                0: (10, "note"),
                1: (12, ""),
            }
            assert await bench.commit(request(11)) == ErrorCode.NONE
            assert (bench.committed()[0].offset, bench.committed()[0].metadata) == (11, "")

    run(scenario())


def test_members_commit_as_long_as_their_group_takes_them_for_members(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path, group_initial_rebalance_delay_ms="0", **ONE) as broker:
            bench = await Bench(broker, monkeypatch).start()
            assert await bench.commit(request(5)) == ErrorCode.NONE
            joined = await bench.join()
            assert await bench.commit(request(6)) == ErrorCode.UNKNOWN_MEMBER_ID, "the group has members now"
            terms: dict[str, Any] = {
                "member_id": joined.member_id,
                "generation_id_or_member_epoch": joined.generation_id,
            }
            assert await bench.commit(request(7, **terms)) == ErrorCode.NONE
            ways = bench.long_ways
            assert await bench.commit(request(8, **terms)) == ErrorCode.NONE
            assert bench.long_ways == ways
            bench.client.send(
                LeaveGroupRequest(members=(MemberIdentity(member_id=joined.member_id),), group_id=GROUP), version=5
            )
            await bench.client.response(LeaveGroupResponse)
            assert await bench.commit(request(9, **terms)) == ErrorCode.UNKNOWN_MEMBER_ID
            assert bench.committed()[0].offset == 8

    run(scenario())


def test_while_a_transaction_is_about_to_replace_offsets_the_order_in_the_log_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **ONE) as broker:
            bench = await Bench(broker, monkeypatch).start()
            assert await bench.commit(request(5)) == ErrorCode.NONE
            producer = ProducerIdAndEpoch(7, 0)
            wanted = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=20, committed_metadata="")
            transactional = TxnOffsetCommitRequest(
                transactional_id="x",
                group_id=GROUP,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                topics=(TxnOffsetCommitRequestTopic(name="t", partitions=(wanted,)),),
            )

            def pending(shard: GroupShard, now: Now) -> Decision:
                records, _ = shard.offsets.commit_in_transaction(transactional, None, now.wall_ms)
                for record in records:
                    shard.replay(record, producer)
                return Decision()

            broker.groups.runtime.run(0, pending)
            assert await bench.commit(request(6)) == ErrorCode.NONE
            assert bench.long_ways == 1
            bench.shard.replay_marker(producer, committed=True)
            assert bench.committed()[0].offset == 6, "it came behind what the transaction committed"
            assert await bench.commit(request(7)) == ErrorCode.NONE
            assert bench.long_ways == 1

    run(scenario())


def test_a_topic_of_the_same_name_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **ONE) as broker:
            bench = await Bench(broker, monkeypatch).start()
            assert await bench.commit(request(5)) == await bench.commit(request(6)) == ErrorCode.NONE
            await broker.controller.submit(DeleteTopics((TopicReference("t"),)))
            await until(lambda: "t" not in broker.image.topics)
            assert await bench.commit(request(7)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            await create_topic(broker, "t")
            assert await bench.commit(request(8)) == await bench.commit(request(9)) == ErrorCode.NONE
            assert bench.committed()[0].topic_id == broker.image.topics["t"].topic_id
            assert bench.long_ways == 3

    run(scenario())


def test_a_log_that_refuses_a_record_is_reported_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path, tmp_path / "other", **ONE) as broker:
            bench = await Bench(broker, monkeypatch).start()
            assert await bench.commit(request(5)) == ErrorCode.NONE

            def broken(*arguments: object) -> int:
                raise OSError(errno.EIO, os.strerror(errno.EIO))

            log = broker.partitions.by_name["__consumer_offsets"].partitions[0].log
            monkeypatch.setattr(log.local, "pwrite", broken)
            shard = bench.shard
            assert await bench.commit(request(6)) == ErrorCode.NOT_COORDINATOR
            assert [value.offset for _, _, value in shard.offsets.committed(GROUP)] == [5]

    run(scenario())


def test_tagged_fields_that_nobody_knows_are_no_part_of_the_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **ONE) as broker:
            bench = await Bench(broker, monkeypatch).start()
            for offset in (5, 6):
                sent = bench.client.core.send(request(offset), BY_NAME)
                unknown = bytes((1, 99, 4, 1, 0, 0, 0))  # one field, which ends as a request without metadata does
                receive(bench.client.connection, frame(bytes(sent[4:-1]) + unknown))
                response = await bench.client.response(OffsetCommitResponse)
                assert response.topics[0].partitions[0].error_code == ErrorCode.NONE
                assert bench.committed()[0].offset == offset
            assert bench.long_ways == 2

    run(scenario())


def test_so_many_are_remembered_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        monkeypatch.setattr(known_commits, "MAX_KNOWN", 1)
        async with running(tmp_path, **ONE) as broker:
            bench = await Bench(broker, monkeypatch).start()
            for offset in (1, 2, 3):
                assert await bench.commit(request(offset)) == ErrorCode.NONE
                assert await bench.commit(request(offset, partition=1)) == ErrorCode.NONE
            assert bench.long_ways == 6
            assert await bench.commit(request(9, partition=1)) == ErrorCode.NONE
            assert bench.long_ways == 6

    run(scenario())
