"""Work on the texts of schemas: a task and its outcome are plain values, so that a task can be done on the event loop,
in a thread, or in another process (schema_process.py).
"""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

import msgspec

from kaspar.base.bounded_cache import BoundedCache
from kaspar.registry.entities import SchemaEntity, SchemaTags
from kaspar.schemas import Entity, InvalidSchema, ParsedSchema, SchemaType, format_of
from kaspar.schemas.levels import CompatibilityLevel, EarlierVersion, check

_MAX_CACHED: Final = 1_000
_MAX_CACHED_CHARACTERS: Final = 4 * 1024 * 1024
"""The limit is low because a parsed schema takes a hundred times the memory of its text."""


@dataclass(frozen=True, slots=True)
class Source:
    """Everything that parsing a schema needs. `references` are pairs of name and text."""

    type: SchemaType
    text: str
    references: tuple[tuple[str, str], ...] = ()

    @property
    def characters(self) -> int:
        return len(self.text) + sum(len(text) for _, text in self.references)


class Question(Enum):
    CANONICAL = "canonical"
    NORMALIZED = "normalized"
    FORMATTED = "formatted"
    FIELDS = "fields"
    """The names of the top-level fields."""
    INCOMPATIBILITIES = "incompatibilities"
    TAGS = "tags"
    """The tags in the schema's text: a list of SchemaTags in JSON."""
    TAGGED = "tagged"
    """The canonical text with changed tags."""


@dataclass(frozen=True, slots=True)
class Task:
    question: Question
    schema: Source
    form: str = ""
    """For FORMATTED: the form."""
    level: CompatibilityLevel = CompatibilityLevel.NONE
    earlier: tuple[tuple[int, Source], ...] = ()
    """For INCOMPATIBILITIES: versions and their schemas, newest first."""
    validate_fields: bool = False
    field_errors: tuple[str, ...] = ()
    tags_to_add: tuple[SchemaTags, ...] = ()
    """For TAGGED."""
    tags_to_remove: tuple[SchemaTags, ...] = ()
    """For TAGGED."""

    @property
    def characters(self) -> int:
        return self.schema.characters + sum(source.characters for _, source in self.earlier)

    @property
    def types(self) -> set[SchemaType]:
        return {self.schema.type, *(source.type for _, source in self.earlier)}


@dataclass(frozen=True, slots=True)
class Refusal:
    """The error for a text that is not a schema."""

    type: SchemaType
    reason: str


class Unparseable(Exception):
    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal


class SchemaWork:
    """Caches recently parsed schemas. Thread-safe."""

    def __init__(self) -> None:
        self._cache: BoundedCache[Source, ParsedSchema] = BoundedCache(
            _MAX_CACHED, max_weight=_MAX_CACHED_CHARACTERS, weight_of=lambda source, schema: source.characters
        )

    def do(self, task: Task) -> tuple[str, ...]:
        """Raises Unparseable."""
        schema = self.parsed(task.schema)
        match task.question:
            case Question.CANONICAL:
                return (schema.canonical,)
            case Question.NORMALIZED:
                return (schema.normalized,)
            case Question.FORMATTED:
                return (schema.formatted(task.form),)
            case Question.FIELDS:
                return tuple(_top_level_fields(schema))
            case Question.INCOMPATIBILITIES:
                earlier = (EarlierVersion(version, self.parsed(source)) for version, source in task.earlier)
                return tuple(
                    check(
                        task.level,
                        schema,
                        earlier,
                        validate_fields=task.validate_fields,
                        field_errors=task.field_errors,
                    )
                )
            case Question.TAGS:
                return (msgspec.json.encode(_tags(schema)).decode(),)
            case Question.TAGGED:
                return (_tagged(schema, task.tags_to_add, task.tags_to_remove),)

    def parsed(self, source: Source) -> ParsedSchema:
        known = self._cache.get(source)
        if known is not None:
            return known
        try:
            schema = format_of(source.type).parse(source.text, dict(source.references))
        except InvalidSchema as problem:
            raise Unparseable(Refusal(source.type, str(problem))) from None
        self._cache.put(source, schema)
        return schema


def _tags(schema: ParsedSchema) -> list[SchemaTags]:
    if schema.type is not SchemaType.AVRO:
        return []
    from kaspar.schemas.avro.tags import tags_of

    found = tags_of(schema.canonical)
    return [SchemaTags(SchemaEntity(entity.path, entity.type), tags) for entity, tags in found.items()]


def _tagged(schema: ParsedSchema, added: tuple[SchemaTags, ...], removed: tuple[SchemaTags, ...]) -> str:
    from kaspar.schemas.avro.tags import with_tags

    try:
        if schema.type is not SchemaType.AVRO:
            raise InvalidSchema("Only schemas of Avro can have tags inside; use metadata.tags")
        return with_tags(schema.canonical, _by_entity(added), _by_entity(removed))
    except InvalidSchema as problem:
        raise Unparseable(Refusal(schema.type, str(problem))) from None


def _by_entity(tags: tuple[SchemaTags, ...]) -> dict[Entity, list[str]]:
    found: dict[Entity, list[str]] = {}
    for each in tags:
        entity = Entity(each.schema_entity.entity_path, each.schema_entity.entity_type)
        found.setdefault(entity, []).extend(each.tags)
    return found


def _top_level_fields(schema: ParsedSchema) -> Iterator[str]:
    if schema.type is SchemaType.PROTOBUF:
        yield from _protobuf_fields(schema)
        return
    document = json.loads(schema.canonical)
    if not isinstance(document, dict):
        return
    if schema.type is SchemaType.JSON:
        yield from document.get("properties", {})
    elif document.get("type") == "record":
        yield from (field["name"] for field in document["fields"])


def _protobuf_fields(schema: ParsedSchema) -> Iterator[str]:
    """The fields of every top-level message, since a record may be any of them."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    file = FileDescriptorProto.FromString(base64.b64decode(schema.formatted("serialized")))
    for message in file.message_type:
        yield from (field.name for field in message.field)
