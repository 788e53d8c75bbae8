"""Every event and every reply can be sent to another broker (msgspec)."""

import types
import typing
import uuid
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import IntEnum
from typing import Any

import msgspec
import pytest

from kaspar.base.errors import ErrorCode
from kaspar.controller.events import Event, reply_type

EVENTS = typing.get_args(Event)


def example(kind: Any, *, filled: bool) -> Any:
    """A value of a type: with something in every field, or as empty as it can be."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    supertype = getattr(kind, "__supertype__", None)
    if supertype is not None:
        return example(supertype, filled=filled)
    if origin in (types.UnionType, typing.Union):
        chosen = [each for each in arguments if (each is type(None)) != filled]
        return example(chosen[0], filled=filled)
    if origin is tuple and arguments[-1] is Ellipsis:
        return tuple(example(arguments[0], filled=filled) for _ in range(2 if filled else 0))
    if origin is tuple:
        return tuple(example(each, filled=filled) for each in arguments)
    if origin is Mapping:
        return {example(arguments[0], filled=True): example(arguments[1], filled=filled)} if filled else {}
    if is_dataclass(kind) or hasattr(kind, "_fields") or _is_struct(kind):
        hints = typing.get_type_hints(kind)
        names = [each.name for each in fields(kind)] if is_dataclass(kind) else _field_names(kind)
        return kind(**{name: example(hints[name], filled=filled) for name in names})
    if kind is ErrorCode:
        return ErrorCode.INELIGIBLE_REPLICA if filled else ErrorCode.NONE
    if issubclass(kind, IntEnum):
        return next(iter(kind))
    plain: dict[Any, Any] = {
        bool: filled,
        int: 1 << 40 if filled else -1,
        float: 0.1 if filled else -1.0,
        str: "größe" if filled else "",
        bytes: b"\0\xff" if filled else b"",
        uuid.UUID: uuid.UUID(int=7 if filled else 0),
        type(None): None,
    }
    return plain[kind]


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _field_names(kind: Any) -> tuple[str, ...]:
    names: tuple[str, ...] = kind.__struct_fields__ if _is_struct(kind) else kind._fields
    return names


def test_events_are_plain_data() -> None:
    assert all(_is_struct(each) and each.__struct_config__.frozen for each in EVENTS)


@pytest.mark.parametrize("filled", [True, False])
@pytest.mark.parametrize("event", EVENTS, ids=lambda each: each.__name__)
def test_an_event_and_its_reply_arrive_as_they_were_sent(event: Any, filled: bool) -> None:
    for kind in (event, reply_type(event)):
        value = example(kind, filled=filled)
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(value), type=kind) == value
