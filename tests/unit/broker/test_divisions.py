"""Requests in pieces, and their responses joined again."""

import pytest

from kaspar.base.errors import Refused
from kaspar.broker import divisions
from kaspar.broker.divisions import DIVISIONS, JoinedResponse, division_of, pieces
from kaspar.broker.handlers import SERVED, PartlyEncoded
from kaspar.protocol import codec
from kaspar.protocol.api import request_class, response_class
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from kaspar.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from kaspar.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kaspar.protocol.schema import Message


def divided(key: ApiKey, request: Message) -> list[Message]:
    division = division_of(key, request)
    assert division is not None
    return list(pieces(request, division))


def group(group_id: str, *topics: OffsetFetchRequestTopics) -> OffsetFetchRequestGroup:
    return OffsetFetchRequestGroup(group_id=group_id, topics=topics)


def offsets_of(name: str, partitions: range) -> OffsetFetchRequestTopics:
    return OffsetFetchRequestTopics(name=name, partition_indexes=tuple(partitions))


def test_every_divided_array_is_one_of_the_messages() -> None:
    for key, alternatives in DIVISIONS.items():
        assert key in SERVED
        for division in alternatives:
            for path, message in (
                (division.request, request_class(ApiKey(key))),
                (division.response, response_class(ApiKey(key))),
            ):
                assert path[0] in {field.name for field in message.SCHEMA.fields}, (key, path)


def test_pieces_have_all_elements_once_in_their_order() -> None:
    request = OffsetFetchRequest(
        groups=(
            group("a", offsets_of("t", range(300)), offsets_of("u", range(2))),
            OffsetFetchRequestGroup(group_id="all of it", topics=None),
            group("b", offsets_of("t", range(0)), offsets_of("u", range(5))),
        )
    )

    first, second = divided(ApiKey.OFFSET_FETCH, request)

    assert first == OffsetFetchRequest(groups=(group("a", offsets_of("t", range(250))),))
    assert second == OffsetFetchRequest(
        groups=(
            group("a", offsets_of("t", range(250, 300)), offsets_of("u", range(2))),
            OffsetFetchRequestGroup(group_id="all of it", topics=None),
            group("b", offsets_of("t", range(0)), offsets_of("u", range(5))),
        )
    )


def test_what_a_pieces_end_cut_apart_is_together_in_the_response() -> None:
    request = ListOffsetsRequest(
        replica_id=-1,
        topics=tuple(
            ListOffsetsTopic(
                name=name, partitions=tuple(ListOffsetsPartition(partition_index=i, timestamp=-1) for i in range(400))
            )
            for name in "ab"
        ),
    )
    division = division_of(ApiKey.LIST_OFFSETS, request)
    assert division is not None
    response = JoinedResponse(division, 7)
    for piece in pieces(request, division):
        assert isinstance(piece, ListOffsetsRequest)
        response.add(answered(piece))

    assert response.whole() == answered(request)


def answered(request: ListOffsetsRequest) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=tuple(
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=tuple(
                    ListOffsetsPartitionResponse(partition_index=each.partition_index) for each in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def metadata_of(*names: str) -> MetadataResponse:
    topics = tuple(MetadataResponseTopic(name=name, partitions=()) for name in names)
    return MetadataResponse(brokers=(), cluster_id=None, controller_id=-1, topics=topics)


def test_encoded_and_plain_responses_are_joined() -> None:
    version = 9
    (division,) = DIVISIONS[ApiKey.METADATA]
    response = JoinedResponse(division, version)
    response.add(PartlyEncoded(metadata_of(), {"topics": [codec.write(metadata_of("a").topics[0], version)]}, {}))
    response.add(PartlyEncoded(metadata_of("b", "c"), {}, {}))

    whole = response.whole()

    assert isinstance(whole, PartlyEncoded)
    assert codec.write(whole.message, version, whole.encoded) == codec.write(metadata_of("a", "b", "c"), version)


def test_a_response_too_large_for_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(divisions, "MAX_RESPONSE_BYTES", 100)
    (division,) = DIVISIONS[ApiKey.METADATA]
    response = JoinedResponse(division, 9)

    with pytest.raises(Refused, match="ask for less"):
        response.add(metadata_of("a" * 101))


def test_a_request_without_elements_is_not_divided() -> None:
    assert division_of(ApiKey.METADATA, MetadataRequest(topics=None)) is None
    assert division_of(ApiKey.METADATA, MetadataRequest(topics=())) is None
    assert division_of(ApiKey.METADATA, MetadataRequest(topics=(MetadataRequestTopic(name="a"),))) is not None
