"""A JSON Schema as the registry keeps it: its texts, its name, and the graph that rules and values are checked with."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from kaspar.schemas.json_schema.documents import Documents
from kaspar.schemas.json_schema.loading import load
from kaspar.schemas.json_schema.nodes import Schema
from kaspar.schemas.json_schema.text import Json, read_json, write_json
from kaspar.schemas.schema import InvalidSchema, SchemaType


@dataclass(frozen=True, eq=False)
class JsonSchema:
    """Immutable; `normalized` is computed at its first use."""

    document: Json
    root: Schema
    canonical: str
    """As Jackson writes it: compact, with the keys as they were given."""

    @property
    def type(self) -> SchemaType:
        return SchemaType.JSON

    @cached_property
    def normalized(self) -> str:
        """With the keys of all objects sorted."""
        return write_json(self.document, sort_keys=True)

    @property
    def name(self) -> str | None:
        return self.root.annotations.title

    def formatted(self, form: str) -> str:
        """Confluent's registry knows no other form of JSON Schema."""
        return self.canonical


def parse(text: str, references: Mapping[str, str]) -> JsonSchema:
    document = read_json(text)
    if not isinstance(document, dict | bool):
        raise InvalidSchema("A JSON Schema is an object or a boolean")
    documents = Documents(document, references)
    return JsonSchema(document=document, root=load(documents), canonical=write_json(document))
