"""SubmitEvent (API key 10002): the request and the response. An API of Kaspar's own, in the form of Kafka's.

A broker passes an event to the controller, and gets its reply once the change is committed.
"""

from dataclasses import dataclass
from typing import ClassVar

from kaspar.protocol.schema import Field, Message, Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitEventRequest(Message):
    event: str
    """The name of its class (kaspar/controller/events.py)."""
    payload: bytes

    SCHEMA: ClassVar[Schema] = Schema(versions="0-0", flexible="0+", api_key=10002, fields=(
        Field("event", "string", "0+"),
        Field("payload", "bytes", "0+"),
    ))


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitEventResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    """Why the event as a whole was refused. The reply has the outcome of each of its entries."""
    error_message: str | None = None
    reply: bytes | None = None
    controller_epoch: int = -1
    """With the next field, the version of the image that shows the change."""
    image_number: int = -1

    SCHEMA: ClassVar[Schema] = Schema(versions="0-0", flexible="0+", api_key=10002, fields=(
        Field("throttle_time_ms", "int32", "0+"),
        Field("error_code", "int16", "0+"),
        Field("error_message", "string", "0+", nullable="0+"),
        Field("reply", "bytes", "0+", nullable="0+"),
        Field("controller_epoch", "int32", "0+"),
        Field("image_number", "int64", "0+"),
    ))
