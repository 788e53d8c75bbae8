"""What the three formats have in common: the interface of a parsed schema."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol, cast

from kaspar.base.errors import KasparError


class SchemaType(Enum):
    """Confluent's names."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


class InvalidSchema(KasparError):
    """The text is not a valid schema of its format, or refers to something that was not given with it."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A schema that another one uses. `name` is how its text refers to it (a full name of Avro, a `$ref` of JSON
    Schema, an import of Protobuf)."""

    name: str
    subject: str
    version: int


class EntityType(Enum):
    """Confluent's names."""

    RECORD = "SR_RECORD"
    FIELD = "SR_FIELD"


@dataclass(frozen=True, slots=True)
class Entity:
    """A part of a schema that may have tags."""

    path: str
    type: EntityType


class ParsedSchema(Protocol):
    """A valid schema. Immutable, so that it can be cached and shared."""

    @property
    def type(self) -> SchemaType: ...

    @property
    def canonical(self) -> str:
        """The text that is stored. Texts that differ only in white space and the like have the same one, like
        Confluent's `ParsedSchema.canonicalString`, and so get one id."""

    @property
    def normalized(self) -> str:
        """The canonical text after Confluent's `normalize`: texts that differ only in the order of independent parts
        have the same one."""

    @property
    def name(self) -> str | None:
        """The full name of the record or message, or the title: RecordNameStrategy uses it as the subject."""

    def formatted(self, form: str) -> str:
        """The text in another form (the API's parameter `format`: for instance `resolved` of Avro and JSON,
        `serialized` and `ignore_extensions` of Protobuf). An unknown or empty form gives the canonical text, as in
        Confluent's registry."""


class Format(Protocol):
    """One of the three formats."""

    def parse(self, text: str, references: Mapping[str, str]) -> ParsedSchema:
        """Parse a schema. `references` has the texts of everything that it refers to, directly or not, by the names
        used in the texts; dependencies come first. Raises InvalidSchema."""

    def incompatibilities(self, reader: ParsedSchema, writer: ParsedSchema) -> Sequence[str]:
        """Why a program with the schema `reader` cannot read all data written with `writer`, in Confluent's words;
        empty if it can. Both are of this format."""


_MODULES: Final = {
    SchemaType.AVRO: "kaspar.schemas.avro",
    SchemaType.JSON: "kaspar.schemas.json_schema",
    SchemaType.PROTOBUF: "kaspar.schemas.protobuf",
}


def format_of(schema_type: SchemaType) -> Format:
    """The format's module, which is loaded on first use, because each needs its own library."""
    return cast(Format, importlib.import_module(_MODULES[schema_type]))
