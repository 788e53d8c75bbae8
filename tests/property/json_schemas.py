"""Strategies for JSON Schemas, schemas that were changed a little, and values that may fit them."""

from typing import Any

from hypothesis import strategies as st

NAMES = ("a", "b", "c")
_NUMBERS = st.one_of(st.integers(-3, 4), st.sampled_from([-1.5, 0.5, 1.0, 2.5]))
_SIZES = st.integers(0, 3)
_STRINGS = st.text(alphabet="ab1", max_size=4)

VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), _NUMBERS, _STRINGS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from((*NAMES, "d", "S_1")), inner, max_size=4)
    ),
    max_leaves=6,
)


def _with(fixed: dict[str, Any], /, **optional: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({key: st.just(value) for key, value in fixed.items()}, optional=optional)


_STRING = _with(
    {"type": "string"}, minLength=_SIZES, maxLength=_SIZES, pattern=st.sampled_from(["a", "^b", "1$", "^[ab]*$"])
)
_NUMBER = st.builds(
    lambda name, keywords: {"type": name, **keywords},
    st.sampled_from(["integer", "number"]),
    _with(
        {},
        minimum=_NUMBERS,
        maximum=_NUMBERS,
        exclusiveMinimum=_NUMBERS,
        exclusiveMaximum=_NUMBERS,
        multipleOf=st.sampled_from([1, 2, 3, 0.5, 4]),
    ),
)
_SIMPLE = st.sampled_from([{"type": "null"}, {"type": "boolean"}])
_ENUM = st.builds(lambda values: {"enum": values}, st.lists(st.one_of(_NUMBERS, _STRINGS), min_size=1, max_size=3))
_CONST = st.builds(lambda value: {"const": value}, VALUES)
SCALARS = st.one_of(_STRING, _NUMBER, _SIMPLE, _ENUM, _CONST, st.booleans())


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    properties = st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    return st.builds(
        lambda properties, required, keywords: {
            "type": "object",
            "properties": properties,
            # Of what has no schema of its own Confluent's rules know nothing.
            "required": [name for name in required if name in properties and properties[name] is not True],
            **keywords,
        },
        properties,
        st.lists(st.sampled_from(NAMES), unique=True),
        _with({}, additionalProperties=st.one_of(st.booleans(), inner), minProperties=_SIZES, maxProperties=_SIZES),
    )


def _arrays(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    limits = {"minItems": _SIZES, "maxItems": _SIZES, "uniqueItems": st.booleans()}
    rest = st.one_of(st.booleans(), inner)
    return st.one_of(
        _with({"type": "array"}, items=inner, **limits),
        _with({"type": "array"}, items=st.lists(inner, min_size=1, max_size=3), additionalItems=rest, **limits),
    )


def _combined(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    several = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.builds(lambda key, schemas: {key: schemas}, st.sampled_from(["allOf", "anyOf"]), several),
        st.builds(lambda schema: {"not": schema}, inner),
    )


SCHEMAS = st.recursive(
    SCALARS, lambda inner: st.one_of(_objects(inner), _arrays(inner), _combined(inner)), max_leaves=6
)
"""What Confluent's rules are sound for."""


def _anything_else(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Keywords that Confluent's rules do not compare, or only in part, and keywords without a type."""
    return _with(
        {},
        oneOf=st.lists(inner, min_size=1, max_size=3),
        patternProperties=st.dictionaries(st.sampled_from(["^S_", "a", "^[bc]$"]), inner, max_size=2),
        propertyNames=st.sampled_from([{"pattern": "^[a-c]"}, {"maxLength": 1}, True]),
        contains=inner,
        dependencies=st.dictionaries(
            st.sampled_from(NAMES), st.one_of(inner, st.lists(st.sampled_from(NAMES), unique=True)), max_size=2
        ),
        minimum=_NUMBERS,
        maxLength=_SIZES,
        minItems=_SIZES,
        required=st.lists(st.sampled_from(NAMES), unique=True, max_size=2),
        type=st.lists(st.sampled_from(["null", "integer", "string", "object", "array"]), min_size=1, unique=True),
        **{"if": inner, "then": inner, "else": inner},
    )


def _modern(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    boolean_or_schema = st.one_of(st.booleans(), inner)
    return _with(
        {},
        prefixItems=st.lists(inner, min_size=1, max_size=2),
        items=boolean_or_schema,
        contains=inner,
        minContains=_SIZES,
        maxContains=_SIZES,
        unevaluatedItems=boolean_or_schema,
        properties=st.dictionaries(st.sampled_from(NAMES), inner, max_size=2),
        patternProperties=st.dictionaries(st.sampled_from(["^S_", "a"]), inner, max_size=2),
        additionalProperties=boolean_or_schema,
        unevaluatedProperties=boolean_or_schema,
        dependentRequired=st.dictionaries(
            st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES), unique=True), max_size=1
        ),
        dependentSchemas=st.dictionaries(st.sampled_from(NAMES), inner, max_size=1),
        allOf=st.lists(inner, min_size=1, max_size=2),
        anyOf=st.lists(inner, min_size=1, max_size=2),
        oneOf=st.lists(inner, min_size=1, max_size=2),
        type=st.lists(st.sampled_from(["object", "array", "string"]), min_size=1, unique=True),
        **{"if": inner, "then": inner, "else": inner, "not": inner},
    )


DRAFT_7_SCHEMAS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(_objects(inner), _arrays(inner), _combined(inner), _anything_else(inner)),
    max_leaves=6,
)
DRAFT_2020_12_SCHEMAS = st.recursive(SCALARS, lambda inner: st.one_of(_objects(inner), _modern(inner)), max_leaves=6)


@st.composite
def changed(draw: st.DrawFn, schema: Any) -> Any:
    """The schema after some changes, many of which are compatible."""
    if not isinstance(schema, dict) or draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from([schema, True, {"anyOf": [schema, {"type": "null"}]}]))
    after = dict(schema)
    for key, value in schema.items():
        match draw(st.integers(0, 5)), value:
            case (0, _) if key not in ("type", "properties", "required"):
                del after[key]
            case (1, int() | float()) if not isinstance(value, bool) and key != "const":
                after[key] = value + draw(st.sampled_from([-1, 1])) if value > 1 or key != "multipleOf" else value
            case (1 | 2, list()) if key == "enum":
                after[key] = [*value, draw(_STRINGS)]
            case (1 | 2, list()) if key == "required":
                after[key] = value[1:]
            case (1 | 2 | 3, list()) if key in ("allOf", "anyOf", "items"):
                after[key] = [draw(changed(item)) for item in value]
            case (1 | 2 | 3, dict()) if key in ("not", "items", "additionalProperties", "additionalItems"):
                after[key] = draw(changed(value))
            case (1 | 2 | 3, dict()) if key == "properties":
                after[key] = {name: draw(changed(member)) for name, member in value.items()}
            case (4, dict()) if key == "properties":
                after[key] = {**value, draw(st.sampled_from(NAMES)): draw(SCALARS)}
            case (5, dict()) if key == "properties" and not schema.get("required"):
                after[key] = dict(list(value.items())[1:])
    if any(isinstance(after.get(key), int | float) and after[key] < 0 for key in _NOT_NEGATIVE):
        return schema
    if "items" not in after:
        after.pop("additionalItems", None)
    if "required" in after:
        properties = after["properties"]
        after["required"] = [name for name in after["required"] if properties.get(name, True) is not True]
    return after


_NOT_NEGATIVE = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
