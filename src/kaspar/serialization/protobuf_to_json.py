"""Messages in Protobuf's JSON mapping, as Java's JsonFormat prints them with the default values of fields.

Fields are in the order of their numbers. A field without a value is printed with its default, unless its absence is
distinguishable: for a message, a member of a oneof, or `optional` of proto3. Google's well-known types have special
forms, which json_format implements.
"""

import base64
import math
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
    from google.protobuf.descriptor_pool import DescriptorPool

_Print = Callable[[Any], Any]
"""The printer of a message, or of a value of a field."""

_WELL_KNOWN: Final = frozenset(
    f"google.protobuf.{name}"
    for name in (
        *("Any", "Duration", "Empty", "FieldMask", "ListValue", "Struct", "Timestamp", "Value"),
        *("BoolValue", "BytesValue", "DoubleValue", "FloatValue", "Int32Value", "Int64Value", "StringValue"),
        *("UInt32Value", "UInt64Value"),
    )
)
_NULL_VALUE: Final = "google.protobuf.NullValue"
_SINGLE: Final = struct.Struct("<f")


class ToJson:
    """The printers of a pool's messages."""

    def __init__(self, pool: "DescriptorPool") -> None:
        self._pool = pool
        self._messages: dict[str, _Print] = {}

    def of(self, message: "Descriptor") -> _Print:
        known = self._messages.get(message.full_name)
        if known is not None:
            return known
        if message.full_name in _WELL_KNOWN:
            return self._well_known
        fields: list[tuple[str, str, bool, _Print]] = []

        def to_json(value: Any) -> dict[str, Any]:
            printed = {}
            for name, json_name, may_be_absent, to_json_field in fields:
                if not may_be_absent or value.HasField(name):
                    printed[json_name] = to_json_field(getattr(value, name))
            return printed

        self._messages[message.full_name] = to_json  # before its fields, whose type may be this message
        fields.extend(
            (field.name, field.json_name, _may_be_absent(field), self._field(field))
            for field in sorted(message.fields, key=lambda each: each.number)
        )
        return to_json

    def _field(self, field: "FieldDescriptor") -> _Print:
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            value_field = field.message_type.fields_by_name["value"]
            to_json_value = self._single(value_field)
            return lambda entries: {_key(key): to_json_value(entries[key]) for key in sorted(entries)}
        to_json = self._single(field)
        return (lambda items: [to_json(item) for item in items]) if field.is_repeated else to_json

    def _single(self, field: "FieldDescriptor") -> _Print:
        match field.cpp_type:
            case field.CPPTYPE_MESSAGE:
                return self.of(field.message_type)
            case field.CPPTYPE_ENUM:
                return _enum(field.enum_type)
            case field.CPPTYPE_INT64 | field.CPPTYPE_UINT64:
                return str
            case field.CPPTYPE_FLOAT:
                return _single_precision
            case field.CPPTYPE_DOUBLE:
                return _number
        return _base64 if field.type == field.TYPE_BYTES else _as_it_is

    def _well_known(self, value: Any) -> Any:
        from google.protobuf.json_format import MessageToDict

        return MessageToDict(value, always_print_fields_with_no_presence=True, descriptor_pool=self._pool)


def _may_be_absent(field: "FieldDescriptor") -> bool:
    return not field.is_repeated and (field.message_type is not None or field.containing_oneof is not None)


def _enum(enum: "EnumDescriptor") -> _Print:
    if enum.full_name == _NULL_VALUE:
        return lambda number: None
    names = {number: value.name for number, value in enum.values_by_number.items()}
    return lambda number: names.get(number, number)


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _single_precision(value: float) -> float | str:
    """The shortest number that means this 32-bit float."""
    if not math.isfinite(value):
        return _number(value)
    packed = _SINGLE.pack(value)
    for digits in (6, 7, 8):
        if _SINGLE.pack(short := float(f"{value:.{digits}g}")) == packed:
            return short
    return float(f"{value:.9g}")


def _as_it_is(value: Any) -> Any:
    return value
