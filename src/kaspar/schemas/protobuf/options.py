"""Options of a descriptor with the names and values they have in a .proto text, in the form of Confluent's registry
(ProtobufSchemaUtils: each entry of a value on its own line).

The order does not depend on how the options were written: first protobuf's own in the order of descriptor.proto, then
Confluent's, then the others by number.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor

from kaspar.schemas.protobuf.names import Names
from kaspar.schemas.protobuf.well_known import CONFLUENT_OPTIONS
from kaspar.schemas.schema import InvalidSchema

_ESCAPES: Final = str.maketrans(
    {
        "\a": r"\a",
        "\b": r"\b",
        "\f": r"\f",
        "\n": r"\n",
        "\r": r"\r",
        "\t": r"\t",
        "\v": r"\v",
        "\\": r"\\",
        "'": r"\'",
        '"': r"\"",
        **{chr(code): f"\\{code:03o}" for code in range(32) if chr(code) not in "\a\b\f\n\r\t\v"},
    }
)
_FLOATS: Final = (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE)
# Confluent's clients write the value before the key in the parameters of a decimal.
_VALUE_FIRST: Final = ("precision", "scale")


@dataclass(frozen=True, slots=True)
class Option:
    """One option: the text before and after its equals sign."""

    name: str
    value: str
    # Whether an extension defines it, which is not part of Protobuf itself.
    custom: bool = False

    def __str__(self) -> str:
        return f"{self.name} = {self.value}"

    @property
    def sort_key(self) -> str:
        """The name without its parentheses, by which Confluent sorts."""
        return self.name.strip("(").replace(")", "")

    @property
    def is_extension(self) -> bool:
        """Whether the format `ignore_extensions` drops it. That format keeps Confluent's own extensions."""
        return self.custom and not self.sort_key.removeprefix(".").startswith(CONFLUENT_OPTIONS)


@dataclass(frozen=True, slots=True)
class OptionPrinter:
    """Prints custom options with the shortest name in the place where they are used, or with full names."""

    names: Names | None = None

    def options(self, message: Any, scope: str) -> list[Option]:
        """The options of a message such as FieldOptions. `scope` is what contains the annotated element."""
        return [
            option
            for field, value in sorted(message.ListFields(), key=_order)
            for option in self._of_field(field, value, scope)
        ]

    def _of_field(self, field: Any, value: Any, scope: str) -> Iterator[Option]:
        name = f"({self._extension_name(field.full_name, scope)})" if field.is_extension else field.name
        if field.name in ("map_entry", "uninterpreted_option") and not field.is_extension:
            return
        if field.message_type is not None and field.message_type.full_name == "google.protobuf.FeatureSet":
            yield from self._features(name, value, scope)
            return
        for element in _elements(field, value):
            yield Option(name, _value(field, element), field.is_extension)

    def _features(self, name: str, features: Any, scope: str) -> Iterator[Option]:
        """One option for each feature, as protoc accepts them only one by one."""
        for field, value in sorted(features.ListFields(), key=_order):
            if not field.is_extension:
                yield Option(f"{name}.{field.name}", _value(field, value))
                continue
            extension = self._extension_name(field.full_name, scope)
            for inner, inner_value in value.ListFields():
                yield Option(f"{name}.({extension}).{inner.name}", _value(inner, inner_value))

    def _extension_name(self, full_name: str, scope: str) -> str:
        return self.names.shortest(full_name, scope, of_type=False) if self.names is not None else full_name


def quoted(text: str | bytes) -> str:
    """The quoted text. A string of proto2 that is not UTF-8, which protoc accepts, is bytes in Python."""
    if isinstance(text, bytes):
        raise InvalidSchema("The schema has a string that is not valid UTF-8")
    return f'"{text.translate(_ESCAPES)}"'


def indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.splitlines())


def _order(item: tuple[Any, Any]) -> tuple[int, int]:
    field = item[0]
    if not field.is_extension:
        return 0, field.index
    return (1 if field.full_name.startswith(CONFLUENT_OPTIONS) else 2), field.number


def _elements(field: Any, value: Any) -> Iterable[Any]:
    if not field.is_repeated:
        return (value,)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        # Maps have no order.
        return sorted(value.items())
    return tuple(value)


def _value(field: Any, value: Any) -> str:
    if field.message_type is not None:
        if field.message_type.GetOptions().map_entry:
            return _block(_map_entry(field.message_type, *value))
        return _block(_entry(inner, inner_value) for inner, inner_value in sorted(value.ListFields(), key=_order))
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known is not None else str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bytes):
        return _quoted_bytes(value)
    if field.type in _FLOATS:
        return _float(value, single=field.type == FieldDescriptor.TYPE_FLOAT)
    return str(value)


def _entry(field: Any, value: Any) -> str:
    name = f"[{field.full_name}]" if field.is_extension else field.name
    if field.type == FieldDescriptor.TYPE_GROUP and not field.is_extension:
        # In the text format, a group has the name of its type.
        name = field.message_type.name
    values = [_value(field, element) for element in _elements(field, value)]
    return f"{name}: {_list(values) if field.is_repeated else values[0]}"


def _map_entry(entry: Any, key: Any, value: Any) -> Iterator[str]:
    fields = (("key", key), ("value", value))
    for name, content in reversed(fields) if key in _VALUE_FIRST else fields:
        yield f"{name}: {_value(entry.fields_by_name[name], content)}"


def _block(entries: Iterable[str]) -> str:
    return f"{{\n{_lines(list(entries))}}}"


def _list(values: list[str]) -> str:
    return f"[\n{_lines(values)}]"


def _lines(entries: list[str]) -> str:
    last = len(entries) - 1
    return "".join(indented(entry if index == last else f"{entry},") for index, entry in enumerate(entries))


def _quoted_bytes(value: bytes) -> str:
    escaped = "".join(chr(byte) if 32 <= byte < 127 and byte not in b"\"'\\" else f"\\{byte:03o}" for byte in value)
    return f'"{escaped}"'


def _float(value: float, *, single: bool) -> str:
    """The shortest text that is parsed as the same number."""
    if not single or value != value or value in (float("inf"), float("-inf")):
        return repr(value).removesuffix(".0")
    for digits in range(6, 10):
        text = f"{value:.{digits}g}"
        if struct.pack("f", float(text)) == struct.pack("f", value):
            break
    return text
