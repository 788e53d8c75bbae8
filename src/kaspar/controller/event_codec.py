"""Events of the controller and their replies as bytes, for brokers that reach it over the wire.

An event is identified by the name of its class, and its reply has the type that the class declares
(`ControllerEvent[R]`), so a new event needs no change here. Both sides validate what they read against the declared
types.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar, get_args

import msgspec

from kaspar.base.errors import ErrorCode, Refused
from kaspar.controller.events import BrokersSeen, ControllerEvent, Event, FenceBrokers, reply_type

R = TypeVar("R")

_OF_THE_CONTROLLER_ITSELF = (BrokersSeen, FenceBrokers)
"""The controller itself finds out which brokers are up, from the store; other brokers do not send these events."""
_EVENTS: Mapping[str, type[ControllerEvent[Any]]] = MappingProxyType(
    {each.__name__: each for each in get_args(Event) if each not in _OF_THE_CONTROLLER_ITSELF}
)


def encode_event(event: ControllerEvent[Any]) -> tuple[str, bytes]:
    return type(event).__name__, _encode(event)


def decode_event(name: str, encoded: bytes) -> ControllerEvent[Any]:
    """Decode an event. Raises Refused if this release does not know it."""
    kind = _EVENTS.get(name)
    if kind is None:
        raise Refused(ErrorCode.UNSUPPORTED_VERSION, f"Unknown controller event {name}.")
    try:
        event: ControllerEvent[Any] = _decode(encoded, kind)
        return event
    except msgspec.MsgspecError as problem:
        raise Refused(ErrorCode.INVALID_REQUEST, f"{name} cannot be read: {problem}") from None


def encode_reply(reply: object) -> bytes:
    return _encode(reply)


def decode_reply(event: ControllerEvent[R], encoded: bytes) -> R:
    try:
        reply: R = _decode(encoded, reply_type(type(event)))
        return reply
    except msgspec.MsgspecError as problem:
        raise Refused(
            ErrorCode.UNSUPPORTED_VERSION, f"The reply to {type(event).__name__} cannot be read: {problem}"
        ) from None


def _encode(value: object) -> bytes:
    return msgspec.msgpack.encode(value, enc_hook=_as_plain)


def _decode(encoded: bytes, kind: Any) -> Any:
    return msgspec.msgpack.decode(encoded, type=kind, dec_hook=_from_plain)


def _as_plain(value: object) -> object:
    if isinstance(value, Mapping):  # settings may be a read-only view of a dict
        return dict(value)
    raise NotImplementedError(type(value).__name__)


def _from_plain(kind: type, value: object) -> object:
    raise NotImplementedError(kind.__name__)
