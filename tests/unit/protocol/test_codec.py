"""The codec's own rules, beyond being equal to kio's."""

import struct
import uuid

import pytest

from kaspar.base.errors import MalformedBytes
from kaspar.protocol.codec import array_length, is_flexible, read, write, write_into
from kaspar.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kaspar.protocol.messages.init_producer_id import InitProducerIdRequest
from kaspar.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

FLEXIBLE = 12
OLDER = 4


def metadata_response() -> MetadataResponse:
    partition = MetadataResponsePartition(partition_index=0, leader_id=1, replica_nodes=(1,), isr_nodes=(1,))
    return MetadataResponse(
        brokers=(MetadataResponseBroker(node_id=1, host="localhost", port=9092),),
        topics=tuple(MetadataResponseTopic(name=f"topic-{n}", partitions=(partition,)) for n in range(3)),
    )


@pytest.mark.parametrize("buffer_type", [bytes, bytearray, memoryview])
def test_any_buffer_is_read(buffer_type: type) -> None:
    request = MetadataRequest(topics=(MetadataRequestTopic(name="a"),))
    data = buffer_type(write(request, OLDER))
    assert read(MetadataRequest, OLDER, data)[0] == request


def test_field_that_a_version_lacks_has_its_default_when_read_and_is_left_out_when_written() -> None:
    request = MetadataRequest(topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=True)
    written = write(request, 1)
    assert written == b"\xff\xff\xff\xff"
    assert read(MetadataRequest, 1, written)[0] == MetadataRequest(topics=None)


def test_read_message_is_frozen_and_equal_to_a_made_one() -> None:
    message, _ = read(MetadataRequest, OLDER, write(MetadataRequest(topics=()), OLDER))
    assert hash(message) == hash(MetadataRequest(topics=()))
    with pytest.raises(AttributeError):
        message.__setattr__("topics", None)


def test_encoded_elements_take_the_place_of_an_array() -> None:
    response = metadata_response()
    for version in (OLDER, FLEXIBLE):
        parts = [write(topic, version) for topic in response.topics]
        without = MetadataResponse(brokers=response.brokers, topics=())
        assert write(without, version, {"topics": parts}) == write(response, version)


def test_write_into_appends() -> None:
    out = bytearray(b"header")
    write_into(out, metadata_response(), FLEXIBLE)
    assert out == b"header" + write(metadata_response(), FLEXIBLE)


def test_array_length_in_both_forms() -> None:
    assert array_length(3, False) == b"\0\0\0\3"
    assert array_length(None, False) == b"\xff\xff\xff\xff"
    assert array_length(300, True) == b"\xad\x02"
    assert array_length(None, True) == b"\0"
    assert is_flexible(MetadataRequest, 9)
    assert not is_flexible(MetadataRequest, 8)


def test_unknown_tagged_field_is_skipped() -> None:
    request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=5)
    plain = write(request, 4)
    assert plain.endswith(b"\0")
    data = plain[:-1] + b"\x02\x07\x03abc\x63\x00"
    assert read(InitProducerIdRequest, 4, data) == (request, len(data))


@pytest.mark.parametrize(
    ("tags", "why"),
    [
        (b"\x02\x07\x01a\x07\x01b", "follows"),
        (b"\x02\x08\x01a\x07\x01b", "follows"),
        (b"\x01\x07\x05a", "are needed"),
        (b"\xff\xff\xff\xff\x0f", "tagged fields in"),
    ],
)
def test_tagged_fields_out_of_order_or_without_their_bytes_are_malformed(tags: bytes, why: str) -> None:
    plain = write(InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=5), 4)
    with pytest.raises(MalformedBytes, match=why):
        read(InitProducerIdRequest, 4, plain[:-1] + tags)


@pytest.mark.parametrize(
    ("version", "data", "why"),
    [
        (OLDER, struct.pack(">i", 2**31 - 1), "an array of 2147483647 elements"),
        (OLDER, struct.pack(">i", -2), "an array of -2 elements"),
        (FLEXIBLE, b"\xff\xff\xff\xff\x0f", "an array of 4294967294 elements"),
        (FLEXIBLE, b"\xff\xff\xff\xff\x1f", "longer than 32 bits"),
        (FLEXIBLE, b"\x80\x80\x80\x80\x80\x00", "longer than 32 bits"),
        (OLDER, b"\0\0\0\1\xff\xff", "is null, but not nullable"),
        (OLDER, b"\0\0\0\1\xff\xfe", "a string of length -2"),
        (OLDER, b"\0\0\0\1\0\2\xc3\x28", "not UTF-8"),
        (OLDER, b"\0\0\0\1\0\x09short", "are needed"),
        (FLEXIBLE, b"\x02" + bytes(16) + b"\x81\x80\x02" + b"a" * 32768, "exceeds the limit of 32767"),
        (OLDER, b"", "are needed"),
    ],
)
def test_malformed_bytes_say_what_is_wrong(version: int, data: bytes, why: str) -> None:
    with pytest.raises(MalformedBytes, match=why):
        read(MetadataRequest, version, data)


def test_array_is_refused_before_memory_is_taken_for_it() -> None:
    """A topic takes at least 11 bytes here, so these lengths promise more than the buffer holds."""
    padding = bytes(1000)
    with pytest.raises(MalformedBytes, match="an array of 998 elements"):
        read(CreateTopicsRequest, 2, struct.pack(">i", 998) + padding)


@pytest.mark.parametrize("version", [2, 5])
def test_elements_of_all_arrays_together_are_limited(version: int) -> None:
    """Each array is short and no byte is missing: only their sum reveals a frame made to exhaust memory."""
    configs = tuple(CreatableTopicConfig(name="", value=None) for _ in range(10))
    topic = CreatableTopic(name="", num_partitions=0, replication_factor=0, assignments=(), configs=configs)
    request = CreateTopicsRequest(topics=(topic,) * 5)
    data = write(request, version)
    assert read(CreateTopicsRequest, version, data, max_elements=55)[0] == request
    with pytest.raises(MalformedBytes, match="too many array elements"):
        read(CreateTopicsRequest, version, data, max_elements=54)


def test_tagged_fields_count_as_elements() -> None:
    request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=5)
    tags = b"\x03" + b"".join(bytes([tag, 0]) for tag in (20, 21, 22))
    data = write(request, 4)[:-1] + tags
    assert read(InitProducerIdRequest, 4, data, max_elements=3)[0] == request
    with pytest.raises(MalformedBytes, match="too many array elements"):
        read(InitProducerIdRequest, 4, data, max_elements=2)


def test_null_where_the_version_has_none_is_a_mistake_of_the_program() -> None:
    with pytest.raises(ValueError, match="topics may not be null"):
        write(MetadataRequest(topics=None), 0)


def test_number_that_does_not_fit_is_a_mistake_of_the_program() -> None:
    topic = CreatableTopic(name="a", num_partitions=2**31, replication_factor=1, assignments=(), configs=())
    with pytest.raises(struct.error):
        write(topic, 5)


def test_unknown_version_is_a_mistake_of_the_program() -> None:
    with pytest.raises(ValueError, match="has no version 99"):
        write(MetadataRequest(topics=()), 99)


def test_topic_ids_are_uuids() -> None:
    topic_id = uuid.uuid4()
    request = MetadataRequest(topics=(MetadataRequestTopic(topic_id=topic_id, name=None),))
    assert read(MetadataRequest, FLEXIBLE, write(request, FLEXIBLE))[0] == request
