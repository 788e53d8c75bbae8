"""The content types of version 2, such as `application/vnd.kafka.json.v2+json`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kaspar.rest.errors import CONSUMER_FORMAT_MISMATCH, NOT_ACCEPTABLE, UNSUPPORTED_MEDIA_TYPE, RestError
from kaspar.rest.formats import EmbeddedFormat
from kaspar.rest.http import JSON
from kaspar.web.media_types import accepted_ranges, media_type_name

KAFKA_V2_JSON: Final = "application/vnd.kafka.v2+json"
_KAFKA: Final = re.compile(
    r"application/vnd\.kafka(?:\.(?P<format>binary|json|avro|jsonschema|protobuf))?(?:\.v[12])?\+json"
)
_ANY: Final = frozenset({"*/*", "application/*", "*/json"})


@dataclass(frozen=True, slots=True)
class MediaType:
    name: str
    """The type for the response; empty lets the server choose."""
    format: EmbeddedFormat | None
    """None if the type names no format."""


def produced_format(content_type: str | None) -> EmbeddedFormat:
    """The format of the records in a request body. Types that name no format mean binary. Raises RestError (415)."""
    name = media_type_name(content_type or JSON)
    if name in (JSON, "application/octet-stream"):
        return EmbeddedFormat.BINARY
    if match := _KAFKA.fullmatch(name):
        return _format(match) or EmbeddedFormat.BINARY
    raise RestError(UNSUPPORTED_MEDIA_TYPE)


def check_body_type(content_type: str | None) -> None:
    """Check the type of a body without records. Raises RestError (415)."""
    produced_format(content_type)


def response_type(accept: str | None) -> str:
    """The type of a response without records. Raises RestError (406)."""
    for media_type in _accepted(accept):
        return media_type.name or KAFKA_V2_JSON
    raise RestError(NOT_ACCEPTABLE)


def error_type(accept: str | None) -> str:
    """The type of an error response, which is sent even if the client does not accept the type."""
    return next((each.name or KAFKA_V2_JSON for each in _accepted(accept)), KAFKA_V2_JSON)


def records_type(accept: str | None, embedded: EmbeddedFormat) -> str:
    """The type of a response with records of a consumer instance. Raises RestError (40601 if other formats are
    accepted)."""
    own = f"application/vnd.kafka.{embedded.value}.v2+json"
    mismatch = False
    for media_type in _accepted(accept):
        if media_type.format in (None, embedded):
            return own if media_type.format is None else media_type.name
        mismatch = True
    raise RestError(CONSUMER_FORMAT_MISMATCH if mismatch else NOT_ACCEPTABLE)


def _accepted(accept: str | None) -> Iterator[MediaType]:
    """The accepted types that the proxy knows, most preferred first."""
    for name, weight in sorted(accepted_ranges(accept), key=lambda each: -each.weight):
        if weight <= 0:
            return
        if name in _ANY:
            yield MediaType("", None)
        elif name == JSON:
            yield MediaType(JSON, None)
        elif match := _KAFKA.fullmatch(name):
            yield MediaType(name, _format(match))


def _format(match: re.Match[str]) -> EmbeddedFormat | None:
    name = match["format"]
    return None if name is None else EmbeddedFormat(name)
