"""What a broker does with what it cannot take as a request: unknown APIs and versions, wrong headers and frames."""

import struct

from tests.compat.responses.api import Api
from tests.compat.responses.messages import encode_header
from tests.compat.responses.scenario import Ask, Raw, RawStream, Scenario, Step

VERSIONS = Api.API_VERSIONS
_ALIVE = Ask(Api.DESCRIBE_CLUSTER, version=0)
_CORRELATION_ID = 77


def _header(api_key: int, version: int, *, flexible: bool = False) -> bytes:
    return encode_header(api_key, version, _CORRELATION_ID, flexible=flexible)


def _unsupported(api: Api) -> list[Scenario]:
    """The versions next to those that Kafka serves, and the ends of the number line."""
    wrong = sorted({api.first - 1, api.last + 1, -1, 32_767, -32_768} - set(api.versions))
    return [
        Scenario(f"the unknown version {version}", api, [Raw(_header(api.key, version), api, 0)], versions=[version])
        for version in wrong
        if api is not VERSIONS
    ]


def _wire(name: str, *steps: Step) -> Scenario:
    """After each wrong thing a new connection is served as ever."""
    return Scenario(f"connection {name}", VERSIONS, [*steps, _ALIVE], versions=[0])


# An ApiVersions request of an unknown version gets a response of version 0, so that the client can learn what to use.
_NEGOTIATION = [
    _wire(
        f"asks for ApiVersions {version} with a{' flexible' if flexible else 'n old'} header",
        Raw(_header(VERSIONS.key, version, flexible=flexible), VERSIONS, 0),
    )
    for version, flexible in ((5, True), (5, False), (100, True), (32_767, True), (-1, False))
]

_UNKNOWN_APIS = [
    _wire(f"asks for the unknown API {key}", Raw(_header(key, 0), VERSIONS, 0)) for key in (4, 7, 93, 500, -1, 32_767)
]

_INTERNAL_APIS = [
    _wire(
        f"asks for the API {key} that is between controllers and brokers",
        Raw(_header(key, 0, flexible=True), VERSIONS, 0),
    )
    for key in (52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82)
]

# Ordinary requests with short responses, after their header: Metadata v1 of no topics, and DescribeCluster v0.
_NO_TOPICS = struct.pack(">i", 0)
_AS_IT_IS = b"\x00"


def _metadata(client_id: bytes, *, correlation_id: int = 1) -> bytes:
    return struct.pack(">hhi", Api.METADATA.key, 1, correlation_id) + client_id + _NO_TOPICS


def _cluster(header_tags: bytes, body_tags: bytes) -> bytes:
    return struct.pack(">hhih", Api.DESCRIBE_CLUSTER.key, 0, 1, -1) + header_tags + _AS_IT_IS + body_tags


_NULL = struct.pack(">h", -1)
_NO_TAGS, _UNKNOWN_TAG, _LONG_TAG = b"\x00", b"\x01\x63\x02ab", b"\x01\x63\x7fab"
_HEADERS = [
    _wire("sends an empty frame", RawStream(struct.pack(">i", 0))),
    _wire("sends one byte", RawStream(struct.pack(">i", 1) + b"\0")),
    _wire("sends half a header", RawStream(struct.pack(">i", 6) + _header(3, 1)[:6])),
    _wire("sends a header without a client id", RawStream(struct.pack(">ihhi", 8, 18, 0, 1))),
    _wire("sends a client id longer than the frame", RawStream(struct.pack(">ihhih", 12, 18, 0, 1, 999) + b"ab")),
    _wire("sends a client id of negative length", Raw(_metadata(struct.pack(">h", -5)), Api.METADATA, 1)),
    _wire("sends a client id that is no text", Raw(_metadata(struct.pack(">h", 2) + b"\xff\xfe"), Api.METADATA, 1)),
    _wire("sends a null client id", Raw(_metadata(_NULL), Api.METADATA, 1)),
    _wire("sends a negative correlation id", Raw(_metadata(_NULL, correlation_id=-9), Api.METADATA, 1)),
    *[
        _wire(f"sends {what}", Raw(payload, Api.DESCRIBE_CLUSTER, 0))
        for what, payload in {
            "unknown tagged fields in the header": _cluster(_UNKNOWN_TAG, _NO_TAGS),
            "unknown tagged fields in the body": _cluster(_NO_TAGS, _UNKNOWN_TAG),
            "tagged fields in the header that are longer than the frame": _cluster(_LONG_TAG, _NO_TAGS),
            "tagged fields in the body that are longer than the frame": _cluster(_NO_TAGS, _LONG_TAG),
        }.items()
    ],
    _wire("sends a negative frame length", RawStream(struct.pack(">i", -1))),
    _wire("sends a frame length above socket.request.max.bytes", RawStream(struct.pack(">i", 200_000_000))),
    _wire("sends a frame length as high as can be", RawStream(struct.pack(">i", 2**31 - 1))),
    _wire("speaks HTTP", RawStream(b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n")),
    _wire("speaks TLS", RawStream(bytes.fromhex("16030100c8010000c40303") + bytes(64))),
    _wire(
        "sends an array length as high as can be",
        Raw(_header(Api.METADATA.key, 1) + struct.pack(">i", 2**31 - 1), Api.METADATA, 1),
    ),
    _wire(
        "sends an array length below minus one",
        Raw(_header(Api.METADATA.key, 1) + struct.pack(">i", -2), Api.METADATA, 1),
    ),
    _wire(
        "sends a null array where none may be",
        Raw(_header(Api.METADATA.key, 0) + struct.pack(">i", -1), Api.METADATA, 0),
    ),
    _wire(
        "sends a null text where none may be",
        Raw(_header(Api.METADATA.key, 1) + struct.pack(">ih", 1, -1), Api.METADATA, 1),
    ),
    _wire(
        "sends a text that is no text",
        Raw(_header(Api.METADATA.key, 1) + struct.pack(">ih", 1, 2) + b"\xff\xfe", Api.METADATA, 1),
    ),
    _wire(
        "sends a varint that does not end",
        Raw(_header(Api.METADATA.key, 9, flexible=True) + b"\xff" * 12, Api.METADATA, 9),
    ),
    _wire("sends no body", Raw(_header(Api.METADATA.key, 9, flexible=True), Api.METADATA, 9)),
    _wire(
        "sends a bool of two",
        Raw(_header(Api.METADATA.key, 4) + struct.pack(">ib", 0, 2), Api.METADATA, 4),
    ),
]

SCENARIOS = [
    *_NEGOTIATION,
    *_UNKNOWN_APIS,
    *_INTERNAL_APIS,
    *_HEADERS,
    *[scenario for api in Api for scenario in _unsupported(api)],
]
