"""Compatibility levels: which earlier versions of a subject a new schema is compared with, in which direction, and the
messages that Confluent's registry returns when it is refused (SchemaValidatorBuilder, and the registry's last line).

The comparison itself belongs to the format. Its messages contain `%s` twice, as in Java's formatter: for the side of
the reader and for the side of the writer. Which of them is `new` and which `old` depends on the direction, so they are
filled in here. A percent sign in a name or a path is written `%%`, which `escaped` does.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Final, Self

from kaspar.schemas.schema import ParsedSchema, format_of

# Longer schemas are truncated in the message `{oldSchema: ...}`.
MAX_SCHEMA_IN_MESSAGE: Final = 10 * 1024
DIFFERENT_TYPE: Final = "Incompatible because of different schema type"

_PLACEHOLDER: Final = re.compile(r"%[s%]")


class CompatibilityLevel(Enum):
    """Confluent's names. BACKWARD: the new schema reads old data; FORWARD: the old schema reads new data; FULL: both.
    The transitive levels compare with all earlier versions, the others only with the latest."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @classmethod
    def of(cls, name: str) -> Self | None:
        """The level with this name in any case, like Confluent's `forName`; None if there is none."""
        try:
            return cls(name.upper())
        except ValueError:
            return None

    @property
    def transitive(self) -> bool:
        return self.name.endswith("_TRANSITIVE")

    @property
    def reads_old(self) -> bool:
        """Whether the new schema has to read data of earlier ones."""
        return self.name.startswith(("BACKWARD", "FULL"))

    @property
    def reads_new(self) -> bool:
        """Whether earlier schemas have to read data of the new one."""
        return self.name.startswith(("FORWARD", "FULL"))


@dataclass(frozen=True, slots=True)
class EarlierVersion:
    """A version that the subject already has. `version` is None if messages should not contain it."""

    version: int | None
    schema: ParsedSchema


def check(
    level: CompatibilityLevel,
    new: ParsedSchema,
    earlier: Iterable[EarlierVersion],
    *,
    validate_fields: bool = False,
    field_errors: Sequence[str] = (),
) -> list[str]:
    """The messages that say why `new` is refused; none if it is compatible.

    `earlier` is newest first, and is only consumed as far as the level needs it, so it may parse lazily. The first
    incompatible version ends the check. `validate_fields` and `field_errors` are the setting and the result of the
    registry's check of reserved fields, which is reported in the same list.
    """
    messages = [*field_errors, *_first_incompatible(level, new, earlier)]
    if messages:
        messages.append(f"{{validateFields: '{str(validate_fields).lower()}', compatibility: '{level.value}'}}")
    return messages


def escaped(text: str) -> str:
    """Text of a schema for a message in which `%s` is not filled in yet."""
    return text.replace("%", "%%")


def _first_incompatible(
    level: CompatibilityLevel, new: ParsedSchema, earlier: Iterable[EarlierVersion]
) -> Sequence[str]:
    if level is CompatibilityLevel.NONE:
        return ()
    for old in islice(earlier, None if level.transitive else 1):
        if messages := _compare(level, new, old):
            return messages
    return ()


def _compare(level: CompatibilityLevel, new: ParsedSchema, old: EarlierVersion) -> list[str]:
    if new.type is not old.schema.type:
        return [DIFFERENT_TYPE]
    incompatibilities = format_of(new.type).incompatibilities
    messages: list[str] = []
    if level.reads_new:
        messages += _filled_in(incompatibilities(old.schema, new), reader="old", writer="new")
    old_is_described = bool(messages) and not level.reads_old
    if level.reads_old and (unreadable := incompatibilities(new, old.schema)):
        messages += _filled_in(unreadable, reader="new", writer="old")
        old_is_described = True
    # Confluent's FULL only describes the old schema if the new one cannot read its data.
    return messages + _description(old) if old_is_described else messages


def _filled_in(messages: Iterable[str], *, reader: str, writer: str) -> list[str]:
    return [_fill_in(message, reader, writer) for message in messages]


def _fill_in(message: str, *sides: str) -> str:
    remaining = iter(sides)
    return _PLACEHOLDER.sub(lambda found: "%" if found[0] == "%%" else next(remaining, ""), message)


def _description(old: EarlierVersion) -> list[str]:
    text = old.schema.canonical
    if len(text) > MAX_SCHEMA_IN_MESSAGE:
        described = f"{{oldSchema: <truncated> '{text[:MAX_SCHEMA_IN_MESSAGE]}...'}}"
    else:
        described = f"{{oldSchema: '{text}'}}"
    version = [f"{{oldSchemaVersion: {old.version}}}"] if old.version is not None else []
    return [*version, described]
