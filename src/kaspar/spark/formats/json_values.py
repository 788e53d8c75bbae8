"""Columns as JSON values, for schemas whose values have a JSON form: JSON Schema and Protobuf.

Null fields are omitted, as in Spark's to_json. Bytes are base64, times ISO 8601 in UTC, and decimals numbers.
"""

import base64
import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

Convert = Callable[[Any], Any]


def json_values(column: pa.Array) -> list[Any]:
    convert = _converter(column.type)
    return [None if value is None else convert(value) for value in column.to_pylist(maps_as_pydicts="lossy")]


def _converter(arrow_type: pa.DataType) -> Convert:
    if pa.types.is_struct(arrow_type):
        return _struct([(field.name, _converter(field.type)) for field in arrow_type])
    if pa.types.is_map(arrow_type):
        convert_value = _or_null(_converter(arrow_type.item_type))
        return lambda entries: {str(key): convert_value(value) for key, value in entries.items()}
    if pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type):
        convert_item = _or_null(_converter(arrow_type.value_type))
        return lambda items: [convert_item(item) for item in items]
    if pa.types.is_timestamp(arrow_type):
        return _moment
    if pa.types.is_date(arrow_type):
        return datetime.date.isoformat
    if pa.types.is_decimal(arrow_type):
        return _number
    if pa.types.is_binary(arrow_type) or pa.types.is_large_binary(arrow_type):
        return lambda data: base64.b64encode(data).decode()
    return lambda value: value


def _struct(fields: list[tuple[str, Convert]]) -> Convert:
    def convert(value: dict[str, Any]) -> dict[str, Any]:
        return {name: convert_field(value[name]) for name, convert_field in fields if value[name] is not None}

    return convert


def _or_null(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _moment(value: datetime.datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat()
    return value.astimezone(datetime.UTC).isoformat().replace("+00:00", "Z")


def _number(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)
