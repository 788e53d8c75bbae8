"""Parses property values of Java's clients. Error messages are those of Kafka's ConfigDef."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kaspar.base.errors import InvalidSetting
from kaspar.tools.java_numbers import parse_long

_BITS: Final = {"SHORT": 15, "INT": 31, "LONG": 63}


@dataclass(frozen=True, slots=True)
class Number:
    """An integer. `at_least` and `at_most` are Java's bounds."""

    type: str = "INT"
    at_least: int | None = None
    at_most: int | None = None

    def parse(self, name: str, text: str) -> int:
        try:
            value = parse_long(text.strip())
        except ValueError:
            value = 1 << 64
        if not -(1 << _BITS[self.type]) <= value < 1 << _BITS[self.type]:
            raise invalid(name, text, f"Not a number of type {self.type}")
        if self.at_least is not None and value < self.at_least:
            raise invalid(name, text, f"Value must be at least {self.at_least}")
        if self.at_most is not None and value > self.at_most:
            raise invalid(name, text, f"Value must be no more than {self.at_most}")
        return value


def boolean(name: str, text: str) -> bool:
    match text.strip().lower():
        case "true":
            return True
        case "false":
            return False
    raise invalid(name, text, "Expected value to be either true or false")


def choice(name: str, text: str, choices: Sequence[str], *, any_case: bool = False) -> str:
    value = text.strip()
    if any_case and value.upper() in choices:
        return value.upper()
    if value in choices:
        return value
    hint = " (case insensitive)" if any_case else ""
    raise invalid(name, text, f"String must be one of{hint}: {', '.join(choices)}")


def invalid(name: str, value: str, reason: str) -> InvalidSetting:
    return InvalidSetting(f"Invalid value {value} for configuration {name}: {reason}")


def listed(properties: Mapping[str, str], name: str) -> list[str]:
    """The elements of a list, which is empty if the property is not set."""
    return [each.strip() for each in properties.get(name, "").split(",") if each.strip()]
