"""Produce as the broker handles it, versions 3 to 13: the hand-made codec and the shapes it reads and writes.

request = read_request(version, buffer, position)
for topic, partitions in request.topics: ...        # records are buffer[start:end] of each partition
one = read_one(buffer, start, end)                  # the most frequent request, header and all; None if it is not one
write_response(out, version, [(topic, [PartitionProduceResponse(...)])])
"""

from kaspar.protocol.core import produce
from kaspar.protocol.shapes import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    OneBatch,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    Topic,
)

__all__ = [
    "BatchIndexAndErrorMessage",
    "LeaderIdAndEpoch",
    "NodeEndpoint",
    "OneBatch",
    "PartitionProduceData",
    "PartitionProduceResponse",
    "ProduceRequest",
    "read_one",
    "read_request",
    "refused",
    "write_response",
]

read_one = produce.read_one
read_request = produce.read_request
write_response = produce.write_response


def refused(
    request: ProduceRequest, error_code: int, error_message: str | None = None
) -> list[tuple[Topic, list[PartitionProduceResponse]]]:
    """The topics of a response that refuses every partition of the request."""
    return [
        (
            topic,
            [
                PartitionProduceResponse(partition.partition_index, error_code, error_message=error_message)
                for partition in partitions
            ],
        )
        for topic, partitions in request.topics
        if partitions
    ]
