"""Reads Produce requests and writes Produce responses, versions 3 to 13. Part of the compiled core: every write that
a client makes comes through here. Records stay where they are in the received buffer.
"""

import struct
from collections.abc import Sequence
from typing import Any

import cython

from kaspar.protocol.core import wire
from kaspar.protocol.shapes import (
    Buffer,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    Topic,
)

FIRST_FLEXIBLE = cython.declare(cython.int, 9)
FIRST_WITH_LOG_START_OFFSET = cython.declare(cython.int, 5)
FIRST_WITH_RECORD_ERRORS = cython.declare(cython.int, 8)
FIRST_WITH_LEADER = cython.declare(cython.int, 10)
FIRST_WITH_TOPIC_ID = cython.declare(cython.int, 13)

# The fewest bytes of a topic and of a partition: an id or an empty name, lengths, tags.
_SMALLEST_TOPIC = cython.declare(cython.int, 3)
_SMALLEST_PARTITION = cython.declare(cython.int, 5)

_new = tuple.__new__
_Reader = wire.Reader
_ACKS_AND_TIMEOUT = struct.Struct(">hi")
_pack_partition = struct.Struct(">ihqq").pack
_pack_partition_with_log_start = struct.Struct(">ihqqq").pack
_pack_int32 = struct.Struct(">i").pack
_pack_leader = struct.Struct(">bbiib").pack


def read_request(version: cython.int, buffer: Buffer, position: cython.Py_ssize_t = 0) -> ProduceRequest:
    flexible: cython.bint = version >= FIRST_FLEXIBLE
    reader = _Reader(buffer, position)
    transactional_id = reader.nullable_string(flexible)
    acks, timeout_ms = reader.fixed(_ACKS_AND_TIMEOUT)
    topics = []
    partition_count: cython.Py_ssize_t
    topic_count: cython.Py_ssize_t = reader.filled_array_length(flexible, _SMALLEST_TOPIC)
    for _ in range(topic_count):
        topic: Any = reader.uuid() if version >= FIRST_WITH_TOPIC_ID else reader.string(flexible)
        partitions = []
        partition_count = reader.filled_array_length(flexible, _SMALLEST_PARTITION)
        for _ in range(partition_count):
            index = reader.int32()
            length: cython.longlong = reader.bytes_length(flexible)
            start: cython.longlong = -1
            end: cython.longlong = -1
            if length >= 0:
                start = reader.position
                end = start + length
                reader.position = end
            if flexible:
                reader.tagged_fields()
            partitions.append(_new(PartitionProduceData, (index, start, end)))
        if flexible:
            reader.tagged_fields()
        topics.append((topic, partitions))
    if flexible:
        reader.tagged_fields()
    return _new(ProduceRequest, (transactional_id, acks, timeout_ms, topics))


def write_response(
    out: bytearray,
    version: cython.int,
    topics: Sequence[tuple[Topic, Sequence[PartitionProduceResponse]]],
    throttle_time_ms: int = 0,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> None:
    """Appends the response to what `out` already has (its header)."""
    flexible: cython.bint = version >= FIRST_FLEXIBLE
    wire.write_array_length(out, len(topics), flexible)
    topic: Any
    for topic, partitions in topics:
        if version >= FIRST_WITH_TOPIC_ID:
            out += topic.bytes
        else:
            wire.write_string(out, topic, flexible)
        wire.write_array_length(out, len(partitions), flexible)
        for partition in partitions:
            _write_partition(out, version, partition)
        if flexible:
            out.append(0)
    out += _pack_int32(throttle_time_ms)
    if flexible:
        wire.write_node_endpoints(out, node_endpoints if version >= FIRST_WITH_LEADER else ())


@cython.cfunc
def _write_partition(out: bytearray, version: cython.int, partition: Any) -> object:
    index, error_code, base_offset, log_append_time_ms, log_start_offset, errors, error_message, leader = partition
    if version < FIRST_WITH_LOG_START_OFFSET:
        out += _pack_partition(index, error_code, base_offset, log_append_time_ms)
        return None
    out += _pack_partition_with_log_start(index, error_code, base_offset, log_append_time_ms, log_start_offset)
    if version < FIRST_WITH_RECORD_ERRORS:
        return None
    flexible: cython.bint = version >= FIRST_FLEXIBLE
    wire.write_array_length(out, len(errors), flexible)
    for batch_index, message in errors:
        out += _pack_int32(batch_index)
        wire.write_string(out, message, flexible)
        if flexible:
            out.append(0)
    wire.write_string(out, error_message, flexible)
    if flexible:
        if leader is None or leader == (-1, -1) or version < FIRST_WITH_LEADER:
            out.append(0)
        else:
            out.append(1)
            out += _pack_leader(0, 9, leader[0], leader[1], 0)
    return None
