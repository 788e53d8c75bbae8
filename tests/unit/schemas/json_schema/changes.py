"""Changes of schemas, and the differences that Confluent's registry finds in them: facts of its SchemaDiff's test data.

A row has what it shows, the schema before and after, and the differences in order, each as its kind and path.
"""

from typing import Any, Final, NamedTuple


class Change(NamedTuple):
    what: str
    before: Any
    after: Any
    differences: tuple[str, ...]


STRING: Final = {"type": "string"}
NUMBER: Final = {"type": "number"}
INTEGER: Final = {"type": "integer"}
BOOLEAN: Final = {"type": "boolean"}
NULL: Final = {"type": "null"}
RED: Final = {"enum": ["red"]}


def _changed(what: str, before: Any, after: Any, *differences: str) -> Change:
    return Change(what, before, after, differences)


def _limit(of: dict[str, Any], keyword: str, name: str) -> list[Change]:
    """The four changes of a keyword that is one number."""
    return [
        _changed(f"{keyword} added", of, {**of, keyword: 10}, f"{name}_ADDED #/{keyword}"),
        _changed(f"{keyword} removed", {**of, keyword: 10}, of, f"{name}_REMOVED #/{keyword}"),
        _changed(f"{keyword} increased", {**of, keyword: 10}, {**of, keyword: 11}, f"{name}_INCREASED #/{keyword}"),
        _changed(f"{keyword} decreased", {**of, keyword: 11}, {**of, keyword: 10}, f"{name}_DECREASED #/{keyword}"),
        _changed(f"{keyword} written in another way", {**of, keyword: 10}, {**of, keyword: 10.0}),
    ]


ANNOTATIONS: Final = [
    _changed("anything may become the empty schema", {"properties": {}}, {}),
    _changed("the empty schema may not become an object", {}, {"properties": {}}, "TYPE_CHANGED #/"),
    _changed("nothing may become anything", False, STRING),
    _changed("title", {"title": "a"}, {"title": "b"}, "TITLE_CHANGED #/"),
    _changed("description", {"description": "a"}, {"description": "b"}, "DESCRIPTION_CHANGED #/"),
    _changed("default", {**STRING, "default": "a"}, {**STRING, "default": "b"}, "DEFAULT_CHANGED #/"),
    _changed("type", {"type": "object"}, {"type": "array"}, "TYPE_CHANGED #/"),
    _changed(
        "decimals of Connect that become numbers",
        {**STRING, "connect.type": "bytes"},
        {**NUMBER, "connect.type": "bytes"},
    ),
]

SCALARS: Final = [
    *_limit(STRING, "minLength", "MIN_LENGTH"),
    *_limit(STRING, "maxLength", "MAX_LENGTH"),
    *_limit(NUMBER, "minimum", "MINIMUM"),
    *_limit(NUMBER, "maximum", "MAXIMUM"),
    *_limit(NUMBER, "exclusiveMinimum", "EXCLUSIVE_MINIMUM"),
    *_limit(NUMBER, "exclusiveMaximum", "EXCLUSIVE_MAXIMUM"),
    _changed("pattern added", STRING, {**STRING, "pattern": "a"}, "PATTERN_ADDED #/pattern"),
    _changed("pattern removed", {**STRING, "pattern": "a"}, STRING, "PATTERN_REMOVED #/pattern"),
    _changed("pattern changed", {**STRING, "pattern": "a"}, {**STRING, "pattern": "b"}, "PATTERN_CHANGED #/pattern"),
    _changed("pattern kept", {**STRING, "pattern": "a"}, {**STRING, "pattern": "a"}),
    _changed("multipleOf added", NUMBER, {**NUMBER, "multipleOf": 2}, "MULTIPLE_OF_ADDED #/multipleOf"),
    _changed("multipleOf removed", {**NUMBER, "multipleOf": 10}, NUMBER, "MULTIPLE_OF_REMOVED #/multipleOf"),
    _changed(
        "multipleOf that divides the old one",
        {**NUMBER, "multipleOf": 10},
        {**NUMBER, "multipleOf": 2},
        "MULTIPLE_OF_REDUCED #/multipleOf",
    ),
    _changed(
        "multipleOf that the old one divides",
        {**NUMBER, "multipleOf": 0.5},
        {**NUMBER, "multipleOf": 10},
        "MULTIPLE_OF_EXPANDED #/multipleOf",
    ),
    _changed(
        "multipleOf that has nothing to do with the old one",
        {**NUMBER, "multipleOf": 10},
        {**NUMBER, "multipleOf": 11},
        "MULTIPLE_OF_CHANGED #/multipleOf",
    ),
    _changed("number to integer", NUMBER, INTEGER, "TYPE_NARROWED #/"),
    _changed("integer to number", INTEGER, NUMBER, "TYPE_EXTENDED #/"),
    _changed("enum extended", RED, {"enum": ["red", "blue"]}, "ENUM_ARRAY_EXTENDED #/enum"),
    _changed("enum narrowed", {"enum": ["red", "blue"]}, RED, "ENUM_ARRAY_NARROWED #/enum"),
    _changed("enum changed", RED, {"enum": ["blue"]}, "ENUM_ARRAY_CHANGED #/enum"),
    _changed("enum in another order", {"enum": [1, {"a": 1, "b": 2}]}, {"enum": [{"b": 2, "a": 1.0}, 1.0]}),
    _changed("const changed", {"const": 1}, {"const": 2}, "ENUM_ARRAY_CHANGED #/const"),
    _changed("const kept", {"const": [1]}, {"const": [1.0]}),
    _changed("enum of a type removed", {**STRING, **RED}, STRING, "PRODUCT_TYPE_NARROWED #/"),
    _changed("enum of a type added", STRING, {**STRING, **RED}, "TYPE_CHANGED #/"),
]

