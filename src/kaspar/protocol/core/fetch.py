"""Reads Fetch requests and writes Fetch responses, versions 4 to 18. Part of the compiled core, since every read passes
through it. Records are put into a response as separate buffers; only small ones are copied, to save a write.
"""

import struct
from collections.abc import Sequence
from typing import Any

import cython

from kaspar.base.ids import ZERO_UUID
from kaspar.base.named_tuples import new_tuple
from kaspar.protocol.core import wire
from kaspar.protocol.shapes import (
    NO_HIGH_WATERMARK,
    Buffer,
    FetchPartition,
    FetchRequest,
    NodeEndpoint,
    PartitionData,
    Topic,
)

FIRST_WITH_LOG_START_OFFSET = cython.declare(cython.int, 5)
FIRST_WITH_SESSIONS = cython.declare(cython.int, 7)
FIRST_WITH_LEADER_EPOCH = cython.declare(cython.int, 9)
FIRST_WITH_RACK = cython.declare(cython.int, 11)
FIRST_FLEXIBLE = cython.declare(cython.int, 12)
FIRST_WITH_TOPIC_ID = cython.declare(cython.int, 13)
FIRST_WITH_REPLICA_STATE = cython.declare(cython.int, 15)
FIRST_WITH_NODE_ENDPOINTS = cython.declare(cython.int, 16)
FIRST_WITH_DIRECTORY_ID = cython.declare(cython.int, 17)
FIRST_WITH_HIGH_WATERMARK = cython.declare(cython.int, 18)

_SMALLEST_TOPIC = cython.declare(cython.int, 3)
_SMALLEST_PARTITION = cython.declare(cython.int, 16)  # partition, fetch_offset, partition_max_bytes
_SMALLEST_INDEX = cython.declare(cython.int, 4)

# Copying this many bytes is cheaper than sending one more buffer.
_COPY_BELOW = cython.declare(cython.int, 4096)

# The fixed fields at the start of a request and of a partition, by the first version that has them.
_START_4 = struct.Struct(">iiiib")
_START_7 = struct.Struct(">iiiibii")
_START_15 = struct.Struct(">iiibii")
_PARTITION_4 = struct.Struct(">iqi")
_PARTITION_5 = struct.Struct(">iqqi")
_PARTITION_9 = struct.Struct(">iiqqi")
_PARTITION_12 = struct.Struct(">iiqiqi")

_RELEASE_GIL_EVERY = cython.declare(cython.int, wire.RELEASE_GIL_EVERY)

_Reader = wire.Reader
_pack_int32 = struct.Struct(">i").pack
_pack_throttle_error_session = struct.Struct(">ihi").pack
_pack_partition = struct.Struct(">ihqq").pack
_pack_partition_with_log_start = struct.Struct(">ihqqq").pack
_pack_aborted = struct.Struct(">qq").pack
_pack_diverging_epoch = struct.Struct(">bbiqb").pack
_pack_leader = struct.Struct(">bbiib").pack
_pack_snapshot_id = struct.Struct(">bbqib").pack


def read_request(
    version: cython.int,
    buffer: Buffer,
    position: cython.Py_ssize_t = 0,
    max_elements: cython.longlong = wire.MAX_ELEMENTS,
) -> FetchRequest:
    flexible: cython.bint = version >= FIRST_FLEXIBLE
    reader = _Reader(buffer, position, max_elements)
    replica_id = -1
    replica_epoch = -1
    cluster_id = None
    session_id = 0
    session_epoch = -1
    if version >= FIRST_WITH_REPLICA_STATE:
        max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch = reader.fixed(_START_15)
    elif version >= FIRST_WITH_SESSIONS:
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch = reader.fixed(
            _START_7
        )
    else:
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level = reader.fixed(_START_4)
    topics = []
    index: cython.Py_ssize_t
    partition_count: cython.Py_ssize_t
    topic_count: cython.Py_ssize_t = reader.filled_array_length(flexible, _SMALLEST_TOPIC)
    for _ in range(topic_count):
        topic: Any = reader.uuid() if version >= FIRST_WITH_TOPIC_ID else reader.string(flexible)
        partitions = []
        partition_count = reader.filled_array_length(flexible, _SMALLEST_PARTITION)
        for index in range(partition_count):
            partitions.append(_read_partition(reader, version))
            if index % _RELEASE_GIL_EVERY == _RELEASE_GIL_EVERY - 1:
                wire.release_gil()
        if flexible:
            reader.tagged_fields()
        topics.append((topic, partitions))
    forgotten: Any = _read_forgotten(reader, version) if version >= FIRST_WITH_SESSIONS else []
    rack_id = reader.string(flexible) if version >= FIRST_WITH_RACK else ""
    if flexible:
        for tag, start, end in reader.tagged_fields():
            part = reader.part(start, end)
            if tag == 0:
                cluster_id = part.nullable_string(True)
            elif tag == 1 and version >= FIRST_WITH_REPLICA_STATE:
                replica_id = part.int32()
                replica_epoch = part.int64()
                part.tagged_fields()
            else:
                continue
            part.expect_end()
    return new_tuple(
        FetchRequest,
        (
            max_wait_ms,
            min_bytes,
            max_bytes,
            isolation_level,
            session_id,
            session_epoch,
            topics,
            forgotten,
            rack_id,
            replica_id,
            replica_epoch,
            cluster_id,
        ),
    )


