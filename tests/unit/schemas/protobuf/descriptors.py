"""Descriptors as confluent-kafka-python registers them, and compared without what does not matter."""

import base64
from collections.abc import Iterable
from typing import Any

from kaspar.schemas.protobuf import ProtobufSchema


def registered_by_python(schema: ProtobufSchema, name: str = "orders.proto") -> str:
    """The base64 of the descriptor of generated code: with the name of its file, and without derived JSON names."""
    file = schema.files()[-1]
    file.name = name
    _without_json_names(file.message_type)
    return base64.b64encode(file.SerializeToString()).decode()


def without_order_of_fields(schema: ProtobufSchema) -> Any:
    """The schema's own descriptor. A text has oneofs behind the other fields, so their order is not kept. Custom
    options are unknown fields of it, whose bytes may differ; that they are kept is seen in the canonical text."""
    file = schema.files()[-1]
    file.DiscardUnknownFields()
    _sort_fields(file.message_type)
    return file


def _sort_fields(messages: Iterable[Any]) -> None:
    for message in messages:
        fields = sorted(message.field, key=lambda field: field.number)
        del message.field[:]
        message.field.extend(fields)
        _sort_fields(message.nested_type)


def _without_json_names(messages: Iterable[Any]) -> None:
    for message in messages:
        for field in message.field:
            if field.json_name != "other" and field.json_name != "T":
                field.ClearField("json_name")
        _without_json_names(message.nested_type)