COMBINED: Final = [
    _changed("less is forbidden", {"not": NUMBER}, {"not": INTEGER}, "NOT_TYPE_NARROWED #/not"),
    _changed("more is forbidden", {"not": INTEGER}, {"not": NUMBER}, "NOT_TYPE_EXTENDED #/not"),
    _changed(
        "a schema of allOf that has no match",
        {"allOf": [STRING, RED]},
        {"allOf": [STRING, {"enum": ["blue"]}]},
        "COMBINED_TYPE_SUBSCHEMAS_CHANGED #/",
    ),
    _changed(
        "the schemas of allOf in another order",
        {"allOf": [STRING, RED]},
        {"allOf": [{"enum": ["red", "blue"]}, STRING]},
        "ENUM_ARRAY_EXTENDED #/allOf/1/enum",
    ),
    _changed("a type more", {"type": ["object"]}, {"type": ["object", "array"]}, "SUM_TYPE_EXTENDED #/"),
    _changed("a type less", {"type": ["object", "array"]}, {"type": ["object"]}, "SUM_TYPE_NARROWED #/"),
    _changed("a nullable type", STRING, {"type": ["null", "string"]}, "SUM_TYPE_EXTENDED #/"),
    _changed("an equal schema twice in allOf before", {"allOf": [STRING, STRING]}, {"allOf": [STRING]}),
    _changed("an equal schema twice in allOf after", {"allOf": [STRING]}, {"allOf": [STRING, STRING]}),
    _changed("oneOf extended", {"oneOf": [STRING]}, {"oneOf": [NUMBER, STRING]}, "SUM_TYPE_EXTENDED #/"),
    _changed("oneOf narrowed", {"oneOf": [NUMBER, STRING]}, {"oneOf": [STRING]}, "SUM_TYPE_NARROWED #/"),
    _changed("oneOf changed", {"oneOf": [STRING]}, {"oneOf": [NUMBER]}, "COMBINED_TYPE_SUBSCHEMAS_CHANGED #/"),
    _changed(
        "oneOf extended and a schema of it relaxed",
        {"oneOf": [{**STRING, "maxLength": 5}]},
        {"oneOf": [BOOLEAN, NUMBER, {**STRING, "maxLength": 8, "title": "mine"}]},
        "SUM_TYPE_EXTENDED #/",
        "TITLE_CHANGED #/oneOf/0",
        "MAX_LENGTH_INCREASED #/oneOf/0/maxLength",
    ),
    _changed("allOf narrowed", {"allOf": [RED, STRING]}, {"allOf": [STRING]}, "PRODUCT_TYPE_NARROWED #/"),
    _changed("allOf extended", {"allOf": [STRING]}, {"allOf": [RED, STRING]}, "PRODUCT_TYPE_EXTENDED #/"),
    _changed("oneOf to anyOf", {"oneOf": [STRING]}, {"anyOf": [STRING]}, "COMBINED_TYPE_EXTENDED #/"),
    _changed(
        "oneOf to anyOf with fewer schemas",
        {"oneOf": [NUMBER, STRING]},
        {"anyOf": [STRING]},
        "COMBINED_TYPE_EXTENDED #/",
        "SUM_TYPE_NARROWED #/",
    ),
    _changed(
        "allOf to anyOf with more schemas",
        {"allOf": [STRING]},
        {"anyOf": [NUMBER, STRING]},
        "COMBINED_TYPE_EXTENDED #/",
        "SUM_TYPE_EXTENDED #/",
    ),
    _changed(
        "allOf to anyOf with fewer schemas",
        {"allOf": [NUMBER, STRING]},
        {"anyOf": [STRING]},
        "COMBINED_TYPE_EXTENDED #/",
        "PRODUCT_TYPE_NARROWED #/",
    ),
    _changed(
        "anyOf one schema to oneOf several",
        {"anyOf": [STRING]},
        {"oneOf": [NUMBER, STRING]},
        "COMBINED_TYPE_EXTENDED #/",
        "SUM_TYPE_EXTENDED #/",
    ),
    _changed("anyOf several to oneOf", {"anyOf": [NUMBER, STRING]}, {"oneOf": [STRING]}, "COMBINED_TYPE_CHANGED #/"),
    _changed(
        "allOf several to oneOf one of them",
        {"allOf": [NUMBER, STRING]},
        {"oneOf": [STRING]},
        "COMBINED_TYPE_EXTENDED #/",
        "PRODUCT_TYPE_NARROWED #/",
    ),
    _changed("anyOf to allOf, one schema", {"anyOf": [STRING]}, {"allOf": [STRING]}, "COMBINED_TYPE_EXTENDED #/"),
    _changed("anyOf to allOf, more", {"anyOf": [STRING]}, {"allOf": [NUMBER, STRING]}, "COMBINED_TYPE_CHANGED #/"),
    _changed("a schema to anyOf", STRING, {"anyOf": [NUMBER, STRING]}, "SUM_TYPE_EXTENDED #/"),
    _changed("null to oneOf", NULL, {"oneOf": [NUMBER, NULL]}, "SUM_TYPE_EXTENDED #/"),
    _changed(
        "a schema to oneOf with a relaxed one",
        {**STRING, "maxLength": 3},
        {"oneOf": [NUMBER, STRING]},
        "MAX_LENGTH_REMOVED #/maxLength",
        "SUM_TYPE_EXTENDED #/",
    ),
    _changed("a schema to allOf of it alone", STRING, {"allOf": [STRING]}),
    _changed("a schema to allOf of it and another", STRING, {"allOf": [NUMBER, STRING]}, "TYPE_CHANGED #/"),
    _changed("oneOf one schema to it", {"oneOf": [STRING]}, STRING),
    _changed("oneOf several to one of them", {"oneOf": [STRING, NUMBER]}, STRING, "TYPE_CHANGED #/"),
]

