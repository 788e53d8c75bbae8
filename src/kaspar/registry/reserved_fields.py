"""Reserved fields: names that the metadata of a schema keeps free, checked where the config has `validateFields`."""

import base64
import json
from collections.abc import Iterator
from typing import Final

from kaspar.registry.entities import Metadata
from kaspar.schemas import ParsedSchema, SchemaType

RESERVED: Final = "confluent:reserved"
"""The property of the metadata: names with commas between them."""


def reserved_field_errors(schema: ParsedSchema, metadata: Metadata | None, previous: Metadata | None) -> list[str]:
    """In Confluent's words."""
    reserved = _reserved(metadata)
    removed = [name for name in _reserved(previous) if name not in reserved]
    fields = set(_top_level_fields(schema)) if reserved else set()
    return [
        *(
            f"The new schema has reserved field {name} removed from its metadata which is present in the old schema's "
            "metadata."
            for name in removed
        ),
        *(
            f"The new schema has field that conflicts with the reserved field {name}."
            for name in reserved
            if name in fields
        ),
    ]


def _reserved(metadata: Metadata | None) -> list[str]:
    names = ((metadata.properties if metadata is not None else None) or {}).get(RESERVED, "")
    return list(dict.fromkeys(name for each in names.split(",") if (name := each.strip())))


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
    """Of the first message, which is the one that a record has unless it says otherwise."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    file = FileDescriptorProto.FromString(base64.b64decode(schema.formatted("serialized")))
    for message in file.message_type[:1]:
        yield from (field.name for field in message.field)
