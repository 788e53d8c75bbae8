"""Builds the graph of nodes of a document, following its references.

Subschemas are kept in a queue instead of on the stack, so that depth costs nothing; their number is bounded. A
subschema with several references to it is loaded once. Definitions without a reference to them are not loaded, and so
not checked, as in Confluent's loader.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

from kaspar.schemas.json_schema.documents import Documents, Subschema
from kaspar.schemas.json_schema.keywords import Keywords
from kaspar.schemas.json_schema.nodes import AnySchema, FalseSchema, Link, ReferenceSchema, Schema, filled
from kaspar.schemas.json_schema.schema_object import SchemaObject
from kaspar.schemas.json_schema.text import Json
from kaspar.schemas.schema import InvalidSchema

MAX_SUBSCHEMAS: Final = 20_000


def load(documents: Documents) -> Schema:
    """Load all nodes and return the root. Raises InvalidSchema."""
    loader = _Loader(documents)
    root = loader.link(documents.root, "#")
    loader.run()
    loader.check_references()
    return root.schema


class _Loader:
    def __init__(self, documents: Documents) -> None:
        self.documents: Final = documents
        self._links: dict[int, Link] = {}
        """Links by the identity of the contents, which the documents keep alive."""
        self._waiting: deque[tuple[Link, Subschema, str]] = deque()
        self._references: list[Link] = []

    def link(self, subschema: Subschema, path: str) -> Link:
        if isinstance(subschema.contents, bool):
            return filled(AnySchema() if subschema.contents else FalseSchema())
        link = self._links.get(id(subschema.contents))
        if link is None:
            if len(self._links) >= MAX_SUBSCHEMAS:
                raise InvalidSchema(f"The schema has more than {MAX_SUBSCHEMAS} subschemas")
            link = self._links[id(subschema.contents)] = Link()
            self._waiting.append((link, subschema, path))
        return link

    def reference(self, ref: str, within: Subschema) -> Link:
        link = self.link(self.documents.follow(ref, within), ref)
        self._references.append(link)
        return link

    def run(self) -> None:
        while self._waiting:
            link, subschema, path = self._waiting.popleft()
            if not isinstance(subschema.contents, dict):
                raise InvalidSchema(f"{path} must be an object or a boolean")
            keywords = Keywords(subschema.contents, path, self.documents.draft)
            link.fill(SchemaObject(keywords, _Links(self, subschema, path)).node())

    def check_references(self) -> None:
        """Refuse a reference that leads back to itself through nothing but references: it has no meaning."""
        sound: set[Schema] = set()
        for link in self._references:
            chain: set[Schema] = set()
            schema = link.schema
            while isinstance(schema, ReferenceSchema) and schema not in sound:
                if schema in chain:
                    raise InvalidSchema("The schema has a $ref that leads back to itself")
                chain.add(schema)
                schema = schema.target.schema
            sound |= chain


@dataclass(frozen=True, slots=True)
class _Links:
    """What a schema object refers to or contains."""

    loader: _Loader
    within: Subschema
    path: str

    def contained(self, contents: Json, name: str) -> Link:
        return self.loader.link(self.loader.documents.enter(contents, self.within), f"{self.path}/{name}")

    def referred(self, ref: str) -> Link:
        return self.loader.reference(ref, self.within)
