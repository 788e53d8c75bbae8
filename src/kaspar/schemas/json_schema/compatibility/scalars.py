"""Strings, numbers, enums and constants."""

from kaspar.schemas.json_schema.compatibility.comparison import Findings
from kaspar.schemas.json_schema.compatibility.differences import Kind
from kaspar.schemas.json_schema.compatibility.limits import compare_limit
from kaspar.schemas.json_schema.nodes import ConstSchema, EnumSchema, Number, NumberSchema, StringSchema
from kaspar.schemas.json_schema.numbers import is_multiple


def compare_strings(found: Findings, original: StringSchema, update: StringSchema) -> None:
    compare_limit(found, "maxLength", "MAX_LENGTH", original.max_length, update.max_length)
    compare_limit(found, "minLength", "MIN_LENGTH", original.min_length, update.min_length)
    if original.pattern is None and update.pattern is not None:
        found.add(Kind.PATTERN_ADDED, "pattern")
    elif original.pattern is not None and update.pattern is None:
        found.add(Kind.PATTERN_REMOVED, "pattern")
    elif original.pattern != update.pattern:
        found.add(Kind.PATTERN_CHANGED, "pattern")


def compare_numbers(found: Findings, original: NumberSchema, update: NumberSchema) -> None:
    compare_limit(found, "maximum", "MAXIMUM", original.maximum, update.maximum)
    compare_limit(found, "minimum", "MINIMUM", original.minimum, update.minimum)
    compare_limit(found, "exclusiveMaximum", "EXCLUSIVE_MAXIMUM", original.exclusive_maximum, update.exclusive_maximum)
    compare_limit(found, "exclusiveMinimum", "EXCLUSIVE_MINIMUM", original.exclusive_minimum, update.exclusive_minimum)
    _compare_multiple_of(found, original.multiple_of, update.multiple_of)
    if original.integer != update.integer:
        found.add(Kind.TYPE_EXTENDED if original.integer else Kind.TYPE_NARROWED)


def _compare_multiple_of(found: Findings, original: Number | None, update: Number | None) -> None:
    if original is None and update is None:
        return
    if original is None:
        kind = Kind.MULTIPLE_OF_ADDED
    elif update is None:
        kind = Kind.MULTIPLE_OF_REMOVED
    elif original == update:
        return
    elif is_multiple(update, original):
        kind = Kind.MULTIPLE_OF_EXPANDED
    elif is_multiple(original, update):
        kind = Kind.MULTIPLE_OF_REDUCED
    else:
        kind = Kind.MULTIPLE_OF_CHANGED
    found.add(kind, "multipleOf")


def compare_enums(found: Findings, original: EnumSchema, update: EnumSchema) -> None:
    if original.values == update.values:
        return
    if update.values > original.values:
        found.add(Kind.ENUM_ARRAY_EXTENDED, "enum")
    elif update.values < original.values:
        found.add(Kind.ENUM_ARRAY_NARROWED, "enum")
    else:
        found.add(Kind.ENUM_ARRAY_CHANGED, "enum")


def compare_constants(found: Findings, original: ConstSchema, update: ConstSchema) -> None:
    if original.value != update.value:
        found.add(Kind.ENUM_ARRAY_CHANGED, "const")
