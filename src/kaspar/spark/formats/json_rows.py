"""Decodes one JSON record by a given schema: the reference for what is valid and what it means.

The rules are those of Spark's from_json: a missing field is null, a field that is not in the schema is ignored, the
last of two equal names wins, a string is not a number (except NaN and the infinities), decimals are rounded half up,
and a string column takes any value as its JSON text. Unlike from_json: a record is one whole document in strict JSON;
numbers in a string column stay as written; a time without a zone is in UTC, and one without a date is invalid.
"""

import base64
import binascii
import json
import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import partial
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from kaspar.spark.formats.times import days_of, micros_of, micros_without_zone
from kaspar.spark.kafka_settings import InvalidOption

Convert = Callable[[Any], Any]

_BITS = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}
_INFINITE = {
    "NaN": math.nan,
    "Infinity": math.inf,
    "+Infinity": math.inf,
    "-Infinity": -math.inf,
    "+INF": math.inf,
    "-INF": -math.inf,
}
_WIDE = Context(prec=200, rounding=ROUND_HALF_UP)


class BadJson(ValueError):
    """A record cannot be decoded. The text is the end of a sentence."""


class _Integer(str):
    """A number without a decimal point and exponent, as written."""


class _Float(str):
    """Any other number, as written."""


_parse = json.JSONDecoder(parse_int=_Integer, parse_float=_Float, parse_constant=_Float).decode


def reader_of(data_type: DataType) -> Callable[[bytes], Any]:
    """A function that decodes a record for pa.array or raises BadJson. Raises InvalidOption for an unsupported type."""
    if not isinstance(data_type, (StructType, ArrayType, MapType)):
        raise InvalidOption(f"A JSON schema must be a struct, an array or a map, not {data_type.simpleString()}.")
    convert = _converter(data_type, "it")

    def read(record: bytes) -> Any:
        text = record.decode()
        if not text.strip(" \t\r\n"):
            return None
        try:
            return convert(_parse(text))
        except json.JSONDecodeError as error:
            raise BadJson(f"it is not JSON ({error.msg} at character {error.pos})") from None
        except RecursionError:
            raise BadJson("it is nested too deeply") from None

    return read


def _converter(data_type: DataType, name: str) -> Convert:
    """A function that converts a non-null value of a document to this type. `name` is its name in errors."""
    match data_type:
        case StructType():
            fields = [(field.name, _converter(field.dataType, field.name)) for field in data_type.fields]
            return partial(_struct, fields=fields, name=name)
        case ArrayType():
            return partial(_array, element=_converter(data_type.elementType, name), name=name)
        case MapType(keyType=StringType()):
            return partial(_map, convert=_converter(data_type.valueType, name), name=name)
        case StringType():
            return partial(_string, name=name)
        case BooleanType():
            return partial(_boolean, name=name)
        case ByteType() | ShortType() | IntegerType() | LongType():
            return partial(_integer, bits=_BITS[type(data_type)], name=name, type_name=data_type.simpleString())
        case FloatType() | DoubleType():
            return partial(_float, name=name)
        case DecimalType():
            return partial(_decimal, data_type=data_type, name=name)
        case DateType():
            return partial(_time, parse=days_of, name=name, type_name="date")
        case TimestampType():
            return partial(_timestamp, name=name)
        case TimestampNTZType():
            return partial(_time, parse=micros_without_zone, name=name, type_name="timestamp without a time zone")
        case BinaryType():
            return partial(_binary, name=name)
    raise InvalidOption(f"A column of type {data_type.simpleString()} cannot be read from JSON.")


def _struct(value: Any, fields: list[tuple[str, Convert]], name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _mismatch(name, value, "an object")
    return {field: None if (one := value.get(field)) is None else convert(one) for field, convert in fields}


def _array(value: Any, element: Convert, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise _mismatch(name, value, "an array")
    return [None if item is None else element(item) for item in value]


def _map(value: Any, convert: Convert, name: str) -> list[tuple[str, Any]]:
    if not isinstance(value, dict):
        raise _mismatch(name, value, "an object")
    return [(_string(key, name), None if item is None else convert(item)) for key, item in value.items()]


def _string(value: Any, name: str) -> str:
    if type(value) is not str:
        value = _text(value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadJson(f"{name} has an unpaired surrogate") from None
    return str(value)


def _boolean(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise _mismatch(name, value, "true or false")
    return value


def _integer(value: Any, bits: int, name: str, type_name: str) -> int:
    limit = 1 << (bits - 1)
    if not isinstance(value, _Integer):
        raise _mismatch(name, value, "a whole number")
    if len(value) > 20 or not -limit <= int(value) < limit:  # 20: do not parse a million digits
        raise BadJson(f"{name} is {_shortened(value)}, which is too large for {type_name}")
    return int(value)


def _float(value: Any, name: str) -> float:
    if isinstance(value, (_Integer, _Float)):
        return float(value)
    if isinstance(value, str) and value in _INFINITE:
        return _INFINITE[value]
    raise _mismatch(name, value, "a number")


def _decimal(value: Any, data_type: DecimalType, name: str) -> Decimal:
    wanted = data_type.simpleString()
    try:
        number = Decimal(value) if isinstance(value, str) else Decimal("NaN")
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite():
        raise _mismatch(name, value, wanted)
    if number.adjusted() <= data_type.precision:  # otherwise it cannot fit, and might have a million digits
        rounded = number.quantize(Decimal(1).scaleb(-data_type.scale), context=_WIDE)
        if abs(rounded) < Decimal(1).scaleb(data_type.precision - data_type.scale):
            return rounded
    raise BadJson(f"{name} is {_shortened(value)}, which is too large for {wanted}")


def _timestamp(value: Any, name: str) -> int:
    if isinstance(value, _Integer) and len(value) < 13:
        return int(value) * 1_000_000  # seconds, as in from_json
    return _time(value, micros_of, name, "timestamp")


def _time(value: Any, parse: Callable[[str], int | None], name: str, type_name: str) -> int:
    parsed = parse(value) if type(value) is str else None
    if parsed is None:
        raise _mismatch(name, value, f"a {type_name}")
    return parsed


def _binary(value: Any, name: str) -> bytes:
    try:
        if type(value) is str:
            return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        pass
    raise _mismatch(name, value, "bytes in base64")


def _mismatch(name: str, value: Any, wanted: str) -> BadJson:
    return BadJson(f"{name} is {_shortened(_text(value))}, which is not {wanted}")


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def _text(value: Any) -> str:
    """A value as compact JSON, with numbers as they were written."""
    match value:
        case dict():
            return (
                "{"
                + ",".join(f"{json.dumps(key, ensure_ascii=False)}:{_text(item)}" for key, item in value.items())
                + "}"
            )
        case list():
            return "[" + ",".join(map(_text, value)) + "]"
        case _Integer() | _Float():
            return str(value)
    return json.dumps(value, ensure_ascii=False)