TWO: Final = {"foo": STRING, "bar": STRING}
CLOSED: Final = {"additionalProperties": False}
OF_STRINGS: Final = {"additionalProperties": STRING}
BY_PREFIX: Final = {**CLOSED, "patternProperties": {"^S_": STRING, "^I_": INTEGER}}
FOO: Final = {"properties": {"foo": STRING}}
BAR: Final = "#/properties/bar"

OBJECTS: Final = [
    _changed(
        "a property replaced in an open content model",
        FOO,
        {"properties": {"bar": STRING}},
        f"OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL {BAR}",
        "PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL #/properties/foo",
    ),
    _changed("type of a property", FOO, {"properties": {"foo": NUMBER}}, "TYPE_CHANGED #/properties/foo"),
    _changed(
        "optional property added to an open content model",
        FOO,
        {"properties": TWO},
        f"OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL {BAR}",
    ),
    _changed(
        "required property added to an open content model",
        FOO,
        {"properties": TWO, "required": ["bar"]},
        f"REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL {BAR}",
    ),
    _changed(
        "required property with a default added to an open content model",
        FOO,
        {"properties": {"foo": STRING, "bar": {**STRING, "default": ""}}, "required": ["bar"]},
        f"REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL {BAR}",
    ),
    _changed(
        "property that may be anything added to an open content model",
        {"additionalProperties": True},
        {"additionalProperties": True, "properties": {"foo": True}},
        "PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL #/properties/foo",
    ),
    _changed(
        "optional property added to a closed content model",
        {**FOO, **CLOSED},
        {"properties": TWO, **CLOSED},
        f"OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL {BAR}",
    ),
    _changed(
        "required property added to a closed content model",
        {**FOO, **CLOSED},
        {"properties": TWO, **CLOSED, "required": ["bar"]},
        f"REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL {BAR}",
    ),
    _changed(
        "required property with a default added to a closed content model",
        {**FOO, **CLOSED},
        {"properties": {"foo": STRING, "bar": {**STRING, "default": None}}, **CLOSED, "required": ["bar"]},
        f"REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL {BAR}",
    ),
    _changed(
        "forbidden property added to a closed content model",
        CLOSED,
        {**CLOSED, "properties": {"foo": False}},
        "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/foo",
    ),
    _changed(
        "property added that a pattern covers",
        {**FOO, **BY_PREFIX},
        {"properties": {"foo": STRING, "I_1": NUMBER}, **BY_PREFIX},
        "TYPE_EXTENDED #/properties/I_1",
        "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/I_1",
        "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/I_1",
    ),
    _changed(
        "property added that the schema of additional ones covers",
        {**FOO, **OF_STRINGS},
        {"properties": TWO, **OF_STRINGS},
        f"PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL {BAR}",
        f"OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL {BAR}",
    ),
    _changed(
        "property added that the schema of additional ones does not cover",
        {**FOO, **OF_STRINGS},
        {"properties": {"foo": STRING, "bar": NUMBER}, **OF_STRINGS},
        f"TYPE_CHANGED {BAR}",
        f"PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL {BAR}",
        f"OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL {BAR}",
    ),
    _changed(
        "required property added to a partially open content model",
        {**FOO, **OF_STRINGS},
        {"properties": TWO, **OF_STRINGS, "required": ["bar"]},
        f"PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL {BAR}",
        f"REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL {BAR}",
    ),
    _changed(
        "property removed that a pattern covers",
        {"properties": {"foo": STRING, "I_1": INTEGER}, **CLOSED},
        {**FOO, **CLOSED, "patternProperties": {"^I_": NUMBER}},
        "TYPE_EXTENDED #/properties/I_1",
        "PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/I_1",
    ),
    _changed(
        "property removed that the schema of additional ones covers",
        {"properties": TWO, **CLOSED},
        {**FOO, "additionalProperties": {"oneOf": [NULL, STRING]}},
        f"SUM_TYPE_EXTENDED {BAR}",
        f"PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL {BAR}",
        "ADDITIONAL_PROPERTIES_ADDED #/additionalProperties",
    ),
    _changed(
        "property removed that the schema of additional ones does not cover",
        {"properties": {"foo": STRING, "bar": NUMBER}, **CLOSED},
        {**FOO, **OF_STRINGS},
        f"TYPE_CHANGED {BAR}",
        f"PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL {BAR}",
        "ADDITIONAL_PROPERTIES_ADDED #/additionalProperties",
    ),
    _changed(
        "property removed from a closed content model",
        {"properties": TWO, **CLOSED},
        {**FOO, **CLOSED},
        f"PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL {BAR}",
    ),
    _changed(
        "forbidden property removed from a closed content model",
        {**CLOSED, "properties": {"foo": False}},
        CLOSED,
        "PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/foo",
    ),
    _changed("required no more", {**FOO, "required": ["foo"]}, FOO, "REQUIRED_ATTRIBUTE_REMOVED #/required/foo"),
    _changed("required", FOO, {**FOO, "required": ["foo"]}, "REQUIRED_ATTRIBUTE_ADDED #/required/foo"),
    _changed(
        "required, with a default",
        {"properties": {"foo": {**STRING, "default": "x"}}},
        {"properties": {"foo": {**STRING, "default": "x"}}, "required": ["foo"]},
        "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED #/required/foo",
    ),
    _changed(
        "what is required and has no schema is not compared",
        {**FOO, "required": ["foo"]},
        {**FOO, "required": ["other"]},
        "REQUIRED_ATTRIBUTE_REMOVED #/required/foo",
    ),
    *_limit({"type": "object"}, "minProperties", "MIN_PROPERTIES"),
    *_limit({"type": "object"}, "maxProperties", "MAX_PROPERTIES"),
    _changed(
        "additional properties allowed",
        {"properties": {}, **CLOSED},
        {"properties": {}},
        "ADDITIONAL_PROPERTIES_ADDED #/additionalProperties",
    ),
    _changed(
        "additional properties forbidden",
        {"additionalProperties": True},
        CLOSED,
        "ADDITIONAL_PROPERTIES_REMOVED #/additionalProperties",
    ),
    _changed(
        "additional properties narrowed",
        {"additionalProperties": True},
        OF_STRINGS,
        "ADDITIONAL_PROPERTIES_NARROWED #/additionalProperties",
    ),
    _changed(
        "additional properties extended",
        OF_STRINGS,
        {"additionalProperties": True},
        "ADDITIONAL_PROPERTIES_EXTENDED #/additionalProperties",
    ),
    _changed(
        "additional properties changed",
        OF_STRINGS,
        {"additionalProperties": NUMBER},
        "TYPE_CHANGED #/additionalProperties",
    ),
]

