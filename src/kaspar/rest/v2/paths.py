"""Path and query parameters of version 2."""

from starlette.requests import Request

from kaspar.rest.errors import NOT_FOUND, RestError

_MAX_INT = (1 << 31) - 1


def partition_of(request: Request) -> int:
    """The partition in the path. A path with anything but a number does not exist, as in Confluent's proxy."""
    text = request.path_params["partition"]
    if not (text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= _MAX_INT):
        raise RestError(NOT_FOUND)
    return int(text)


def number_of(request: Request, name: str) -> int:
    """A number in the query; -1 if it is missing."""
    text = request.query_params.get(name, "-1").strip()
    if not (text.removeprefix("-").isascii() and text.removeprefix("-").isdecimal() and len(text) <= 19):
        raise RestError(NOT_FOUND)
    return int(text)
