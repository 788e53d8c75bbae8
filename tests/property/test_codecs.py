"""The hand-made codecs of Produce and Fetch: equal to kio's at every version, and harmed by no bytes."""

import contextlib
import dataclasses
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaspar.base.errors import MalformedBytes
from kaspar.protocol import fetch, produce
from kaspar.protocol.api import SERVED_VERSIONS, ApiKey
from kaspar.protocol.codec import array_length, read, write
from kaspar.protocol.messages import fetch as fetch_messages
from kaspar.protocol.messages import produce as produce_messages
from kaspar.protocol.shapes import (
    AbortedTransaction,
    BatchIndexAndErrorMessage,
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    SnapshotId,
    Topic,
)
from tests.unit.protocol.mutation import mutate
from tests.unit.protocol.oracle import Oracle

PRODUCE_VERSIONS = range(SERVED_VERSIONS[ApiKey.PRODUCE].first, SERVED_VERSIONS[ApiKey.PRODUCE].last + 1)
FETCH_VERSIONS = range(SERVED_VERSIONS[ApiKey.FETCH].first, SERVED_VERSIONS[ApiKey.FETCH].last + 1)
SEEDS = st.integers(0, 2**64)
EXAMPLES = settings(max_examples=60, deadline=None, database=None)


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
@given(seed=SEEDS)
@EXAMPLES
def test_produce_request_reads_as_kio_wrote_it(version: int, seed: int) -> None:
    oracle = Oracle(produce_messages.ProduceRequest, version)
    message = oracle.random_message(random.Random(seed))
    buffer = bytearray(b"header" + oracle.write(message))
    request = produce.read_request(version, buffer, 6)
    assert (request.transactional_id, request.acks, request.timeout_ms) == (
        message.transactional_id,
        message.acks,
        message.timeout_ms,
    )
    assert [
        (
            topic,
            [(part.partition_index, None if part.start < 0 else buffer[part.start : part.end]) for part in partitions],
        )
        for topic, partitions in request.topics
    ] == [
        (_topic_of(topic, version >= 13, topic.name), [(data.index, data.records) for data in topic.partition_data])
        for topic in message.topic_data
    ]


def _topic_of(topic: Any, by_id: bool, name: str) -> Any:
    return topic.topic_id if by_id else name


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
@given(seed=SEEDS)
@EXAMPLES
def test_produce_response_bytes_equal_kio(version: int, seed: int) -> None:
    oracle = Oracle(produce_messages.ProduceResponse, version)
    message = oracle.random_message(random.Random(seed))
    topics = [
        (_topic_of(topic, version >= 13, topic.name), [_produced(part) for part in topic.partition_responses])
        for topic in message.responses
    ]
    out = bytearray(b"header")
    produce.write_response(out, version, topics, message.throttle_time_ms, _endpoints(message))
    assert out == b"header" + oracle.write(message)


def _produced(part: Any) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        part.index,
        part.error_code,
        part.base_offset,
        part.log_append_time_ms,
        part.log_start_offset,
        [BatchIndexAndErrorMessage(error.batch_index, error.batch_index_error_message) for error in part.record_errors],
        part.error_message,
        LeaderIdAndEpoch(part.current_leader.leader_id, part.current_leader.leader_epoch),
    )


def _endpoints(message: Any) -> list[NodeEndpoint]:
    return [NodeEndpoint(node.node_id, node.host, node.port, node.rack) for node in message.node_endpoints]


@pytest.mark.parametrize("version", FETCH_VERSIONS)
@given(seed=SEEDS)
@EXAMPLES
def test_fetch_request_reads_as_kio_wrote_it(version: int, seed: int) -> None:
    oracle = Oracle(fetch_messages.FetchRequest, version)
    message = oracle.random_message(random.Random(seed))
    by_id = version >= 13
    assert fetch.read_request(version, b"header" + oracle.write(message), 6) == FetchRequest(
        max_wait_ms=message.max_wait_ms,
        min_bytes=message.min_bytes,
        max_bytes=message.max_bytes,
        isolation_level=message.isolation_level,
        session_id=message.session_id,
        session_epoch=message.session_epoch,
        topics=[
            (
                _topic_of(topic, by_id, topic.topic),
                [
                    FetchPartition(
                        part.partition,
                        part.fetch_offset,
                        part.partition_max_bytes,
                        part.current_leader_epoch,
                        part.last_fetched_epoch,
                        part.log_start_offset,
                        part.replica_directory_id,
                        part.high_watermark,
                    )
                    for part in topic.partitions
                ],
            )
            for topic in message.topics
        ],
        forgotten_topics_data=[
            (_topic_of(topic, by_id, topic.topic), list(topic.partitions)) for topic in message.forgotten_topics_data
        ],
        rack_id=message.rack_id,
        replica_id=message.replica_id if version < 15 else message.replica_state.replica_id,
        replica_epoch=message.replica_state.replica_epoch,
        cluster_id=message.cluster_id,
    )


