"""A JSON Schema as the registry keeps it: its texts, its name, and the graph for comparison and validation."""

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
    """Immutable; `normalized` is computed on first use."""

    document: Json
    root: Schema
    canonical: str
    """Written as by Jackson: compact, with the keys in their original order."""

    @property
    def type(self) -> SchemaType:
        return SchemaType.JSON

    @cached_property
    def normalized(self) -> str:
        """The canonical text with the keys of all objects sorted."""
        return write_json(self.document, sort_keys=True)

    @property
    def name(self) -> str | None:
        return self.root.annotations.title

    def formatted(self, form: str) -> str:
        """Return the canonical text: Confluent's registry has no other form of JSON Schema."""
        return self.canonical


def parse(text: str, references: Mapping[str, str]) -> JsonSchema:
    document = read_json(text)
    if not isinstance(document, dict | bool):
        raise InvalidSchema("A JSON Schema is an object or a boolean")
    documents = Documents(document, references)
    return JsonSchema(document=document, root=load(documents), canonical=write_json(document))
