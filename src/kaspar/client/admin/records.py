"""Deletes the first records of partitions (KIP-107)."""

from collections.abc import Mapping

from kaspar.base.errors import Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.session import Admin, refusal
from kaspar.client.offsets import by_leader, by_topic
from kaspar.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)


def delete_records(admin: Admin, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, Refused | None]:
    """Delete the records before these offsets. Each leader is asked for its partitions."""
    results: dict[TopicPartition, Refused | None] = {}
    for leader, offsets in by_leader(admin.client, before).items():
        topics = tuple(
            DeleteRecordsTopic(
                name=topic,
                partitions=tuple(
                    DeleteRecordsPartition(partition_index=number, offset=offsets[TopicPartition(topic, number)])
                    for number in numbers
                ),
            )
            for topic, numbers in by_topic(offsets).items()
        )
        response = admin.ask_broker(
            "deleteRecords",
            leader,
            DeleteRecordsRequest(topics=topics, timeout_ms=admin.timeout_ms),
            DeleteRecordsResponse,
            code_of=lambda response: 0,
        )
        for topic in response.topics:
            for each in topic.partitions:
                results[TopicPartition(topic.name, each.partition_index)] = refusal(each.error_code, None)
    return results
