"""What each API is: its key, the versions that Kafka 4.3 serves, its messages (loaded on first use).

request_class(ApiKey.METADATA)      -> MetadataRequest
SERVED_VERSIONS[ApiKey.METADATA]    -> VersionRange(0, 13)
"""

import importlib
from functools import cache

from kaspar.protocol.api_keys import KNOWN_VERSIONS, ApiKey
from kaspar.protocol.codec import read
from kaspar.protocol.headers import RequestHeader
from kaspar.protocol.schema import Message, VersionRange

__all__ = [
    "KNOWN_VERSIONS",
    "SERVED_VERSIONS",
    "ApiKey",
    "api_name",
    "read_request",
    "request_class",
    "response_class",
]

# Messages of versions that Kafka 4.3 has but does not serve yet, since they may still change.
_UNSTABLE = {ApiKey.INIT_PRODUCER_ID: 6}

SERVED_VERSIONS: dict[ApiKey, VersionRange] = {
    key: VersionRange(first, min(last, _UNSTABLE.get(key, last + 1) - 1))
    for key, (first, last, _) in KNOWN_VERSIONS.items()
}


def api_name(key: ApiKey) -> str:
    """The name of the API as Kafka writes it in metrics and logs."""
    return "".join(word.capitalize() for word in key.name.split("_"))


@cache
def request_class(key: ApiKey) -> type[Message]:
    return _message_class(key, "Request")


@cache
def response_class(key: ApiKey) -> type[Message]:
    return _message_class(key, "Response")


def _message_class(key: ApiKey, side: str) -> type[Message]:
    module = importlib.import_module(f"kaspar.protocol.messages.{key.name.lower()}")
    found = vars(module)[api_name(key) + side]
    assert isinstance(found, type)
    assert issubclass(found, Message)
    return found


def read_request(header: RequestHeader, buffer: bytes | bytearray | memoryview) -> Message:
    """Read the body of a request, whose version must be one that is served."""
    message, _ = read(request_class(ApiKey(header.api_key)), header.api_version, buffer, header.body_position)
    return message
