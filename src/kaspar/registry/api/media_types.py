"""Content types: which of the registry's own a response has, and which a request may have."""

from http import HTTPStatus
from typing import Final

from kaspar.registry.errors import http_error

V1_JSON: Final = "application/vnd.schemaregistry.v1+json"
_OFFERED: Final = (V1_JSON, "application/vnd.schemaregistry+json", "application/json")
_ACCEPTED: Final = frozenset({*_OFFERED, "application/octet-stream"})


def response_type(accept: str | None) -> str:
    """The offered type that the client likes best; of equals the first. Raises a 406."""
    if accept is None or not accept.strip():
        return V1_JSON
    ranges = [_range(each) for each in accept.split(",")]
    weighted = [(_weight(offered, ranges), -place, offered) for place, offered in enumerate(_OFFERED)]
    weight, _, best = max(weighted)
    if weight <= 0:
        raise http_error(HTTPStatus.NOT_ACCEPTABLE)
    return best


def check_request_type(content_type: str | None) -> None:
    """A body without a type is taken for JSON. Raises a 415."""
    if content_type and _name(content_type) not in _ACCEPTED:
        raise http_error(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)


def _range(text: str) -> tuple[str, float]:
    name, *parameters = text.split(";")
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip().lower() == "q":
            try:
                return _name(name), float(value)
            except ValueError:
                return _name(name), 0.0
    return _name(name), 1.0


def _weight(offered: str, ranges: list[tuple[str, float]]) -> float:
    """That of the most specific range that matches."""
    by_name = dict(ranges)
    main, _, _ = offered.partition("/")
    return next((by_name[name] for name in (offered, f"{main}/*", "*/*", "*") if name in by_name), 0.0)


def _name(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()