DEPENDENCIES: Final = [
    _changed(
        "dependency removed and added",
        {"dependencies": {"foo": ["bar"]}},
        {"dependencies": {"bar": ["foo"]}},
        "DEPENDENCY_ARRAY_ADDED #/dependencies/bar",
        "DEPENDENCY_ARRAY_REMOVED #/dependencies/foo",
    ),
    _changed(
        "dependency extended",
        {"dependencies": {"foo": ["a"]}},
        {"dependencies": {"foo": ["a", "b"]}},
        "DEPENDENCY_ARRAY_EXTENDED #/dependencies/foo",
    ),
    _changed(
        "dependency narrowed",
        {"dependencies": {"foo": ["a", "b"]}},
        {"dependencies": {"foo": ["b"]}},
        "DEPENDENCY_ARRAY_NARROWED #/dependencies/foo",
    ),
    _changed(
        "dependency changed",
        {"dependencies": {"foo": ["a"]}},
        {"dependencies": {"foo": ["b"]}},
        "DEPENDENCY_ARRAY_CHANGED #/dependencies/foo",
    ),
    _changed(
        "dependency in another order", {"dependencies": {"foo": ["a", "b"]}}, {"dependencies": {"foo": ["b", "a"]}}
    ),
    _changed(
        "schema of a dependency added and removed",
        {"dependencies": {"foo": STRING}},
        {"dependencies": {"bar": STRING}},
        "DEPENDENCY_SCHEMA_ADDED #/dependencies/bar",
        "DEPENDENCY_SCHEMA_REMOVED #/dependencies/foo",
    ),
    _changed(
        "schema of a dependency changed",
        {"dependencies": {"foo": STRING}},
        {"dependencies": {"foo": NUMBER}},
        "TYPE_CHANGED #/dependencies/foo",
    ),
]

