"""Bounds and valid values of settings. A check words the problem as Kafka does, and has a description for the docs."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class Check(Generic[T]):
    """`problem` returns None for a valid value. `culprit` returns the part of a value that is invalid, if not all
    is.
    """

    problem: Callable[[T], str | None]
    description: str
    culprit: Callable[[T], str] | None = None


def at_least(lowest: Number) -> Check[Number]:
    def problem(value: Number) -> str | None:
        return f"Value must be at least {_short(lowest)}" if value < lowest else None

    return Check(problem, f"{_short(lowest)} or more")


def between(lowest: Number, highest: Number) -> Check[Number]:
    def problem(value: Number) -> str | None:
        if value < lowest:
            return f"Value must be at least {_short(lowest)}"
        return f"Value must be no more than {_short(highest)}" if value > highest else None

    return Check(problem, f"from {_short(lowest)} to {_short(highest)}")


def _short(bound: float) -> str:
    """Format a bound as Kafka does, which writes the bounds of a ratio as 0 and 1."""
    return str(int(bound)) if bound == int(bound) else str(bound)


def between_or(lowest: int, highest: int, also: int) -> Check[int]:
    def problem(value: int) -> str | None:
        if lowest <= value <= highest or value == also:
            return None
        return f"Value must be between {lowest} and {highest} or equal to {also}"

    return Check(problem, f"from {lowest} to {highest}, or {also}")


def one_of(*valid: str) -> Check[str]:
    def problem(value: str) -> str | None:
        return None if value in valid else f"String must be one of: {', '.join(valid)}"

    return Check(problem, ", ".join(f"`{value}`" for value in valid))


def one_of_in_any_case(*valid: str) -> Check[str]:
    upper = tuple(value.upper() for value in valid)

    def problem(value: str) -> str | None:
        return None if value.upper() in upper else f"String must be one of (case insensitive): {', '.join(upper)}"

    return Check(problem, ", ".join(f"`{value}`" for value in valid) + ", in any case")


def list_of(*valid: str) -> Check[tuple[str, ...]]:
    def invalid(values: tuple[str, ...]) -> list[str]:
        return [value for value in values if value not in valid]

    def problem(values: tuple[str, ...]) -> str | None:
        return f"String must be one of: {', '.join(valid)}" if invalid(values) else None

    return Check(problem, "any of " + ", ".join(f"`{value}`" for value in valid), lambda values: invalid(values)[0])


_REPLICA = re.compile(r"[0-9]+:[0-9]+")


def throttled_replicas(name: str) -> Check[tuple[str, ...]]:
    form = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."

    def problem(values: tuple[str, ...]) -> str | None:
        if values in ((), ("*",), ("none",)) or all(_REPLICA.fullmatch(value) for value in values):
            return None
        return f"{name} must be the literal '*' or a list of replicas in the following format: {form}"

    return Check(problem, f"`*` or {form}", lambda values: f"[{', '.join(values)}]")
