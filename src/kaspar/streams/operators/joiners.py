"""Joiners: the functions of a program that combine two values."""

from collections.abc import Callable
from typing import Any, TypeAlias

KeyedJoiner: TypeAlias = Callable[[Any, Any, Any], Any]
"""Takes the key and the two values, returns the joined value."""


def keyed(joiner: Callable[..., Any], *, with_key: bool, swapped: bool = False) -> KeyedJoiner:
    """A joiner that takes the key, even if the program's function does not. `swapped`: the result takes the other
    side's value last, although the program's function takes it first."""
    if with_key:
        return (lambda key, value, other: joiner(key, other, value)) if swapped else joiner
    if swapped:
        return lambda key, value, other: joiner(other, value)
    return lambda key, value, other: joiner(value, other)