ARRAY: Final = {"type": "array"}

ARRAYS: Final = [
    _changed("schema of all items added", ARRAY, {**ARRAY, "items": STRING}, "SCHEMA_ADDED #/items"),
    _changed("schema of all items removed", {**ARRAY, "items": STRING}, ARRAY, "SCHEMA_REMOVED #/items"),
    _changed("schema of all items changed", {"items": STRING}, {"items": NUMBER}, "TYPE_CHANGED #/items"),
    *_limit(ARRAY, "minItems", "MIN_ITEMS"),
    *_limit(ARRAY, "maxItems", "MAX_ITEMS"),
    _changed("items unique", ARRAY, {**ARRAY, "uniqueItems": True}, "UNIQUE_ITEMS_ADDED #/uniqueItems"),
    _changed("items not unique", {**ARRAY, "uniqueItems": True}, ARRAY, "UNIQUE_ITEMS_REMOVED #/uniqueItems"),
]


def _tuple(*items: Any, rest: Any = True) -> dict[str, Any]:
    return {**ARRAY, "items": list(items), "additionalItems": rest}


TUPLES: Final = [
    _changed(
        "items removed from an open content model",
        {**ARRAY, "items": [STRING, NUMBER]},
        ARRAY,
        "ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL #/items/0",
        "ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL #/items/1",
    ),
    _changed("item changed", _tuple(STRING), _tuple(NUMBER), "TYPE_CHANGED #/items/0"),
    _changed(
        "item added to an open content model",
        _tuple(STRING),
        _tuple(STRING, STRING),
        "ITEM_ADDED_TO_OPEN_CONTENT_MODEL #/items/1",
    ),
    _changed(
        "item that may be anything added to an open content model",
        _tuple(STRING),
        _tuple(STRING, True),
        "ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL #/items/1",
    ),
    _changed(
        "item added to a partially open content model that covers it",
        _tuple(NUMBER, rest=STRING),
        _tuple(NUMBER, STRING, rest=STRING),
        "ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1",
    ),
    _changed(
        "item added to a partially open content model that does not cover it",
        _tuple(NUMBER, rest=STRING),
        _tuple(NUMBER, NUMBER, rest=STRING),
        "TYPE_CHANGED #/items/1",
        "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1",
    ),
    _changed(
        "item added to a closed content model",
        _tuple(STRING, rest=False),
        _tuple(STRING, NUMBER),
        "ITEM_ADDED_TO_CLOSED_CONTENT_MODEL #/items/1",
        "ADDITIONAL_ITEMS_ADDED #/additionalItems",
    ),
    _changed(
        "item removed from a partially open content model that covers it",
        _tuple(NUMBER, STRING, rest=STRING),
        _tuple(NUMBER, rest=STRING),
        "ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1",
    ),
    _changed(
        "item removed from a partially open content model that does not cover it",
        _tuple(NUMBER, NUMBER, rest=STRING),
        _tuple(NUMBER, rest=STRING),
        "TYPE_CHANGED #/items/1",
        "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1",
    ),
    _changed(
        "item removed from a closed content model",
        _tuple(STRING, NUMBER, rest=False),
        _tuple(STRING, rest=False),
        "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL #/items/1",
    ),
    _changed(
        "forbidden item removed from a closed content model",
        _tuple(STRING, False, rest=False),
        _tuple(STRING, rest=False),
        "ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL #/items/1",
    ),
    _changed(
        "additional items forbidden",
        _tuple(STRING),
        _tuple(STRING, rest=False),
        "ADDITIONAL_ITEMS_REMOVED #/additionalItems",
    ),
    _changed(
        "additional items narrowed",
        _tuple(STRING),
        _tuple(STRING, rest=STRING),
        "ADDITIONAL_ITEMS_NARROWED #/additionalItems",
    ),
    _changed(
        "additional items extended",
        _tuple(STRING, rest=STRING),
        _tuple(STRING),
        "ADDITIONAL_ITEMS_EXTENDED #/additionalItems",
    ),
    _changed(
        "additional items changed",
        _tuple(STRING, rest=STRING),
        _tuple(STRING, rest=NUMBER),
        "TYPE_CHANGED #/additionalItems",
    ),
]


