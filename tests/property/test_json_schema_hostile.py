"""Whatever JSON is given as a schema or as a value, there is an answer. What the meta-schema accepts is accepted."""

import json
from contextlib import suppress
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator, Draft202012Validator

from kaspar.schemas.json_schema import JsonSchema, incompatibilities, parse
from kaspar.schemas.json_schema.drafts import Draft
from kaspar.schemas.json_schema.validation import InvalidValue, check_value
from kaspar.schemas.schema import InvalidSchema

_KEYWORDS = [
    *("type", "enum", "const", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "title", "default"),
    *("items", "additionalItems", "prefixItems", "minItems", "uniqueItems", "contains", "minContains"),
    *("properties", "required", "minProperties", "patternProperties", "additionalProperties", "propertyNames"),
    *("dependencies", "dependentRequired", "dependentSchemas", "unevaluatedItems", "unevaluatedProperties"),
    *("minimum", "exclusiveMinimum", "multipleOf", "minLength", "maxLength", "definitions", "$defs"),
]
_REFERRING = ["$ref", "$id", "id", "$anchor", "$dynamicRef", "$recursiveRef", "pattern", "$schema"]
_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 3),
    st.sampled_from([0.5, 1e300, "string", "object", "a", "#", "#/definitions/a", "#/not", "x.json", "#a", ""]),
)


def _anything(keywords: list[str]) -> st.SearchStrategy[Any]:
    names = st.sampled_from([*keywords, "a", "b"])
    return st.recursive(
        _LEAVES,
        lambda inner: st.one_of(st.dictionaries(names, inner, max_size=4), st.lists(inner, max_size=3)),
        max_leaves=12,
    )


def _parsed(schema: Any) -> JsonSchema | None:
    try:
        return parse(json.dumps(schema), {"x.json": '{"not": {"$ref": "#/definitions/a"}, "definitions": {"a": true}}'})
    except InvalidSchema:
        return None


@settings(max_examples=400, deadline=None, database=None)
@given(st.sampled_from(Draft), _anything([*_KEYWORDS, *_REFERRING]), _anything(_KEYWORDS))
def test_any_json_has_an_answer(draft: Draft, document: Any, value: Any) -> None:
    if isinstance(document, dict):
        document = {"$schema": draft.meta_schema, **document}
    schema = _parsed(document)
    event(f"schema: {schema is not None}")
    if schema is None:
        return
    again = _parsed(json.loads(schema.canonical))
    assert again is not None
    assert again.normalized == schema.normalized
    incompatibilities(schema, schema)
    with suppress(InvalidValue):
        check_value(schema, value)


@settings(max_examples=400, deadline=None, database=None)
@given(_anything(_KEYWORDS))
def test_what_the_meta_schema_accepts_is_accepted(document: Any) -> None:
    for validator, draft in ((Draft7Validator, Draft.DRAFT_7), (Draft202012Validator, Draft.DRAFT_2020_12)):
        if validator(validator.META_SCHEMA).is_valid(document):
            event(f"valid in {draft.name}")
            tagged = {"$schema": draft.meta_schema, **document} if isinstance(document, dict) else document
            assert _parsed(tagged) is not None
