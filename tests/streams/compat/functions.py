"""The functions that the topologies apply. Each has its equal of the same name in java/Functions.java."""

from typing import Any


def text(value: Any) -> str:
    """None has a text of its own, so that a function can show that it saw one."""
    return "-" if value is None else str(value)


def optional(value: Any) -> str | None:
    """The text of a value, and None for None."""
    return None if value is None else str(value)


def plus(left: Any, right: Any) -> str:
    return f"{text(left)}+{text(right)}"


def first(value: str | None) -> str:
    return value[0] if value else "-"


def is_long(value: str | None) -> bool:
    return len(text(value)) > 1


def upper(value: str | None) -> str | None:
    return None if value is None else value.upper()


def letters(value: str | None) -> list[str]:
    return list(text(value))


def appended(aggregate: str | None, value: str | None) -> str | None:
    """An aggregate: its values in order. The value "x" deletes it, as an aggregator may by returning None."""
    return None if value == "x" else text(aggregate) + text(value)


def removed(aggregate: str | None, value: str | None) -> str:
    """A subtractor for `plus`: the aggregate and a mark, so that the order of the calls shows."""
    return f"{text(aggregate)}({text(value)})"


def reference(value: str | None) -> str | None:
    """A foreign key: the first letter of the value; a value of one letter has none."""
    return first(value) if is_long(value) else None
