"""The functions of a program that make one value of two."""

from collections.abc import Callable
from typing import Any, TypeAlias

KeyedJoiner: TypeAlias = Callable[[Any, Any, Any], Any]
"""The joined value, from the key and the two values."""


def keyed(joiner: Callable[..., Any], *, with_key: bool, swapped: bool = False) -> KeyedJoiner:
    """A joiner that is given the key, whether the program's one takes it or not. `swapped`: it is given the other
    side's value last, but the program's function takes it first."""
    if with_key:
        return (lambda key, value, other: joiner(key, other, value)) if swapped else joiner
    if swapped:
        return lambda key, value, other: joiner(other, value)
    return lambda key, value, other: joiner(value, other)
