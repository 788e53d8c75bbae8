"""Options whose text is parsed by a function."""

from collections.abc import Callable
from enum import Enum
from typing import TypeVar

import click

Value = TypeVar("Value")
AnyEnum = TypeVar("AnyEnum", bound=Enum)


class Parsed(click.ParamType[Value]):
    """The function raises ValueError with a sentence, which then ends the command as wrong usage."""

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
    """The values of an enum; click itself takes the names of its members."""

    def normalize_choice(self, choice: object, ctx: click.Context | None) -> str:
        return str(choice.value if isinstance(choice, Enum) else choice)
