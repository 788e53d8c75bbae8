"""Every message at every version: our bytes are kio's bytes, each reads the other's, and no bytes do harm."""

import contextlib
import random

import pytest
from kio.schema.index import api_key_map

from kaspar.base.errors import MalformedBytes
from kaspar.protocol.codec import read, write
from kaspar.protocol.messages.compact_topics import (
    CompactTopicsPartition,
    CompactTopicsPartitionResult,
    CompactTopicsRequest,
    CompactTopicsResponse,
    CompactTopicsTopic,
    CompactTopicsTopicResult,
)
from kaspar.protocol.messages.list_timestamps import (
    ListTimestampsPartition,
    ListTimestampsPartitionResult,
    ListTimestampsRequest,
    ListTimestampsResponse,
    ListTimestampsTopic,
    ListTimestampsTopicResult,
)
from kaspar.protocol.schema import Message
from scripts import generate_messages
from tests.unit.protocol.mutation import mutate
from tests.unit.protocol.oracle import Oracle, all_messages

MESSAGES = list(all_messages())
IDS = [f"{cls.__name__}-{version}" for cls, version in MESSAGES]
DATA_RECORDS = 10


def test_generated_files_are_current() -> None:
    stale = [path.name for path, text in generate_messages.generate().items() if path.read_text() != text]
    assert stale == [], "run 'make generate'"


def test_every_message_of_kafka_is_there() -> None:
    names = {cls.__name__ for cls, _ in MESSAGES}
    assert len(names) == 2 * len(api_key_map) + DATA_RECORDS


@pytest.mark.parametrize(("message_class", "version"), MESSAGES, ids=IDS)
def test_bytes_equal_kio_both_ways(message_class: type[Message], version: int) -> None:
    oracle = Oracle(message_class, version)
    for seed in range(12):
        message = oracle.random_message(random.Random(seed))
        written = write(message, version)
        assert written == oracle.write(message), seed
        assert read(message_class, version, b"before" + written + b"after", 6) == (message, 6 + len(written)), seed
        assert oracle.read(written) == oracle.to_kio(message), seed


@pytest.mark.parametrize(("message_class", "version"), MESSAGES, ids=IDS)
def test_broken_bytes_are_malformed_and_nothing_worse(message_class: type[Message], version: int) -> None:
    randomness = random.Random(version)
    oracle = Oracle(message_class, version)
    for _ in range(5):
        written = write(oracle.random_message(randomness), version)
        for _ in range(20):
            with contextlib.suppress(MalformedBytes):
                read(message_class, version, mutate(written, randomness))
        for end in range(len(written)):
            with pytest.raises(MalformedBytes):
                read(message_class, version, written[:end])


def test_messages_of_our_own_come_back_as_they_were() -> None:
    partition = CompactTopicsPartitionResult(
        partition_index=3,
        error_code=2,
        error_message="é",
        target_offset=2**40,
        first_dirty_offset=-1,
        log_end_offset=7,
        size_bytes=2**50,
        records_removed=9,
        cleaned_percent=42,
    )
    response = CompactTopicsResponse(topics=(CompactTopicsTopicResult(name="t", partitions=(partition,)),))
    topic = CompactTopicsTopic(name="t", partitions=(CompactTopicsPartition(partition_index=1, target_offset=5),))
    times = ListTimestampsResponse(
        topics=(
            ListTimestampsTopicResult(
                name="t", partitions=(ListTimestampsPartitionResult(partition_index=1, timestamps=(2**41, -1)),)
            ),
        )
    )
    offsets = ListTimestampsPartition(partition_index=1, offsets=(0, 2**40))
    asked = ListTimestampsRequest(topics=(ListTimestampsTopic(name="t", partitions=(offsets,)),))
    for message in (response, CompactTopicsRequest(topics=(topic,)), times, asked):
        written = write(message, 0)
        assert read(type(message), 0, written) == (message, len(written))
        for end in range(len(written)):
            with pytest.raises(MalformedBytes):
                read(type(message), 0, written[:end])
