"""The keywords of a schema object, with their types checked.

Confluent's loaders do not apply a meta-schema: they refuse a keyword of the wrong type when they read it, and ignore
unknown keywords. The same is done here, with the place of the keyword in the message.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from kaspar.schemas.json_schema.drafts import Draft
from kaspar.schemas.json_schema.nodes import Annotations, Number
from kaspar.schemas.json_schema.text import Json, write_json
from kaspar.schemas.schema import InvalidSchema

_ARRAY = frozenset({"items", "additionalItems", "minItems", "maxItems", "uniqueItems"})
_OBJECT = frozenset(
    {"properties", "required", "minProperties", "maxProperties", "patternProperties", "additionalProperties"}
)
NUMBER_KEYWORDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_STRING = frozenset({"minLength", "maxLength", "pattern"})


def array_keywords(draft: Draft) -> frozenset[str]:
    match draft:
        case Draft.DRAFT_4:
            return _ARRAY
        case Draft.DRAFT_6 | Draft.DRAFT_7:
            return _ARRAY | {"contains"}
        case Draft.DRAFT_2019_09:
            return _ARRAY | {"contains", "unevaluatedItems"}
        case Draft.DRAFT_2020_12:
            return _ARRAY - {"additionalItems"} | {"contains", "prefixItems", "unevaluatedItems"}


def object_keywords(draft: Draft) -> frozenset[str]:
    match draft:
        case Draft.DRAFT_4:
            return _OBJECT | {"dependencies"}
        case Draft.DRAFT_6 | Draft.DRAFT_7:
            return _OBJECT | {"dependencies", "propertyNames"}
        case Draft.DRAFT_2019_09 | Draft.DRAFT_2020_12:
            return _OBJECT | {"propertyNames", "dependentRequired", "dependentSchemas", "unevaluatedProperties"}


def string_keywords(draft: Draft) -> frozenset[str]:
    # Up to draft 7, a `format` alone makes a string schema in Confluent's loader, even the format of an integer.
    return _STRING if draft.modern else _STRING | {"format"}


@dataclass(frozen=True, slots=True)
class Keywords:
    """One schema object, and its place."""

    members: Mapping[str, Json]
    path: str
    draft: Draft

    def has_any(self, names: Iterable[str]) -> bool:
        return any(name in self.members for name in names)

    def string(self, name: str) -> str | None:
        value = self.members.get(name)
        if name in self.members and not isinstance(value, str):
            raise self.wrong(name, "a string")
        return value if isinstance(value, str) else None

    def boolean(self, name: str) -> bool:
        value = self.members.get(name, False)
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def number(self, name: str) -> Number | None:
        value = self.members.get(name)
        if name not in self.members:
            return None
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            raise self.wrong(name, "a number")
        return value

    def integer(self, name: str) -> Number | None:
        value = self.number(name)
        if isinstance(value, Decimal) and value != value.to_integral_value():
            raise self.wrong(name, "an integer")
        return value

    def array(self, name: str) -> list[Json]:
        value = self.members.get(name, [])
        if not isinstance(value, list):
            raise self.wrong(name, "an array")
        return value

    def strings(self, name: str) -> list[str]:
        return self._strings(name, self.array(name))

    def object(self, name: str) -> dict[str, Json]:
        value = self.members.get(name, {})
        if not isinstance(value, dict):
            raise self.wrong(name, "an object")
        return value

    def lists_of_strings(self, name: str, *, only_lists: bool) -> dict[str, list[str]]:
        """The members of an object that are lists. With `only_lists` all of them have to be."""
        lists = {key: value for key, value in self.object(name).items() if isinstance(value, list)}
        if only_lists and len(lists) < len(self.object(name)):
            raise self.wrong(name, "an object of arrays")
        return {key: self._strings(name, value) for key, value in lists.items()}

    def _strings(self, name: str, value: list[Json]) -> list[str]:
        strings = [item for item in value if isinstance(item, str)]
        if len(strings) < len(value):
            raise self.wrong(name, "an array of strings")
        return strings

    def annotations(self) -> Annotations:
        connect_type = self.members.get("connect.type")
        return Annotations(
            id=self.string(self.draft.id_keyword),
            title=self.string("title"),
            description=self.string("description"),
            default=write_json(self.members["default"]) if "default" in self.members else None,
            connect_type=connect_type if isinstance(connect_type, str) else None,
        )

    def wrong(self, name: str, expected: str) -> InvalidSchema:
        return InvalidSchema(f"{self.path}/{name} must be {expected}")