@cython.cfunc
def _read_partition(reader: Any, version: cython.int) -> Any:
    current_leader_epoch = -1
    last_fetched_epoch = -1
    log_start_offset = -1
    replica_directory_id = ZERO_UUID
    high_watermark = NO_HIGH_WATERMARK
    if version >= FIRST_FLEXIBLE:
        fixed = reader.fixed(_PARTITION_12)
        partition, current_leader_epoch, fetch_offset, last_fetched_epoch, log_start_offset, partition_max_bytes = fixed
    elif version >= FIRST_WITH_LEADER_EPOCH:
        partition, current_leader_epoch, fetch_offset, log_start_offset, partition_max_bytes = reader.fixed(
            _PARTITION_9
        )
    elif version >= FIRST_WITH_LOG_START_OFFSET:
        partition, fetch_offset, log_start_offset, partition_max_bytes = reader.fixed(_PARTITION_5)
    else:
        partition, fetch_offset, partition_max_bytes = reader.fixed(_PARTITION_4)
    if version >= FIRST_FLEXIBLE:
        for tag, start, end in reader.tagged_fields():
            part = reader.part(start, end)
            if tag == 0 and version >= FIRST_WITH_DIRECTORY_ID:
                replica_directory_id = part.uuid()
            elif tag == 1 and version >= FIRST_WITH_HIGH_WATERMARK:
                high_watermark = part.int64()
            else:
                continue
            part.expect_end()
    return new_tuple(
        FetchPartition,
        (
            partition,
            fetch_offset,
            partition_max_bytes,
            current_leader_epoch,
            last_fetched_epoch,
            log_start_offset,
            replica_directory_id,
            high_watermark,
        ),
    )


@cython.cfunc
def _read_forgotten(reader: Any, version: cython.int) -> Any:
    flexible: cython.bint = version >= FIRST_FLEXIBLE
    forgotten = []
    for _ in range(reader.filled_array_length(flexible, _SMALLEST_TOPIC)):
        topic = reader.uuid() if version >= FIRST_WITH_TOPIC_ID else reader.string(flexible)
        partitions = []
        for _ in range(reader.filled_array_length(flexible, _SMALLEST_INDEX)):
            partitions.append(reader.int32())
        if flexible:
            reader.tagged_fields()
        forgotten.append((topic, partitions))
    return forgotten


def write_response(
    out: bytearray,
    version: cython.int,
    topics: Sequence[tuple[Topic, Sequence[PartitionData]]],
    *,
    throttle_time_ms: int = 0,
    error_code: int = 0,
    session_id: int = 0,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> list[Any]:
    """Return the response as buffers to be sent in this order; the first is `out`, which already has the header. Large
    records are included as they were passed, in memory or not.
    """
    flexible: cython.bint = version >= FIRST_FLEXIBLE
    buffers: list[Any] = [out]
    if version >= FIRST_WITH_SESSIONS:
        out += _pack_throttle_error_session(throttle_time_ms, error_code, session_id)
    else:
        out += _pack_int32(throttle_time_ms)
    wire.write_array_length(out, len(topics), flexible)
    topic: Any
    for topic, partitions in topics:
        if version >= FIRST_WITH_TOPIC_ID:
            out += topic.bytes
        else:
            wire.write_string(out, topic, flexible)
        wire.write_array_length(out, len(partitions), flexible)
        for partition in partitions:
            out = _write_partition(buffers, out, version, partition)
        if flexible:
            out.append(0)
    if flexible:
        wire.write_node_endpoints(out, node_endpoints if version >= FIRST_WITH_NODE_ENDPOINTS else ())
    return buffers


@cython.cfunc
def _write_partition(buffers: list[Any], out: bytearray, version: cython.int, partition: Any) -> bytearray:
    """Write a partition. Returns the buffer to continue with: a new one if its records were not copied."""
    flexible: cython.bint = version >= FIRST_FLEXIBLE
    index, error_code, high_watermark, last_stable_offset, log_start_offset, records, aborted, replica = partition[:8]
    if version >= FIRST_WITH_LOG_START_OFFSET:
        out += _pack_partition_with_log_start(index, error_code, high_watermark, last_stable_offset, log_start_offset)
    else:
        out += _pack_partition(index, error_code, high_watermark, last_stable_offset)
    if aborted is None:
        wire.write_array_length(out, -1, flexible)
    else:
        wire.write_array_length(out, len(aborted), flexible)
        for producer_id, first_offset in aborted:
            out += _pack_aborted(producer_id, first_offset)
            if flexible:
                out.append(0)
    if version >= FIRST_WITH_RACK:
        out += _pack_int32(replica)
    if records is None:
        wire.write_array_length(out, -1, flexible)
    else:
        wire.write_array_length(out, len(records), flexible)
        if len(records) < _COPY_BELOW:
            out += records
        else:
            buffers.append(records)
            out = bytearray()
            buffers.append(out)
    if flexible:
        _write_partition_tags(out, partition[8], partition[9], partition[10])
    return out


@cython.cfunc
def _write_partition_tags(out: bytearray, diverging_epoch: Any, leader: Any, snapshot_id: Any) -> object:
    """Write the tagged fields, each as tag, size, the fields of the struct, and its own tagged fields (none)."""
    if diverging_epoch is None and leader is None and snapshot_id is None:
        out.append(0)
        return None
    count_at: cython.Py_ssize_t = len(out)
    out.append(0)
    count: cython.int = 0
    if diverging_epoch is not None and diverging_epoch != (-1, -1):
        out += _pack_diverging_epoch(0, 13, diverging_epoch[0], diverging_epoch[1], 0)
        count += 1
    if leader is not None and leader != (-1, -1):
        out += _pack_leader(1, 9, leader[0], leader[1], 0)
        count += 1
    if snapshot_id is not None and snapshot_id != (-1, -1):
        out += _pack_snapshot_id(2, 13, snapshot_id[0], snapshot_id[1], 0)
        count += 1
    out[count_at] = count
    return None
