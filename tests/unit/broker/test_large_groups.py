"""A group is deleted with all its offsets in one batch. If they are too many for one, nothing of it is lost."""

from pathlib import Path

from kaspar.base.errors import ErrorCode
from kaspar.coordination import StoredRecord
from kaspar.groups.records import OffsetCommitKey, OffsetCommitValue
from kaspar.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kaspar.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from tests.unit.broker.running import Client, create_topic, run, running

COUNT = 100


def test_a_group_with_more_offsets_than_a_batch_has_room_for_keeps_them_all_until_some_are_deleted(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        settings = {"offsets_topic_num_partitions": "1", "message_max_bytes": "2000"}
        async with running(tmp_path, **settings) as broker:
            await create_topic(broker, "topic", COUNT)
            await broker.groups.runtime.ensure_topic()
            shard = broker.groups.runtime.shard_of("group")
            for index in range(COUNT):
                key = OffsetCommitKey(group="group", topic="topic", partition=index)
                value = OffsetCommitValue(offset=index, metadata="", commit_timestamp=1)
                shard.replay(StoredRecord(key, value), None)
            client = Client(broker)

            async def delete() -> int:
                client.send(DeleteGroupsRequest(groups_names=("group",)), version=2)
                (result,) = (await client.response(DeleteGroupsResponse)).results
                return result.error_code

            assert await delete() == ErrorCode.UNKNOWN_SERVER_ERROR
            assert "group" in shard.groups
            assert [value.offset for _, _, value in shard.offsets.committed("group")] == list(range(COUNT))

            some = tuple(OffsetDeleteRequestPartition(partition_index=index) for index in range(COUNT // 2))
            topic = OffsetDeleteRequestTopic(name="topic", partitions=some)
            client.send(OffsetDeleteRequest(group_id="group", topics=(topic,)), version=0)
            assert (await client.response(OffsetDeleteResponse)).error_code == ErrorCode.NONE
            assert await delete() == ErrorCode.NONE
            assert "group" not in shard.groups
            assert shard.offsets.count == 0

    run(scenario())
