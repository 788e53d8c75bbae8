"""The document of a schema together with those that it refers to, and how a `$ref` in one of them is resolved.

Nothing is fetched: a `$ref` resolves to a document that was given with the schema, to a meta-schema, or not at all.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urljoin

from jsonschema_specifications import REGISTRY as META_SCHEMAS
from referencing import Registry, Resource, Specification
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT4, DRAFT6, DRAFT7, DRAFT201909, DRAFT202012

from kaspar.schemas.json_schema.drafts import Draft, draft_of
from kaspar.schemas.json_schema.text import Json, read_json
from kaspar.schemas.schema import InvalidSchema

_SPECIFICATIONS: Final[Mapping[Draft, Specification[Any]]] = {
    Draft.DRAFT_4: DRAFT4,
    Draft.DRAFT_6: DRAFT6,
    Draft.DRAFT_7: DRAFT7,
    Draft.DRAFT_2019_09: DRAFT201909,
    Draft.DRAFT_2020_12: DRAFT202012,
}
# What `referencing` and urllib raise for malformed identifiers and pointers.
_MALFORMED: Final = (AttributeError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Subschema:
    """A schema within a document."""

    contents: Json
    resolver: Any  # referencing's Resolver, which has no public name


class Documents:
    def __init__(self, root: Json, references: Mapping[str, str]) -> None:
        self.draft: Final = draft_of(root)
        self._specification: Final = _SPECIFICATIONS[self.draft]
        resource = self._resource(root)
        try:
            base = resource.id() or ""
            self._names = {name: urljoin(base, name) for name in references}
        except _MALFORMED:
            raise InvalidSchema(f"{self.draft.id_keyword} and the names of references must be URIs") from None
        registry: Registry[Any] = META_SCHEMAS.with_resource(base, resource)
        for name, text in references.items():
            document = self._referenced(name, text)
            registry = registry.with_resources((uri, document) for uri in {name, self._names[name]})
        self._registry = _crawled(registry)
        self.root: Final = Subschema(resource.contents, self._registry.resolver(base))

    def _resource(self, document: Json) -> Resource[Any]:
        draft = draft_of(document, default=self.draft)
        return _SPECIFICATIONS[draft].create_resource(_with_defs(document))

    def _referenced(self, name: str, text: str) -> Resource[Any]:
        try:
            return self._resource(read_json(text))
        except InvalidSchema as error:
            raise InvalidSchema(f"The reference {name}: {error}") from None

    def enter(self, contents: Json, within: Subschema) -> Subschema:
        """A schema nested in another one. Its `$id` is the base of the references in it."""
        if not isinstance(contents, dict) or self.draft.id_keyword not in contents:
            return Subschema(contents, within.resolver)
        try:
            resolver = within.resolver.in_subresource(self._specification.create_resource(contents))
        except _MALFORMED:
            raise InvalidSchema(f"{self.draft.id_keyword} must be a URI") from None
        return Subschema(contents, resolver)

    def follow(self, ref: str, within: Subschema) -> Subschema:
        try:
            resolved = self._lookup(ref, within)
        except (Unresolvable, *_MALFORMED):
            raise InvalidSchema(f"The $ref {ref!r} is neither in the schema nor among its references") from None
        return Subschema(resolved.contents, resolved.resolver)

    def _lookup(self, ref: str, within: Subschema) -> Any:
        try:
            return within.resolver.lookup(ref)
        except Unresolvable:
            # Without an identifier, the document has no URI to resolve against, so its references may be plain names.
            document, _, fragment = ref.partition("#")
            name = document if document in self._names else document.removeprefix("./")
            if name not in self._names:
                raise
            return self._registry.resolver(self._names[name]).lookup(f"#{fragment}")


def _crawled(registry: Registry[Any]) -> Registry[Any]:
    """The registry with the identifiers and anchors of all subschemas. A malformed one is reported by its reader."""
    try:
        return registry.crawl()
    except _MALFORMED:
        return registry


def _with_defs(document: Json) -> Json:
    """Make `#/$defs/X` also find what is in `definitions`, as in Confluent's registry (JsonSchema.mergeDefBuckets)."""
    if not isinstance(document, dict):
        return document
    definitions, defs = document.get("definitions"), document.get("$defs", {})
    if not isinstance(definitions, dict) or not isinstance(defs, dict) or not definitions:
        return document
    return {**document, "$defs": {**definitions, **defs}}
