"""Requests in pieces, and their responses joined again."""

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.wiring import SERVED
from kaspar.network import divisions
from kaspar.network.api import PartlyEncoded
from kaspar.network.divisions import DIVISIONS, JoinedResponse, asks_for_all_of_several, division_of, pieces
from kaspar.protocol import codec
from kaspar.protocol.api import request_class, response_class
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.messages.describe_producers import DescribeProducersResponse, PartitionResponse, TopicResponse
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
from kaspar.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kaspar.protocol.schema import Message


def divided(key: ApiKey, request: Message) -> list[Message]:
    division = division_of(key, request)
    assert division is not None
    return [piece.request for piece in pieces(request, division)]


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

    first, second, everything, last = divided(ApiKey.OFFSET_FETCH, request)

    assert first == OffsetFetchRequest(groups=(group("a", offsets_of("t", range(250))),))
    assert second == OffsetFetchRequest(
        groups=(group("a", offsets_of("t", range(250, 300)), offsets_of("u", range(2))),)
    )
    assert everything == OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="all of it", topics=None),))
    assert last == OffsetFetchRequest(groups=(group("b", offsets_of("t", range(0)), offsets_of("u", range(5))),))


def test_all_offsets_of_several_groups_are_many_however_few_the_groups() -> None:
    everything = OffsetFetchRequestGroup(group_id="g", topics=None)

    assert not asks_for_all_of_several(OffsetFetchRequest(groups=(everything,)))
    assert not asks_for_all_of_several(OffsetFetchRequest(groups=(group("a"), group("b"))))
    assert asks_for_all_of_several(OffsetFetchRequest(groups=(everything, everything)))
    assert len(divided(ApiKey.OFFSET_FETCH, OffsetFetchRequest(groups=(everything, everything)))) == 2


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
    for piece, goes_on in pieces(request, division):
        assert isinstance(piece, ListOffsetsRequest)
        response.add(response_to(piece), goes_on=goes_on)

    assert encoded(response, 7) == codec.write(response_to(request), 7)


def encoded(response: JoinedResponse, version: int) -> bytes:
    whole = response.whole()
    message, arrays = (whole.message, whole.encoded) if isinstance(whole, PartlyEncoded) else (whole, None)
    return codec.write(message, version, arrays)


def response_to(request: ListOffsetsRequest) -> ListOffsetsResponse:
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
    response.add(
        PartlyEncoded(metadata_of(), {"topics": [codec.write(metadata_of("a").topics[0], version)]}, {}), goes_on=True
    )
    response.add(PartlyEncoded(metadata_of("b", "c"), {}, {}), goes_on=False)

    assert encoded(response, version) == codec.write(metadata_of("a", "b", "c"), version)


def producers_of(name: str, *partitions: int) -> TopicResponse:
    described = tuple(PartitionResponse(partition_index=index, active_producers=()) for index in partitions)
    return TopicResponse(name=name, partitions=described)


def test_a_piece_whose_partitions_are_encoded_is_part_of_the_response() -> None:
    (division,) = DIVISIONS[ApiKey.DESCRIBE_PRODUCERS]
    response = JoinedResponse(division, 0)
    response.add(DescribeProducersResponse(topics=(producers_of("a", 0), producers_of("b", 0))), goes_on=True)
    response.add(DescribeProducersResponse(topics=(producers_of("b", 1),)), goes_on=True)
    large = [codec.write(producers_of("b", 2), 0), codec.write(producers_of("c", 0, 1), 0)]
    response.add(PartlyEncoded(DescribeProducersResponse(topics=()), {"topics": large}, {}), goes_on=True)
    response.add(DescribeProducersResponse(topics=(producers_of("c", 2), producers_of("d", 0))), goes_on=True)

    topics = (producers_of("a", 0), producers_of("b", 0, 1, 2), producers_of("c", 0, 1, 2), producers_of("d", 0))
    assert encoded(response, 0) == codec.write(DescribeProducersResponse(topics=topics), 0)


