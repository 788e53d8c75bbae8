"""Options parsed by a function, and the shared option --partitions."""

from collections.abc import Callable
from enum import Enum
from typing import Final, TypeVar

import click

_MAX_PARTITIONS: Final = 1_000_000
Value = TypeVar("Value")
AnyEnum = TypeVar("AnyEnum", bound=Enum)


class Parsed(click.ParamType[Value]):
    """An option that is parsed by a function. If it raises ValueError, the command ends with its message, as wrong
    usage.
    """

    def __init__(self, name: str, parse: Callable[[str], Value]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: str | Value, param: click.Parameter | None, ctx: click.Context | None) -> Value:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as problem:
            self.fail(str(problem), param, ctx)


class Words(click.Choice[AnyEnum]):
    """A choice of the values of an enum; click itself would use the names of its members."""

    def normalize_choice(self, choice: object, ctx: click.Context | None) -> str:
        return str(choice.value if isinstance(choice, Enum) else choice)


def parse_partitions(text: str) -> tuple[int, ...]:
    """Parse partitions such as '0', '0,2' or '0-3,7'. They are sorted, without duplicates. Raises ValueError with a
    message for users.
    """
    numbers: set[int] = set()
    for part in text.split(","):
        first, dash, last = (each.strip() for each in part.partition("-"))
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"'{text}' is not a list of partitions: use a form such as 0,2 or 0-3")
        if max(int(first), int(last or first)) >= _MAX_PARTITIONS:
            raise ValueError(f"'{text}': no topic has {_MAX_PARTITIONS:,} partitions")
        numbers |= set(range(int(first), int(last or first) + 1))
    return tuple(sorted(numbers))


PARTITIONS: Final = Parsed("partitions", parse_partitions)


def override_option(function: Callable[..., int]) -> Callable[..., int]:
    """The option --override, for commands that run a program with a settings file."""
    return click.option(
        "--override",
        "overrides",
        multiple=True,
        metavar="NAME=VALUE",
        help="A setting that takes precedence over the file; may be repeated.",
    )(function)
