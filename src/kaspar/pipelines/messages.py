"""The messages between a command and the host: one request and one response per connection, each one line of JSON."""

from typing import Final

import msgspec

from kaspar.pipelines.statuses import PipelineDetails, PipelineStatus

LARGEST_REQUEST: Final = 64 * 1024
LARGEST_RESPONSE: Final = 4 * 1024 * 1024
LONGEST_DESCRIPTION: Final = 256 * 1024


class ListPipelines(msgspec.Struct, frozen=True, tag="list"):
    """Requests the statuses of all pipelines."""


class DescribePipeline(msgspec.Struct, frozen=True, tag="describe"):
    name: str


class ApplyChanges(msgspec.Struct, frozen=True, tag="apply"):
    """Notifies the host that definitions in the folder have changed. The response is sent when these pipelines are in
    the wanted state or have failed to start, or after `wait_s`."""

    names: tuple[str, ...] = ()
    wait_s: float = 0.0


Request = ListPipelines | DescribePipeline | ApplyChanges


class Pipelines(msgspec.Struct, frozen=True, tag="pipelines"):
    """`is_ready`: the host has its session. `unsettled`: pipelines that did not reach the wanted state in time."""

    statuses: tuple[PipelineStatus, ...]
    is_ready: bool
    unsettled: tuple[str, ...] = ()


class Described(msgspec.Struct, frozen=True, tag="described"):
    details: PipelineDetails


class Failure(msgspec.Struct, frozen=True, tag="failure"):
    sentence: str


Response = Pipelines | Described | Failure

_REQUEST: Final = msgspec.json.Decoder(Request)
_RESPONSE: Final = msgspec.json.Decoder(Response)


def encode(message: Request | Response) -> bytes:
    return msgspec.json.encode(message) + b"\n"


def decode_request(line: bytes) -> Request:
    """Raises msgspec.DecodeError."""
    request: Request = _REQUEST.decode(line)
    return request


def decode_response(line: bytes) -> Response:
    """Raises msgspec.DecodeError."""
    response: Response = _RESPONSE.decode(line)
    return response
