"""Content types: chooses the type of a response, and checks that of a request."""

from http import HTTPStatus
from typing import Final

from kaspar.registry.errors import http_error
from kaspar.web.media_types import MediaRange, accepted_ranges, media_type_name

V1_JSON: Final = "application/vnd.schemaregistry.v1+json"
_OFFERED: Final = (V1_JSON, "application/vnd.schemaregistry+json", "application/json")
_ACCEPTED: Final = frozenset({*_OFFERED, "application/octet-stream"})


def response_type(accept: str | None) -> str:
    """The offered type with the highest weight; the first of equals. Raises RegistryError (406)."""
    ranges = accepted_ranges(accept)
    best = max(_OFFERED, key=lambda offered: _weight(offered, ranges))
    if _weight(best, ranges) <= 0:
        raise http_error(HTTPStatus.NOT_ACCEPTABLE)
    return best


def check_request_type(content_type: str | None) -> None:
    """A body without a type is assumed to be JSON. Raises RegistryError (415)."""
    if content_type and media_type_name(content_type) not in _ACCEPTED:
        raise http_error(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)


def _weight(offered: str, ranges: list[MediaRange]) -> float:
    """The weight of the most specific range that matches."""
    weights = dict(ranges)
    main, _, _ = offered.partition("/")
    return next((weights[name] for name in (offered, f"{main}/*", "*/*", "*") if name in weights), 0.0)
