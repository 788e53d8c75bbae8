"""Request and response headers against kio's, and the table of APIs."""

import io
import random
import struct

import pytest
from kio.schema.request_header.v1.header import RequestHeader as KioRequestHeaderV1
from kio.schema.request_header.v2.header import RequestHeader as KioRequestHeaderV2
from kio.schema.response_header.v0.header import ResponseHeader as KioResponseHeaderV0
from kio.schema.response_header.v1.header import ResponseHeader as KioResponseHeaderV1
from kio.serial import entity_writer
from kio.static.primitive import i16, i32

from kaspar.base.errors import MalformedBytes
from kaspar.protocol.api import (
    KNOWN_VERSIONS,
    SERVED_VERSIONS,
    ApiKey,
    api_name,
    read_request,
    request_class,
    response_class,
)
from kaspar.protocol.codec import is_flexible, write
from kaspar.protocol.headers import (
    RequestHeader,
    frame,
    read_request_header,
    read_response_header,
    set_frame_size,
    start_response,
    write_request_header,
)
from kaspar.protocol.messages.metadata import MetadataRequest
from tests.unit.protocol.mutation import mutate

EVERY_VERSION = [
    (key, version) for key, (first, last, _) in KNOWN_VERSIONS.items() for version in range(first, last + 1)
]


@pytest.mark.parametrize("client_id", [None, "", "rdkafka", "größe"])
def test_request_headers_equal_kio(client_id: str | None) -> None:
    for key, version in EVERY_VERSION:
        flexible = is_flexible(request_class(key), version)
        kio_class = KioRequestHeaderV2 if flexible else KioRequestHeaderV1
        kio_bytes = io.BytesIO()
        header = kio_class(
            request_api_key=i16(key), request_api_version=i16(version), correlation_id=i32(-5), client_id=client_id
        )
        entity_writer(kio_class)(kio_bytes, header)
        written = write_request_header(key, version, -5, client_id)
        assert written == kio_bytes.getvalue()
        buffer = b"size" + written + b"body"
        assert read_request_header(buffer, 4) == RequestHeader(key, version, -5, client_id, 4 + len(written))


def test_response_headers_equal_kio_except_for_api_versions() -> None:
    for key, version in EVERY_VERSION:
        flexible = is_flexible(response_class(key), version) and key is not ApiKey.API_VERSIONS
        kio_class = KioResponseHeaderV1 if flexible else KioResponseHeaderV0
        kio_bytes = io.BytesIO()
        entity_writer(kio_class)(kio_bytes, kio_class(correlation_id=i32(77)))
        started = start_response(key, version, 77)
        assert started[4:] == kio_bytes.getvalue()
        assert read_response_header(key, version, started, 4) == (77, len(started))


def test_frame_size_counts_all_buffers_but_not_itself() -> None:
    out = start_response(ApiKey.METADATA, 4, 1) + b"body"
    set_frame_size(out)
    assert out[:4] == struct.pack(">i", 8)
    set_frame_size(out, len(out) + 100)
    assert out[:4] == struct.pack(">i", 108)
    assert frame(b"abc") == b"\0\0\0\3abc"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\3\0\4\0\0\0\1\0",
        b"\0\3\0\4\0\0\0\1\0\5abc",
        b"\0\3\0\x0c\0\0\0\1\xff\xff",
        b"\0\3\0\x0c\0\0\0\1\xff\xff\x01\x05",
    ],
)
def test_broken_request_header_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedBytes):
        read_request_header(data)


@pytest.mark.parametrize(
    ("client_id", "read"), [(b"\xff\xfe", None), (b"\0\1\xff", "\ufffd"), (b"\0\4gr\xfcn", "gr\ufffdn")]
)
def test_no_client_is_turned_away_for_its_client_id(client_id: bytes, read: str | None) -> None:
    header = read_request_header(b"\0\3\0\4\0\0\0\1" + client_id + b"body")
    assert header == (3, 4, 1, read, 8 + len(client_id))


def test_mutated_headers_are_malformed_or_read() -> None:
    randomness = random.Random(1)
    malformed = 0
    for _ in range(5000):
        key, version = randomness.choice(EVERY_VERSION)
        data = mutate(bytes(write_request_header(key, version, 1, "client")), randomness)
        try:
            assert read_request_header(data).body_position <= len(data)
        except MalformedBytes:
            malformed += 1
    assert 500 < malformed < 4500


def test_unknown_tagged_fields_of_a_header_are_skipped() -> None:
    header = write_request_header(ApiKey.METADATA, 12, 1, "c")
    data = header[:-1] + b"\x01\x09\x02ab" + write(MetadataRequest(topics=None), 12)
    found = read_request_header(data)
    assert found.body_position == len(header) + 4
    assert read_request(found, data) == MetadataRequest(topics=None)


def test_bytes_behind_a_request_are_ignored_as_kafka_does() -> None:
    data = write_request_header(ApiKey.METADATA, 4, 1, "c") + write(MetadataRequest(topics=None), 4) + b"more"
    assert read_request(read_request_header(data), data) == MetadataRequest(topics=None)


def test_served_versions_are_those_of_kafka() -> None:
    assert SERVED_VERSIONS[ApiKey.PRODUCE] == (3, 13)
    assert SERVED_VERSIONS[ApiKey.FETCH] == (4, 18)
    assert SERVED_VERSIONS[ApiKey.INIT_PRODUCER_ID] == (0, 5)
    assert SERVED_VERSIONS[ApiKey.SHARE_GROUP_HEARTBEAT] == (1, 1)


def test_api_names_are_those_of_the_messages() -> None:
    for key in ApiKey:
        assert request_class(key).__name__ == api_name(key) + "Request"
        assert response_class(key).__name__ == api_name(key) + "Response"
        assert request_class(key).SCHEMA.api_key == key