@pytest.mark.parametrize("version", FETCH_VERSIONS)
@given(seed=SEEDS, record_size=st.sampled_from([0, 1, 100, 4095, 4096, 20_000]))
@EXAMPLES
def test_fetch_response_bytes_equal_kio(version: int, seed: int, record_size: int) -> None:
    oracle = Oracle(fetch_messages.FetchResponse, version)
    message = oracle.random_message(random.Random(seed))
    records = bytes(record_size)
    message = _with_records(message, records)
    topics = [
        (_topic_of(topic, version >= 13, topic.topic), [_fetched(part) for part in topic.partitions])
        for topic in message.responses
    ]
    out = bytearray(b"header")
    buffers = fetch.write_response(
        out,
        version,
        topics,
        throttle_time_ms=message.throttle_time_ms,
        error_code=message.error_code,
        session_id=message.session_id,
        node_endpoints=_endpoints(message),
    )
    assert buffers[0] is out
    assert b"".join(buffers) == b"header" + oracle.write(message)
    if record_size >= 4096:
        parts = [part for topic in message.responses for part in topic.partitions if part.records is not None]
        assert sum(buffer is records for buffer in buffers) == len(parts), "records are not copied"


def _with_records(message: Any, records: bytes) -> Any:
    """The same response with these records wherever it has some."""
    return dataclasses.replace(
        message,
        responses=tuple(
            dataclasses.replace(
                topic,
                partitions=tuple(
                    dataclasses.replace(part, records=None if part.records is None else records)
                    for part in topic.partitions
                ),
            )
            for topic in message.responses
        ),
    )


def _fetched(part: Any) -> PartitionData:
    aborted = part.aborted_transactions
    return PartitionData(
        part.partition_index,
        part.error_code,
        part.high_watermark,
        part.last_stable_offset,
        part.log_start_offset,
        part.records,
        None if aborted is None else [AbortedTransaction(entry.producer_id, entry.first_offset) for entry in aborted],
        part.preferred_read_replica,
        EpochEndOffset(part.diverging_epoch.epoch, part.diverging_epoch.end_offset),
        LeaderIdAndEpoch(part.current_leader.leader_id, part.current_leader.leader_epoch),
        SnapshotId(part.snapshot_id.end_offset, part.snapshot_id.epoch),
    )


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
@given(seed=SEEDS)
@EXAMPLES
def test_broken_produce_requests_are_malformed_as_the_general_codec_says(version: int, seed: int) -> None:
    randomness = random.Random(seed)
    message = Oracle(produce_messages.ProduceRequest, version).random_message(randomness)
    data = mutate(write(message, version), randomness)
    try:
        expected, _ = read(produce_messages.ProduceRequest, version, data)
    except MalformedBytes:
        with contextlib.suppress(MalformedBytes):
            produce.read_request(version, data, 0)
        return
    found = produce.read_request(version, data, 0)
    assert (found.transactional_id, found.acks, found.timeout_ms) == (
        expected.transactional_id,
        expected.acks,
        expected.timeout_ms,
    )
    for _, partitions in found.topics:
        assert all(-1 <= start <= end <= len(data) for _, start, end in partitions)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
@given(seed=SEEDS)
@EXAMPLES
def test_broken_fetch_requests_are_malformed_and_nothing_worse(version: int, seed: int) -> None:
    randomness = random.Random(seed)
    message = Oracle(fetch_messages.FetchRequest, version).random_message(randomness)
    data = mutate(write(message, version), randomness)
    with contextlib.suppress(MalformedBytes):
        fetch.read_request(version, data, 0)


@given(data=st.binary(max_size=300), version=st.integers(3, 18))
@settings(max_examples=500, deadline=None, database=None)
def test_random_bytes_are_malformed_and_nothing_worse(data: bytes, version: int) -> None:
    with contextlib.suppress(MalformedBytes):
        fetch.read_request(max(version, 4), data, 0)
    with contextlib.suppress(MalformedBytes):
        produce.read_request(min(version, 13), data, 0)


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_produce_request_cut_short_is_malformed(version: int) -> None:
    message = Oracle(produce_messages.ProduceRequest, version).random_message(random.Random(5))
    data = write(message, version)
    for end in range(len(data)):
        with pytest.raises(MalformedBytes):
            produce.read_request(version, data[:end], 0)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_fetch_request_cut_short_is_malformed(version: int) -> None:
    message = Oracle(fetch_messages.FetchRequest, version).random_message(random.Random(5))
    data = write(message, version)
    for end in range(len(data)):
        with pytest.raises(MalformedBytes):
            fetch.read_request(version, data[:end], 0)


def test_refused_produce_names_every_partition() -> None:
    asked: list[tuple[Topic, list[PartitionProduceData]]] = [
        ("a", [PartitionProduceData(3, 0, 9), PartitionProduceData(4, 9, 9)]),
        ("b", [PartitionProduceData(0, -1, -1)]),
    ]
    request = ProduceRequest(None, -1, 1000, asked)
    assert produce.refused(request, 87, "no") == [
        (
            "a",
            [PartitionProduceResponse(3, 87, error_message="no"), PartitionProduceResponse(4, 87, error_message="no")],
        ),
        ("b", [PartitionProduceResponse(0, 87, error_message="no")]),
    ]


def test_refused_fetch_names_partitions_only_to_clients_that_look_there() -> None:
    request = FetchRequest(1, 1, 1, 0, 0, -1, [("topic", [FetchPartition(3, 0, 100)])], [], "", -1, -1, None)
    assert fetch.refused(request, 13, 3) == []
    assert fetch.refused(request, 12, 3) == [("topic", [PartitionData(3, 3, aborted_transactions=())])]


def test_requests_full_of_tiny_topics_are_refused() -> None:
    """Two million empty topics in six megabytes."""
    count = 2_000_000
    data = b"\x00\xff\xff\x00\x00\x00\x01" + array_length(count, True) + b"\x01\x01\x00" * count + b"\x00"
    with pytest.raises(MalformedBytes, match="too many array elements"):
        produce.read_request(9, data, 0)
