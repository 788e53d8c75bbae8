"""Reads Produce requests and writes Produce responses, versions 3 to 13. Part of the compiled core, since every write
passes through it. Records are not copied out of the received buffer.
"""

import struct
from collections.abc import Sequence
from typing import Any

import cython

from kaspar.base.named_tuples import new_tuple
from kaspar.protocol.core import wire
from kaspar.protocol.shapes import (
    Buffer,
    NodeEndpoint,
    OneBatch,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    Topic,
)

if cython.compiled:
    from cython.cimports.kaspar.base import primitives
else:
    from kaspar.base import primitives

FIRST_VERSION = cython.declare(cython.int, 3)
LAST_VERSION = cython.declare(cython.int, 13)
FIRST_FLEXIBLE = cython.declare(cython.int, 9)
FIRST_WITH_LOG_START_OFFSET = cython.declare(cython.int, 5)
FIRST_WITH_RECORD_ERRORS = cython.declare(cython.int, 8)
FIRST_WITH_LEADER = cython.declare(cython.int, 10)
FIRST_WITH_TOPIC_ID = cython.declare(cython.int, 13)

# The smallest sizes of a topic and of a partition: an id or an empty name, lengths, tags.
_SMALLEST_TOPIC = cython.declare(cython.int, 3)
_SMALLEST_PARTITION = cython.declare(cython.int, 5)
MAX_STRING_BYTES = cython.declare(cython.int, wire.MAX_STRING_BYTES)

_RELEASE_GIL_EVERY = cython.declare(cython.int, wire.RELEASE_GIL_EVERY)

_Reader = wire.Reader
_ACKS_AND_TIMEOUT = struct.Struct(">hi")
_pack_partition = struct.Struct(">ihqq").pack
_pack_partition_with_log_start = struct.Struct(">ihqqq").pack
_pack_int32 = struct.Struct(">i").pack
_pack_leader = struct.Struct(">bbiib").pack


# --- Any request ------------------------------------------------------------------------------------------------------


def read_request(
    version: cython.int,
    buffer: Buffer,
    position: cython.Py_ssize_t = 0,
    max_elements: cython.longlong = wire.MAX_ELEMENTS,
) -> ProduceRequest:
    flexible: cython.bint = version >= FIRST_FLEXIBLE
    reader = _Reader(buffer, position, max_elements)
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
            partitions.append(new_tuple(PartitionProduceData, (index, start, end)))
            if len(partitions) % _RELEASE_GIL_EVERY == 0:
                wire.release_gil()
        if flexible:
            reader.tagged_fields()
        topics.append((topic, partitions))
    if flexible:
        reader.tagged_fields()
    return new_tuple(ProduceRequest, (transactional_id, acks, timeout_ms, topics))


# --- One batch, and nothing else --------------------------------------------------------------------------------------


@cython.locals(data="const unsigned char[::1]")
def read_one(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> OneBatch | None:
    """Fast path: read the request in `buffer[start:end]`, including its header, if it is a Produce request of the most
    frequent form: one batch for one partition, no transaction, no tagged fields.

    None for any other bytes: use `read_request_header` and `read_request`, which give the same result for a request of
    this form, at three times the cost.
    """
    data = buffer
    if start < 0 or end > len(buffer):
        raise ValueError(f"{start} to {end} is outside a buffer of {len(buffer)} bytes")
    # Each comparison with `end` covers the bytes up to the next comparison.
    if end - start < 10 or data[start] != 0 or data[start + 1] != 0:  # the key of Produce
        return None
    version: cython.int = primitives.read_int16(data, start + 2)
    if version < FIRST_VERSION or version > LAST_VERSION:
        return None
    flexible: cython.bint = version >= FIRST_FLEXIBLE
    client_id_length: cython.Py_ssize_t = primitives.read_int16(data, start + 8)
    client_id_at: cython.Py_ssize_t = start + 10
    position: cython.Py_ssize_t = client_id_at + (client_id_length if client_id_length > 0 else 0)
    if client_id_length < -1 or end - position < 12:
        return None

    # No tagged fields, no transactional id; acks (read at the end) and timeout; one topic.
    if flexible:
        if data[position] != 0 or data[position + 1] != 0 or data[position + 8] != 2:
            return None
    elif data[position] != 0xFF or data[position + 1] != 0xFF or primitives.read_int32(data, position + 8) != 1:
        return None
    acks_at: cython.Py_ssize_t = position + 2
    position += 9 if flexible else 12

    length: cython.longlong
    varint: cython.longlong
    if version >= FIRST_WITH_TOPIC_ID:
        length = 16
    elif flexible:
        varint = primitives.read_varint(data, position, end)
        length = primitives.unsigned_varint_value(varint) - 1
        position += primitives.varint_size(varint)
    elif end - position >= 2:
        length = primitives.read_int16(data, position)
        position += 2
    else:
        return None
    topic_at: cython.Py_ssize_t = position
    if length < 0 or length > MAX_STRING_BYTES or end - position < length + 9:
        return None
    position += length
    topic_end: cython.Py_ssize_t = position

    # One partition, its index, its records.
    if flexible:
        if data[position] != 2:
            return None
        position += 1
    else:
        if primitives.read_int32(data, position) != 1:
            return None
        position += 4
    index: cython.longlong = primitives.read_int32(data, position)
    position += 4
    if flexible:
        varint = primitives.read_varint(data, position, end)
        length = primitives.unsigned_varint_value(varint) - 1
        position += primitives.varint_size(varint)
    elif end - position >= 4:
        length = primitives.read_int32(data, position)
        position += 4
    else:
        return None
    records_at: cython.Py_ssize_t = position
    if length < 0 or end - position != length + (3 if flexible else 0):
        return None
    position += length
    if flexible and (data[position] != 0 or data[position + 1] != 0 or data[position + 2] != 0):  # tagged fields
        return None

    topic: Any
    client_id = None
    try:
        if client_id_length >= 0:
            client_id = buffer[client_id_at : client_id_at + client_id_length].decode("utf-8")
        if version >= FIRST_WITH_TOPIC_ID:
            topic = wire.uuid_of(bytes(buffer[topic_at:topic_end]))
        else:
            topic = buffer[topic_at:topic_end].decode("utf-8")
    except UnicodeDecodeError:
        return None
    acks: cython.int = primitives.read_int16(data, acks_at)
    correlation_id: cython.longlong = primitives.read_int32(data, start + 4)
    return version, correlation_id, client_id, acks, topic, index, records_at, position


# --- Responses --------------------------------------------------------------------------------------------------------


def write_response(
    out: bytearray,
    version: cython.int,
    topics: Sequence[tuple[Topic, Sequence[PartitionProduceResponse]]],
    throttle_time_ms: int = 0,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> None:
    """Append the response to `out`, after its header."""
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