def offsets(group_id: str, *partitions: int, error: ErrorCode = ErrorCode.NONE) -> OffsetFetchResponseGroup:
    found = tuple(
        OffsetFetchResponsePartitions(partition_index=index, committed_offset=1, metadata="") for index in partitions
    )
    topics = (OffsetFetchResponseTopics(name="t", partitions=found),) if partitions else ()
    return OffsetFetchResponseGroup(group_id=group_id, topics=topics, error_code=error)


def test_a_group_that_is_refused_in_a_later_piece_is_refused() -> None:
    """With the offsets of the first piece alone, the other partitions would look as if nothing was committed."""
    division = DIVISIONS[ApiKey.OFFSET_FETCH][0]
    response = JoinedResponse(division, 9)
    response.add(OffsetFetchResponse(groups=(offsets("a", 0), offsets("b", 0))), goes_on=True)
    stale = offsets("b", error=ErrorCode.STALE_MEMBER_EPOCH)
    response.add(OffsetFetchResponse(groups=(stale, offsets("c", 0))), goes_on=True)
    response.add(OffsetFetchResponse(groups=(offsets("c", 1),)), goes_on=True)

    groups = (offsets("a", 0), stale, offsets("c", 0, 1))
    assert encoded(response, 9) == codec.write(OffsetFetchResponse(groups=groups), 9)


def old_offsets(*partitions: int, error: ErrorCode = ErrorCode.NONE) -> OffsetFetchResponse:
    found = tuple(
        OffsetFetchResponsePartition(partition_index=index, committed_offset=1, metadata="", error_code=error)
        for index in partitions
    )
    topics = (OffsetFetchResponseTopic(name="t", partitions=found),) if partitions else ()
    return OffsetFetchResponse(topics=topics, error_code=error)


def test_an_error_of_a_whole_piece_is_that_of_the_response() -> None:
    division = DIVISIONS[ApiKey.OFFSET_FETCH][1]
    refused = old_offsets(error=ErrorCode.NOT_COORDINATOR)
    response = JoinedResponse(division, 7)
    for piece in (old_offsets(0), refused, old_offsets(2)):
        response.add(piece, goes_on=True)
    assert encoded(response, 7) == codec.write(refused, 7)

    response = JoinedResponse(division, 1)  # a version that has errors of partitions alone
    for piece in (old_offsets(0), old_offsets(1, error=ErrorCode.NOT_COORDINATOR)):
        response.add(piece, goes_on=True)
    (topic,) = codec.read(OffsetFetchResponse, 1, encoded(response, 1))[0].topics
    assert [partition.error_code for partition in topic.partitions] == [0, ErrorCode.NOT_COORDINATOR]


def test_a_response_too_large_for_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(divisions, "MAX_RESPONSE_BYTES", 100)
    (division,) = DIVISIONS[ApiKey.METADATA]
    response = JoinedResponse(division, 9)

    with pytest.raises(Refused, match="request fewer elements"):
        response.add(metadata_of("a" * 101), goes_on=True)


def test_a_request_without_elements_is_not_divided() -> None:
    assert division_of(ApiKey.METADATA, MetadataRequest(topics=None)) is None
    assert division_of(ApiKey.METADATA, MetadataRequest(topics=())) is None
    assert division_of(ApiKey.METADATA, MetadataRequest(topics=(MetadataRequestTopic(name="a"),))) is not None


def test_elements_that_a_client_names_twice_stay_two() -> None:
    """A group that is asked about again and again must not be kept, unencoded, until the last time."""
    once, again = (OffsetFetchRequestGroup(group_id="g", topics=None) for _ in range(2))
    request = OffsetFetchRequest(groups=(once, again, group("g", offsets_of("t", range(300)))))
    division = DIVISIONS[ApiKey.OFFSET_FETCH][0]
    assert [piece.goes_on for piece in pieces(request, division)] == [False, False, True, False]

    response = JoinedResponse(division, 9)
    for _ in range(2):
        response.add(OffsetFetchResponse(groups=(offsets("g", 0, 1),)), goes_on=False)

    assert encoded(response, 9) == codec.write(OffsetFetchResponse(groups=(offsets("g", 0, 1),) * 2), 9)
