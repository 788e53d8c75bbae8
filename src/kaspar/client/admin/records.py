"""Deleting records from the beginning of partitions."""

from collections.abc import Iterator, Mapping

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.cluster import Client
from kaspar.client.offsets import by_leader, by_topic
from kaspar.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)


def delete_records(client: Client, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, Refused]:
    """Delete what is before these offsets. Returns the partitions for which that was refused."""
    refused: dict[TopicPartition, Refused] = {}
    for leader, offsets in by_leader(client, before).items():
        response = client.request_broker(leader, _request(client, offsets), DeleteRecordsResponse)
        refused |= dict(_refused(response))
    return refused


def _request(client: Client, offsets: Mapping[TopicPartition, int]) -> DeleteRecordsRequest:
    return DeleteRecordsRequest(
        topics=tuple(
            DeleteRecordsTopic(
                name=topic,
                partitions=tuple(
                    DeleteRecordsPartition(partition_index=each, offset=offsets[TopicPartition(topic, each)])
                    for each in partitions
                ),
            )
            for topic, partitions in by_topic(offsets).items()
        ),
        timeout_ms=int(client.timeout_s * 1000),
    )


def _refused(response: DeleteRecordsResponse) -> Iterator[tuple[TopicPartition, Refused]]:
    for topic in response.topics:
        for partition in topic.partitions:
            if partition.error_code != ErrorCode.NONE:
                code = ErrorCode(partition.error_code)
                where = TopicPartition(topic.name, partition.partition_index)
                yield where, Refused(code, f"deleting records of {where}: {code.name}")
