"""Fetch as the broker handles it, versions 4 to 18: the handwritten codec and the shapes it reads and writes.

request = read_request(version, buffer, position)
buffers = write_response(out, version, [(topic, [PartitionData(...)])], session_id=request.session_id)
"""

from kaspar.protocol.core import fetch
from kaspar.protocol.shapes import (
    AbortedTransaction,
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    SnapshotId,
    Topic,
)

__all__ = [
    "AbortedTransaction",
    "EpochEndOffset",
    "FetchPartition",
    "FetchRequest",
    "LeaderIdAndEpoch",
    "NodeEndpoint",
    "PartitionData",
    "SnapshotId",
    "read_request",
    "refused",
    "write_response",
]

FIRST_VERSION_WITH_TOPIC_IDS = 13

read_request = fetch.read_request
write_response = fetch.write_response


def refused(request: FetchRequest, version: int, error_code: int) -> list[tuple[Topic, list[PartitionData]]]:
    """The topics of a response that refuses the whole request.

    Clients that use versions with topic ids read the error of the whole response, so Kafka sends them no partitions;
    older ones look for it in each partition.
    """
    if version >= FIRST_VERSION_WITH_TOPIC_IDS:
        return []
    return [
        (topic, [PartitionData(asked.partition, error_code, aborted_transactions=()) for asked in partitions])
        for topic, partitions in request.topics
    ]