def _defined(schema: Any, place: str = "definitions") -> dict[str, Any]:
    return {"items": {"$ref": f"#/{place}/it"}, place: {"it": schema}}


REFERENCES: Final = [
    _changed("what is referred to changes", _defined(STRING), _defined(NUMBER), "TYPE_CHANGED #/items"),
    _changed("a schema becomes a reference", {"items": STRING}, _defined(STRING)),
    _changed("a reference becomes a schema", _defined(STRING, "$defs"), {"items": STRING}),
]

ALL_DRAFTS: Final = [*ANNOTATIONS, *SCALARS, *COMBINED, *OBJECTS, *ARRAYS, *REFERENCES]
BEFORE_2019_09: Final = [
    *DEPENDENCIES,
    *TUPLES,
    _changed("identifier", {"$id": "a"}, {"$id": "b"}, "ID_CHANGED #/"),
    _changed("siblings of $ref", _defined(STRING), {**_defined(STRING), "items": {"$ref": "#/definitions/it", **RED}}),
    _changed("a format beside a type", INTEGER, {**INTEGER, "format": "int32"}, "TYPE_CHANGED #/"),
    _changed("all items beside additional ones", {"items": STRING, "additionalItems": False}, {"items": STRING}),
]


def _prefix(*items: Any, rest: Any = True) -> dict[str, Any]:
    return {**ARRAY, "prefixItems": list(items), "items": rest}


