"""Logical types, like Java's LogicalTypes. One that does not fit its type is an ordinary property."""

import math
from typing import Final

from kaspar.schemas.avro.types import AvroType, Fixed

_KINDS: Final = {
    "big-decimal": ("bytes",),
    "date": ("int",),
    "decimal": ("bytes", "fixed"),
    "duration": ("fixed",),
    "local-timestamp-micros": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-nanos": ("long",),
    "time-micros": ("long",),
    "time-millis": ("int",),
    "timestamp-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-nanos": ("long",),
    "uuid": ("string", "fixed"),
}
_SIZES: Final = {"duration": 12, "uuid": 16}
_MAX_INT: Final = 2**31 - 1


def logical_type(node: AvroType) -> str | None:
    """The name of the type's logical type, if it is a valid one for the type."""
    name = node.properties.get("logicalType")
    if not isinstance(name, str) or node.kind not in _KINDS.get(name, ()):
        return None
    if isinstance(node, Fixed) and node.size != _SIZES.get(name, node.size):
        return None
    return name if name != "decimal" or _is_valid_decimal(node) else None


def _is_valid_decimal(node: AvroType) -> bool:
    precision, scale = node.properties.get("precision"), node.properties.get("scale", 0)
    if type(precision) is not int or type(scale) is not int:
        return False
    return 0 < precision <= _max_precision(node) and 0 <= scale <= precision


def _max_precision(node: AvroType) -> int:
    return math.floor(math.log10(2) * (8 * node.size - 1)) if isinstance(node, Fixed) else _MAX_INT
