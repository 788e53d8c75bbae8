"""The schema of a message on the wire: one table per class, in the terms of Kafka's message definitions.

A message class has the fields of every version. Its SCHEMA says which version has which field: a field that a version
lacks has its default when read, and is left out when written. Versions are written as in Kafka: "3+", "0-7", "5", or ""
for none.
"""

from typing import ClassVar, NamedTuple

NO_TAG = -1
LAST_VERSION = 32767


class VersionRange(NamedTuple):
    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> "VersionRange":
        if not text:
            return cls(0, -1)
        if text.endswith("+"):
            return cls(int(text[:-1]), LAST_VERSION)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last


class Field(NamedTuple):
    name: str
    type: str
    """Kafka's name of the type: int32, string, records, the name of a class of the same module; []type for an array."""
    versions: str
    nullable: str = ""
    tag: int = NO_TAG


class Schema(NamedTuple):
    versions: str
    flexible: str
    """The versions with compact lengths and tagged fields."""
    fields: tuple[Field, ...]
    api_key: int = -1


class Message:
    """The base class of every message and of every struct inside one."""

    __slots__ = ()
    SCHEMA: ClassVar[Schema]
