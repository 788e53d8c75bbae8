"""The schema with which keys or values are written: it comes from the properties, and is registered under the topic's
subject.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kaspar.schemas.schema import InvalidSchema, Reference, SchemaType, format_of
from kaspar.serialization import subject_names
from kaspar.serialization.errors import RegistryError, SerializationError
from kaspar.serialization.records import RecordWriter, record_writer
from kaspar.serialization.registry_client import RegisteredSchema, RegistryClient, SchemaText
from kaspar.tools.command_line import CommandFailed
from kaspar.tools.java_numbers import parse_int
from kaspar.tools.schema_records.formats import SchemaFormat


def chosen_schema(
    registry: RegistryClient, schema_format: SchemaFormat, part: str, properties: Mapping[str, str]
) -> SchemaText:
    """The schema of `value.schema.id`, `value.schema` or `value.schema.file`; `part` is key or value. Raises
    CommandFailed.
    """
    if (text := properties.get(f"{part}.schema.id")) is not None:
        return _schema_by_id(registry, f"{part}.schema.id", text)
    return SchemaText(
        SchemaType(schema_format.type),
        _text(part, properties),
        _references(f"{part}.refs", properties),
        _json(f"{part}.metadata", properties),
        _json(f"{part}.rule.set", properties),
    )


def writer_of(
    registry: RegistryClient, schema: SchemaText, topic: str, part: str, properties: Mapping[str, str]
) -> RecordWriter:
    """Determine the schema's id like Confluent's serializers: by default the schema is registered. If auto.register is
    false, it must already be registered, or the latest version is used. Raises CommandFailed."""
    is_key = part == "key"
    strategy = subject_names.strategy(properties.get(f"{part}.subject.name.strategy", subject_names.DEFAULT))
    message = properties.get(f"{part}.schema.full.name", "").strip() or None
    try:
        name = message or _name_of(registry, schema)
        subject = strategy(topic, is_key, name)
        return record_writer(_registered(registry, schema, subject, properties), message)
    except (InvalidSchema, RegistryError, SerializationError) as problem:
        raise CommandFailed(f"The schema of the {part} cannot be used: {problem}") from problem


def _registered(
    registry: RegistryClient, schema: SchemaText, subject: str, properties: Mapping[str, str]
) -> RegisteredSchema:
    def is_set(name: str, default: str) -> bool:
        return properties.get(name, default).strip().lower() == "true"

    normalize = is_set("normalize.schemas", "false")
    if is_set("auto.register", properties.get("auto.register.schemas", "true")):
        return registry.register(subject, schema, normalize=normalize)
    if is_set("use.latest.version", "false"):
        return registry.latest(subject)
    return registry.lookup(subject, schema, normalize=normalize)


def _name_of(registry: RegistryClient, schema: SchemaText) -> str | None:
    return format_of(schema.type).parse(schema.text, registry.with_references(schema)).name


def _schema_by_id(registry: RegistryClient, name: str, text: str) -> SchemaText:
    try:
        schema_id = parse_int(text)
    except ValueError:
        raise CommandFailed(f"Error parsing {name} as int") from None
    try:
        return registry.schema_by_id(schema_id).schema
    except RegistryError as problem:
        raise CommandFailed(f"Error retrieving schema for id {schema_id}: {problem}") from problem


def _text(part: str, properties: Mapping[str, str]) -> str:
    name = f"{part}.schema"
    if name in properties:
        return properties[name]
    file = properties.get(f"{name}.file")
    if file is None:
        raise CommandFailed(f"Must provide the {part} schema in either {name}, {name}.id, or {name}.file")
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise CommandFailed(f"Error reading schema from {file}: {problem}") from problem


def _references(name: str, properties: Mapping[str, str]) -> tuple[Reference, ...]:
    """[{"name": ..., "subject": ..., "version": ...}]"""
    text = properties.get(name)
    if text is None:
        return ()
    try:
        return tuple(
            Reference(str(each["name"]), str(each["subject"]), int(each["version"])) for each in json.loads(text)
        )
    except (ValueError, TypeError, KeyError):
        raise CommandFailed(
            f'{name} must be a list of references: [{{"name": "...", "subject": "...", "version": 1}}]'
        ) from None


def _json(name: str, properties: Mapping[str, str]) -> str:
    text = properties.get(name, "")
    if not text:
        return ""
    try:
        found: Any = json.loads(text)
    except ValueError as problem:
        raise CommandFailed(f"{name} is not JSON: {problem}") from None
    return json.dumps(found)
