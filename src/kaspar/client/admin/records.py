"""Deletes the first records of partitions (KIP-107)."""

from collections.abc import Mapping

from kaspar.base.errors import Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.leaders import ask_leaders
from kaspar.client.admin.session import Admin, refusal
from kaspar.client.offsets import by_topic
from kaspar.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)


def delete_records(admin: Admin, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | Refused]:
    """Delete the records before these offsets; -1 stands for the high watermark. Returns for each partition its new low
    watermark, which is the smallest log start offset of all replicas, or why its records were not deleted."""

    def ask(leader: int, together: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | Refused]:
        topics = tuple(
            DeleteRecordsTopic(
                name=topic,
                partitions=tuple(
                    DeleteRecordsPartition(partition_index=number, offset=together[TopicPartition(topic, number)])
                    for number in numbers
                ),
            )
            for topic, numbers in by_topic(together).items()
        )
        request = DeleteRecordsRequest(topics=topics, timeout_ms=admin.timeout_ms)
        response = admin.client.request_broker(leader, request, DeleteRecordsResponse)
        return {
            TopicPartition(topic.name, each.partition_index): refusal(each.error_code) or each.low_watermark
            for topic in response.topics
            for each in topic.partitions
        }

    return ask_leaders(admin, "deleteRecords(api=METADATA)", before, ask)
