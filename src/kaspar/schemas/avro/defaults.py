"""Whether the default of a field is a value of its type, like Java's Schema.isValidDefault."""

from typing import Final

from kaspar.schemas.avro.canonical import to_text
from kaspar.schemas.avro.json_text import Json, to_json
from kaspar.schemas.avro.types import Array, AvroType, Field, ForwardReference, Map, Record, Union
from kaspar.schemas.schema import InvalidSchema

# A default may pull in the defaults of other records, so the depth of the text is no bound.
MAX_DEPTH: Final = 60

_SHOWN: Final = 200
_INT: Final = range(-(2**31), 2**31)
_LONG: Final = range(-(2**63), 2**63)


class DefaultChecks:
    """Caches its findings: records whose fields default to records would take exponential time otherwise."""

    def __init__(self) -> None:
        # By the identities of a record and of a default's value, which lives as long as its schema.
        self._known: dict[tuple[int, int], bool] = {}

    def check(self, field: Field) -> None:
        """Raise InvalidSchema if the field has a default of another type."""
        if field.has_default and not self._is_valid(field.type, field.default, 0):
            default, expected = to_json(field.default)[:_SHOWN], to_text(field.type)[:_SHOWN]
            raise InvalidSchema(f"Invalid default for field {field.name}: {default} not a {expected}")

    def forget(self) -> None:
        """Clear the cache, because forward references have been replaced by the types that they name."""
        self._known.clear()

    def _is_valid(self, of_type: AvroType, value: Json, depth: int) -> bool:
        if depth > MAX_DEPTH:
            raise InvalidSchema(f"A default is nested deeper than {MAX_DEPTH} levels")
        match of_type:
            case Union():
                return any(self._is_valid(branch, value, depth + 1) for branch in of_type.branches)
            case Array():
                return isinstance(value, list) and all(
                    self._is_valid(of_type.items, element, depth + 1) for element in value
                )
            case Map():
                return isinstance(value, dict) and all(
                    self._is_valid(of_type.values, member, depth + 1) for member in value.values()
                )
            case Record():
                return isinstance(value, dict) and self._is_valid_record(of_type, value, depth)
            case ForwardReference():
                return isinstance(value, dict)
            case _:
                return _is_valid_leaf(of_type.kind, value)

    def _is_valid_record(self, record: Record, value: dict[str, Json], depth: int) -> bool:
        if record.known_fields is None:
            raise InvalidSchema(f"A default contains the record {record.name.full} within its own definition")
        key = (id(record), id(value))
        if (known := self._known.get(key)) is None:
            known = all(self._is_valid_member(field, value, depth) for field in record.known_fields)
            self._known[key] = known
        return known

    def _is_valid_member(self, field: Field, value: dict[str, Json], depth: int) -> bool:
        if field.name not in value and not field.has_default:
            return False
        return self._is_valid(field.type, value.get(field.name, field.default), depth + 1)


def _is_valid_leaf(kind: str, value: Json) -> bool:
    match kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int":
            return type(value) is int and value in _INT
        case "long":
            return type(value) is int and value in _LONG
        case "float" | "double":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case _:  # string, bytes, enum, fixed
            return isinstance(value, str)
