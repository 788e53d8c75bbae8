"""MoveController (API key 10004): the request and the response. An API of Kaspar's own, in the form of Kafka's.

It is for the broker that controls: it resigns, and another one takes its place.
"""

from dataclasses import dataclass
from typing import ClassVar

from kaspar.protocol.schema import Field, Message, Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveControllerRequest(Message):
    to_broker_id: int = -1
    """Which broker shall control; -1: any other."""

    SCHEMA: ClassVar[Schema] = Schema(versions="0-0", flexible="0+", api_key=10004, fields=(
        Field("to_broker_id", "int32", "0+"),
    ))


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveControllerResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None

    SCHEMA: ClassVar[Schema] = Schema(versions="0-0", flexible="0+", api_key=10004, fields=(
        Field("throttle_time_ms", "int32", "0+"),
        Field("error_code", "int16", "0+"),
        Field("error_message", "string", "0+", nullable="0+"),
    ))
