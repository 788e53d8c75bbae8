"""Media types in headers: the ranges of `Accept` with their weights, and the name in `Content-Type`."""

from typing import Final, NamedTuple

_MAX_RANGES: Final = 100


class MediaRange(NamedTuple):
    name: str
    """In lower case, without parameters: `application/json`, `application/*`, `*/*`."""
    weight: float
    """From 0, which rejects the range, to 1."""


def accepted_ranges(accept: str | None) -> list[MediaRange]:
    """The media ranges, in the order of the header. A request without the header accepts everything. A malformed weight
    counts as 1.
    """
    if accept is None or not accept.strip():
        return [MediaRange("*/*", 1.0)]
    return [_media_range(each) for each in accept.split(",", _MAX_RANGES)[:_MAX_RANGES] if each.strip()]


def media_type_name(content_type: str) -> str:
    """The name in lower case, without parameters."""
    return content_type.partition(";")[0].strip().lower()


def _media_range(text: str) -> MediaRange:
    _, *parameters = text.split(";")
    pairs = (parameter.partition("=") for parameter in parameters)
    weights = (_weight(value) for name, _, value in pairs if name.strip().lower() == "q")
    return MediaRange(media_type_name(text), next(weights, 1.0))


def _weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        return 1.0
    return weight if 0 <= weight <= 1 else 1.0
