"""The core of a connection: bytes in, responses out, no socket."""

import struct

import pytest

from kaspar.base.errors import MalformedBytes
from kaspar.client.core import API_VERSIONS_REQUEST, ClientCore, UnsupportedByPeer
from kaspar.protocol.api import ApiKey, read_request
from kaspar.protocol.headers import read_request_header
from kaspar.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kaspar.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kaspar.protocol.schema import Message
from tests.unit.client.scripted import api_versions, response_frame


def response_to(request_frame: bytes, message: Message, version: int | None = None) -> bytes:
    return response_frame(read_request_header(request_frame, 4), message, version)


def metadata(controller_id: int) -> MetadataResponse:
    return MetadataResponse(brokers=(), topics=(), controller_id=controller_id)


def test_request_frame_has_length_header_and_body() -> None:
    core = ClientCore(client_id="me")
    sent = core.send(MetadataRequest(topics=None), 4)
    header = read_request_header(sent, 4)
    assert struct.unpack_from(">i", sent) == (len(sent) - 4,)
    assert header[:4] == (ApiKey.METADATA, 4, 0, "me")
    assert read_request(header, sent) == MetadataRequest(topics=None)


def test_responses_are_paired_with_requests_however_the_bytes_are_cut() -> None:
    core = ClientCore()
    requests = [core.send(MetadataRequest(topics=None), version) for version in (4, 12, 9)]
    data = b"".join(response_to(request, metadata(n)) for n, request in enumerate(requests))
    responses = [response for byte in data for response in core.receive(bytes([byte]))]
    assert [response.message for response in responses] == [metadata(0), metadata(1), metadata(2)]
    assert [response.request.correlation_id for response in responses] == [0, 1, 2]
    assert not core.open_requests


def test_request_without_a_response_is_not_open() -> None:
    core = ClientCore()
    core.send(MetadataRequest(topics=None), 4, has_response=False)
    second = core.send(MetadataRequest(topics=None), 4)
    (response,) = core.receive(response_to(second, metadata(5)))
    assert response.request.correlation_id == 1


def test_response_to_another_request_is_malformed() -> None:
    core = ClientCore()
    core.send(MetadataRequest(topics=None), 4)
    second = core.send(MetadataRequest(topics=None), 4)
    with pytest.raises(MalformedBytes, match="correlation id 1 instead of 0"):
        list(core.receive(response_to(second, metadata(1))))


def test_response_without_a_request_is_malformed() -> None:
    with pytest.raises(MalformedBytes, match="without a request"):
        list(ClientCore().receive(b"\0\0\0\4\0\0\0\0"))


@pytest.mark.parametrize("size", [-1, 1001])
def test_frame_larger_than_allowed_is_malformed_before_it_arrives(size: int) -> None:
    core = ClientCore(max_frame_bytes=1000)
    core.send(MetadataRequest(topics=None), 4)
    with pytest.raises(MalformedBytes, match=f"a response frame of {size} bytes; the limit is 1000"):
        list(core.receive(struct.pack(">i", size)))


def test_newest_version_of_both_sides_is_used() -> None:
    core = ClientCore()
    served = (
        ApiVersion(api_key=ApiKey.METADATA, min_version=0, max_version=7),
        ApiVersion(api_key=ApiKey.FETCH, min_version=0, max_version=99),
        ApiVersion(api_key=ApiKey.CREATE_TOPICS, min_version=0, max_version=1),
    )
    assert core.learn_versions(ApiVersionsResponse(api_keys=served))
    assert core.version_of(ApiKey.METADATA) == 7
    assert core.version_of(ApiKey.FETCH) == 18
    with pytest.raises(
        UnsupportedByPeer,
        match="no common version of CreateTopics: this client knows 2 to 7, the peer serves versions 0 to 1",
    ):
        core.version_of(ApiKey.CREATE_TOPICS)
    with pytest.raises(UnsupportedByPeer, match="the peer does not serve it"):
        core.version_of(ApiKey.DELETE_TOPICS)


def test_a_version_of_the_callers_choice_must_be_served_but_own_apis_are_never_announced() -> None:
    core = ClientCore()
    core.learn_versions(
        ApiVersionsResponse(api_keys=(ApiVersion(api_key=ApiKey.METADATA, min_version=0, max_version=7),))
    )
    core.check_serves(ApiKey.METADATA, 7)
    core.check_serves(ApiKey.COMPACT_TOPICS, 0)
    for api_key, version in ((ApiKey.METADATA, 8), (ApiKey.DELETE_TOPICS, 1)):
        with pytest.raises(UnsupportedByPeer, match=f"the peer does not serve version {version} of"):
            core.check_serves(api_key, version)


def test_api_versions_is_retried_in_a_version_that_the_peer_serves() -> None:
    core = ClientCore()
    first = core.send(API_VERSIONS_REQUEST)
    assert read_request_header(first, 4).api_version == 4
    refusal = ApiVersionsResponse(
        error_code=35, api_keys=(ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=0, max_version=2),)
    )
    (response,) = core.receive(response_to(first, refusal, version=0))
    assert isinstance(response.message, ApiVersionsResponse)
    assert not core.learn_versions(response.message)

    second = core.send(API_VERSIONS_REQUEST)
    header = read_request_header(second, 4)
    assert header.api_version == 2
    assert isinstance(read_request(header, second), ApiVersionsRequest)
    (response,) = core.receive(response_to(second, api_versions()))
    assert isinstance(response.message, ApiVersionsResponse)
    assert core.learn_versions(response.message)
    assert core.version_of(ApiKey.METADATA) == 13


def test_peer_that_refuses_api_versions_is_unsupported() -> None:
    with pytest.raises(UnsupportedByPeer, match="INVALID_REQUEST"):
        ClientCore().learn_versions(ApiVersionsResponse(error_code=42, api_keys=()))


def test_correlation_ids_start_over_after_the_last() -> None:
    core = ClientCore()
    core._correlation_id = 0x7FFF_FFFF
    core.send(MetadataRequest(topics=None), 4)
    core.send(MetadataRequest(topics=None), 4)
    assert [request.correlation_id for request in core.open_requests] == [0x7FFF_FFFF, 0]
