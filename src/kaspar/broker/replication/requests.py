"""The requests of a follower to a leader, and the contents of the responses as plain values."""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import BrokerId, TopicPartition
from kaspar.client.asynchronous import AsyncConnection
from kaspar.config import BrokerConfig
from kaspar.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from kaspar.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kaspar.replication.divergence import Diverging
from kaspar.replication.fetch_session import SessionRequest
from kaspar.replication.fetches import PartitionFetch, PartitionKey

LATEST: Final = -1
EARLIEST_LOCAL: Final = -4


class FetchedPartition(NamedTuple):
    """One partition of a Fetch response."""

    error_code: int
    high_watermark: int
    log_start_offset: int
    records: memoryview
    diverging: Diverging | None


def fetch_request(
    session: SessionRequest, *, broker_id: BrokerId, broker_epoch: int, config: BrokerConfig
) -> FetchRequest:
    topics: dict[uuid.UUID, list[FetchPartition]] = {}
    for (topic_id, index), position in session.named.items():
        topics.setdefault(topic_id, []).append(
            FetchPartition(
                partition=index,
                current_leader_epoch=position.leader_epoch,
                fetch_offset=position.fetch_offset,
                last_fetched_epoch=position.last_fetched_epoch,
                log_start_offset=position.log_start_offset,
                partition_max_bytes=config.replica_fetch_max_bytes,
            )
        )
    forgotten: dict[uuid.UUID, list[int]] = {}
    for topic_id, index in session.forgotten:
        forgotten.setdefault(topic_id, []).append(index)
    return FetchRequest(
        replica_id=broker_id,
        replica_state=ReplicaState(replica_id=broker_id, replica_epoch=broker_epoch),
        max_wait_ms=config.replica_fetch_wait_max_ms,
        min_bytes=config.replica_fetch_min_bytes,
        max_bytes=config.replica_fetch_response_max_bytes,
        session_id=session.session_id,
        session_epoch=session.epoch,
        topics=tuple(FetchTopic(topic_id=topic_id, partitions=tuple(parts)) for topic_id, parts in topics.items()),
        forgotten_topics_data=tuple(
            ForgottenTopic(topic_id=topic_id, partitions=tuple(indexes)) for topic_id, indexes in forgotten.items()
        ),
    )


def fetched_partitions(response: FetchResponse) -> Iterator[tuple[PartitionKey, FetchedPartition]]:
    for topic in response.responses:
        for partition in topic.partitions:
            epoch = partition.diverging_epoch
            yield (
                (topic.topic_id, partition.partition_index),
                FetchedPartition(
                    partition.error_code,
                    partition.high_watermark,
                    partition.log_start_offset,
                    memoryview(partition.records or b""),
                    None if epoch.epoch < 0 else Diverging(epoch.epoch, epoch.end_offset),
                ),
            )


async def look_up(
    connection: AsyncConnection, broker_id: BrokerId, fetches: Iterable[PartitionFetch]
) -> Mapping[TopicPartition, tuple[int, int]]:
    """The start and end offset of the leader's log of each partition, except where the leader refuses."""
    epochs = {fetch.topic_partition: fetch.leader_epoch for fetch in fetches}
    starts, ends = [
        await _list_offsets(connection, broker_id, epochs, timestamp) for timestamp in (EARLIEST_LOCAL, LATEST)
    ]
    return {each: (starts[each], ends[each]) for each in epochs if each in starts and each in ends}


async def _list_offsets(
    connection: AsyncConnection, broker_id: BrokerId, epochs: Mapping[TopicPartition, int], timestamp: int
) -> dict[TopicPartition, int]:
    by_topic: dict[str, list[ListOffsetsPartition]] = {}
    for (topic, index), epoch in epochs.items():
        by_topic.setdefault(topic, []).append(
            ListOffsetsPartition(partition_index=index, current_leader_epoch=epoch, timestamp=timestamp)
        )
    response = await connection.request(
        ListOffsetsRequest(
            replica_id=broker_id,
            topics=tuple(ListOffsetsTopic(name=name, partitions=tuple(parts)) for name, parts in by_topic.items()),
        )
    )
    assert isinstance(response, ListOffsetsResponse)
    return {
        TopicPartition(topic.name, partition.partition_index): partition.offset
        for topic in response.topics
        for partition in topic.partitions
        if partition.error_code == ErrorCode.NONE
    }
