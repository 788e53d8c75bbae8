"""FollowImage (API key 10001): the request and the response. An API of Kaspar's own, in the form of Kafka's.

A broker asks the controller for what has changed since the image that it has, and gets a response as soon as something
has, or after `max_wait_ms`. It asks again and again: that is how it follows the cluster, and how it knows that it is in
touch with the controller.
"""

from dataclasses import dataclass
from typing import ClassVar

from kaspar.protocol.schema import Field, Message, Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowImageRequest(Message):
    controller_epoch: int = -1
    """With the next field, the version of the image that the broker has; -1: none."""
    image_number: int = -1
    max_wait_ms: int

    SCHEMA: ClassVar[Schema] = Schema(versions="0-0", flexible="0+", api_key=10001, fields=(
        Field("controller_epoch", "int32", "0+"),
        Field("image_number", "int64", "0+"),
        Field("max_wait_ms", "int32", "0+"),
    ))


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowImageResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    is_current: bool = False
    """Whether the controller knows that no other has taken its place."""
    delta: bytes | None = None
    """An encoded ImageDelta (kaspar/metadata/deltas.py); null if nothing has changed."""

    SCHEMA: ClassVar[Schema] = Schema(versions="0-0", flexible="0+", api_key=10001, fields=(
        Field("throttle_time_ms", "int32", "0+"),
        Field("error_code", "int16", "0+"),
        Field("error_message", "string", "0+", nullable="0+"),
        Field("is_current", "bool", "0+"),
        Field("delta", "bytes", "0+", nullable="0+"),
    ))