def _in_2020_12(change: Change) -> Change:
    def translated(schema: Any) -> Any:
        if "dependencies" in schema:
            (dependencies,) = schema.values()
            lists = {name: value for name, value in dependencies.items() if isinstance(value, list)}
            schemas = {name: value for name, value in dependencies.items() if not isinstance(value, list)}
            return {"dependentRequired": lists, "dependentSchemas": schemas}
        if isinstance(schema.get("items"), list):
            return _prefix(*schema["items"], rest=schema.get("additionalItems", True))
        return schema

    return change._replace(before=translated(change.before), after=translated(change.after))


OPEN: Final = {"type": "object"}
SINCE_2019_09: Final = [
    *map(_in_2020_12, DEPENDENCIES),
    *map(_in_2020_12, TUPLES),
    _changed("a format beside a type", INTEGER, {**INTEGER, "format": "int32"}),
    _changed(
        "siblings of $ref",
        _defined(STRING),
        {**_defined(STRING), "items": {"$ref": "#/definitions/it", **RED}},
        "TYPE_CHANGED #/items",
    ),
    _changed("contains added", ARRAY, {**ARRAY, "contains": STRING}, "MIN_CONTAINS_ADDED #/minContains"),
    _changed(
        "more of what is contained",
        {**ARRAY, "contains": STRING},
        {**ARRAY, "contains": STRING, "minContains": 2, "maxContains": 3},
        "MAX_CONTAINS_ADDED #/maxContains",
        "MIN_CONTAINS_INCREASED #/minContains",
    ),
    _changed(
        "fewer of what is contained",
        {**ARRAY, "contains": STRING, "minContains": 2, "maxContains": 3},
        {**ARRAY, "contains": STRING, "maxContains": 2},
        "MAX_CONTAINS_DECREASED #/maxContains",
        "MIN_CONTAINS_DECREASED #/minContains",
    ),
    _changed(
        "more of what is contained at most",
        {**ARRAY, "contains": STRING, "maxContains": 2},
        {**ARRAY, "contains": STRING, "maxContains": 3},
        "MAX_CONTAINS_INCREASED #/maxContains",
    ),
    _changed(
        "contains removed",
        {**ARRAY, "contains": STRING, "maxContains": 2},
        ARRAY,
        "MAX_CONTAINS_REMOVED #/maxContains",
        "MIN_CONTAINS_REMOVED #/minContains",
    ),
    _changed("items forbidden", {"items": True}, {"items": False}, "ADDITIONAL_ITEMS_REMOVED #/additionalItems"),
    *[
        _changed(f"{keyword} {what}", {**of, **before}, {**of, **after}, *differences)
        for of, keyword, name in (
            (OPEN, "unevaluatedProperties", "UNEVALUATED_PROPERTIES"),
            (ARRAY, "unevaluatedItems", "UNEVALUATED_ITEMS"),
        )
        for what, before, after, differences in (
            ("forbidden", {}, {keyword: False}, [f"{name}_REMOVED #/{keyword}"]),
            ("allowed", {keyword: False}, {}, [f"{name}_ADDED #/{keyword}"]),
            ("allowed by a schema", {keyword: False}, {keyword: STRING}, [f"{name}_ADDED #/{keyword}"]),
            ("forbidden after all", {keyword: STRING}, {keyword: False}, [f"{name}_REMOVED #/{keyword}"]),
            ("narrowed", {}, {keyword: STRING}, [f"{name}_NARROWED #/{keyword}"]),
            ("narrowed from anything", {keyword: True}, {keyword: STRING}, [f"{name}_NARROWED #/{keyword}"]),
            ("extended", {keyword: STRING}, {}, [f"{name}_EXTENDED #/{keyword}"]),
            ("extended to anything", {keyword: STRING}, {keyword: True}, [f"{name}_EXTENDED #/{keyword}"]),
            ("changed", {keyword: STRING}, {keyword: NUMBER}, [f"TYPE_CHANGED #/{keyword}"]),
        )
    ],
    _changed(
        "property added where others are forbidden",
        {**OPEN, "unevaluatedProperties": False},
        {**OPEN, **FOO, "unevaluatedProperties": False},
        "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/foo",
    ),
    _changed(
        "property removed that the schema of unevaluated ones covers",
        {**FOO, "unevaluatedProperties": STRING},
        {"unevaluatedProperties": STRING},
        "PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/foo",
    ),
]
