"""Pickling of value classes for Spark's workers.

A class in a module is pickled by name. A class in the program itself (`__main__`), or in a function, is pickled by
value, with everything that is stored in it. Therefore msgspec's cache in a class, which cannot be pickled, is removed;
annotations in text form are resolved to types, because a worker does not have the program's names; and a msgspec Struct
is rejected: it would arrive without its fields.
"""

import sys
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import msgspec

from kaspar.streams.serdes.errors import SerializationError

_MSGSPEC_CACHE = "__msgspec_cache__"


def make_picklable(cls: type) -> None:
    """Make a class and the classes of its fields picklable, after msgspec has inspected them."""
    for each in _classes_in(cls):
        if _MSGSPEC_CACHE in vars(each):
            delattr(each, _MSGSPEC_CACHE)
        if not _is_importable(each):
            _resolve_annotations(each)


def check_picklable(cls: type) -> None:
    """Raises SerializationError if the class, or the class of one of its fields, would arrive without its fields."""
    for each in _classes_in(cls):
        if issubclass(each, msgspec.Struct) and not _is_importable(each):
            raise SerializationError(
                f"The msgspec Struct {each.__qualname__} is defined in the program itself and cannot be pickled for "
                "Spark's workers: move it to a module that the program imports, or make it a dataclass."
            )


def _classes_in(kind: Any, found: dict[type, None] | None = None) -> Iterator[type]:
    """A class and the classes of its fields, recursively."""
    found = {} if found is None else found
    for argument in get_args(kind):
        yield from _classes_in(argument, found)
    if isinstance(kind, type) and kind not in found and hasattr(kind, "__annotations__"):
        found[kind] = None
        yield kind
        for field in get_type_hints(kind, include_extras=True).values():
            yield from _classes_in(field, found)


def _resolve_annotations(cls: type) -> None:
    resolved = get_type_hints(cls, include_extras=True)
    for base in cls.__mro__:
        own = vars(base).get("__annotations__", {})
        if any(isinstance(annotation, str) for annotation in own.values()):
            base.__annotations__ = {name: resolved[name] for name in own}


def _is_importable(cls: type) -> bool:
    """Whether the class is pickled by name, because other processes can import it from a module."""
    if cls.__module__ == "__main__" or cls.__module__ not in sys.modules:
        return False
    found: Any = sys.modules[cls.__module__]
    for name in cls.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is cls
