"""Produce, versions 3 to 13: the handwritten codec of the broker's side and the shapes it reads and writes; and the
request as a client sends it, without copying its records.

request = read_request(version, buffer, position)
for topic, partitions in request.topics: ...        # records are buffer[start:end] of each partition
one = read_one(buffer, start, end)                  # the most frequent request, header and all; None if it is not one
write_response(out, version, [(topic, [PartitionProduceResponse(...)])])
buffers = request_body(version, transactional_id, acks, timeout_ms, [(topic, [(partition, records)])])
"""

import struct
from collections.abc import Sequence

from kaspar.protocol.core import produce, wire
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
    "request_body",
    "write_response",
]

_FIRST_FLEXIBLE = 9
_FIRST_WITH_TOPIC_ID = 13
_ACKS_AND_TIMEOUT = struct.Struct(">hi")
_INDEX = struct.Struct(">i")

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


def request_body(
    version: int,
    transactional_id: str | None,
    acks: int,
    timeout_ms: int,
    topics: Sequence[tuple[Topic, Sequence[tuple[int, memoryview]]]],
) -> list[bytearray | memoryview]:
    """The body of a request in pieces, to be sent one after the other: every batch is a piece of its own, not copied. A
    topic is identified by its id from version 13 on, and by its name before."""
    flexible = version >= _FIRST_FLEXIBLE
    out = bytearray()
    pieces: list[bytearray | memoryview] = []
    wire.write_string(out, transactional_id, flexible)
    out += _ACKS_AND_TIMEOUT.pack(acks, timeout_ms)
    wire.write_array_length(out, len(topics), flexible)
    for topic, partitions in topics:
        if version >= _FIRST_WITH_TOPIC_ID:
            assert not isinstance(topic, str), "a topic is given by its id"
            out += topic.bytes
        else:
            assert isinstance(topic, str), "a topic is given by its name"
            wire.write_string(out, topic, flexible)
        wire.write_array_length(out, len(partitions), flexible)
        for index, records in partitions:
            out += _INDEX.pack(index)
            if flexible:
                wire.write_uvarint(out, len(records) + 1)
            else:
                out += _INDEX.pack(len(records))
            pieces += (out, records)
            out = bytearray(1 if flexible else 0)  # no tagged fields
        if flexible:
            out.append(0)
    if flexible:
        out.append(0)
    pieces.append(out)
    return pieces
