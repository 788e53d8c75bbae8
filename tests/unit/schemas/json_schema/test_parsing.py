"""Schemas of all drafts, their references, and texts that are no schemas."""

import json
from typing import Any

import pytest

from kaspar.schemas import SchemaType, format_of
from kaspar.schemas.json_schema import incompatibilities, parse
from kaspar.schemas.json_schema.drafts import Draft, draft_of
from kaspar.schemas.json_schema.loading import MAX_SUBSCHEMAS
from kaspar.schemas.json_schema.validation import InvalidValue, check_value
from kaspar.schemas.schema import InvalidSchema


def _text(schema: Any, draft: Draft = Draft.DRAFT_7) -> str:
    return json.dumps({"$schema": draft.meta_schema, **schema} if isinstance(schema, dict) else schema)


def _accepts(text: str, value: object, references: dict[str, str] | None = None) -> bool:
    try:
        check_value(parse(text, references or {}), value)
    except InvalidValue:
        return False
    return True


def test_registry_finds_the_format_by_its_name() -> None:
    schema = format_of(SchemaType.JSON).parse('{"title": "Order", "type": "object"}', {})
    assert (schema.type, schema.name) == (SchemaType.JSON, "Order")


def test_texts_of_a_schema() -> None:
    schema = parse('{ "type": "object",\n "properties": {"b": {"minimum": 1.0}, "a": {}}, "title": "T" }', {})
    assert schema.canonical == '{"type":"object","properties":{"b":{"minimum":1.0},"a":{}},"title":"T"}'
    assert schema.normalized == '{"properties":{"a":{},"b":{"minimum":1.0}},"title":"T","type":"object"}'
    assert schema.formatted("") == schema.formatted("resolved") == schema.canonical


def test_boolean_is_a_schema_without_a_name() -> None:
    assert (parse("true", {}).name, parse("false", {}).canonical) == (None, "false")
    assert _accepts("true", [1])
    assert not _accepts("false", None)


@pytest.mark.parametrize(
    ("uri", "draft"),
    [
        *[(draft.meta_schema, draft) for draft in Draft],
        ("https://json-schema.org/draft-04/schema", Draft.DRAFT_4),
        ("http://json-schema.org/draft/2020-12/schema#", Draft.DRAFT_2020_12),
        ("http://example.com/my-own", Draft.DRAFT_7),
        (5, Draft.DRAFT_7),
    ],
)
def test_draft_is_that_of_the_schema_keyword(uri: Any, draft: Draft) -> None:
    assert draft_of({"$schema": uri}) is draft


def test_draft_without_schema_keyword_is_7() -> None:
    assert draft_of({}) is Draft.DRAFT_7
    assert _accepts('{"const": 1, "if": {"const": 1}, "then": {"minimum": 1}}', 1)


@pytest.mark.parametrize("draft", Draft)
def test_exclusive_minimum_of_each_draft(draft: Draft) -> None:
    schema = {"minimum": 1, "exclusiveMinimum": True} if draft is Draft.DRAFT_4 else {"exclusiveMinimum": 1}
    assert not _accepts(_text(schema, draft), 1)
    assert _accepts(_text(schema, draft), 1.5)


@pytest.mark.parametrize("draft", Draft)
@pytest.mark.parametrize("place", ["definitions", "$defs"])
def test_references_within_the_document(draft: Draft, place: str) -> None:
    text = _text({"items": {"$ref": f"#/{place}/item"}, place: {"item": {"type": "integer"}}}, draft)
    assert _accepts(text, [1])
    assert not _accepts(text, ["x"])


@pytest.mark.parametrize("draft", [Draft.DRAFT_7, Draft.DRAFT_2020_12])
def test_defs_stands_for_definitions_too_but_not_the_other_way_round(draft: Draft) -> None:
    assert not _accepts(_text({"$ref": "#/$defs/x", "definitions": {"x": False}}, draft), 1)
    with pytest.raises(InvalidSchema, match="neither in the schema nor among its references"):
        parse(_text({"items": {"$ref": "#/definitions/x"}, "$defs": {"x": False}}, draft), {})


@pytest.mark.parametrize("draft", Draft)
def test_recursive_schema(draft: Draft) -> None:
    text = _text({"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": False}, draft)
    assert _accepts(text, {"next": {"next": {}}})
    assert not _accepts(text, {"next": {"next": {"x": 1}}})


@pytest.mark.parametrize(
    ("root", "name", "ref"),
    [
        ({}, "other.json", "other.json"),
        ({}, "other.json", "./other.json"),
        ({}, "other.json", "other.json#/definitions/x"),
        ({}, "http://example.com/other.json", "http://example.com/other.json"),
        ({"$id": "http://example.com/root.json"}, "other.json", "other.json"),
        ({"$id": "http://example.com/root.json"}, "other.json", "http://example.com/other.json#"),
        ({"$id": "root.json"}, "other.json", "other.json"),
        ({}, "some.subject", "some.subject"),
        ({}, "other.json", "urn:example:other"),
    ],
)
@pytest.mark.parametrize("draft", [Draft.DRAFT_6, Draft.DRAFT_7, Draft.DRAFT_2019_09, Draft.DRAFT_2020_12])
def test_references_to_other_documents(root: dict[str, Any], name: str, ref: str, draft: Draft) -> None:
    identifier = {"$id": ref} if ref.startswith("urn:") else {}
    other = json.dumps({"type": "integer", **identifier, "definitions": {"x": {"type": "integer"}}})
    text = _text({**root, "properties": {"a": {"$ref": ref}}}, draft)
    assert _accepts(text, {"a": 1}, {name: other})
    assert not _accepts(text, {"a": "x"}, {name: other})


def test_references_of_references() -> None:
    references = {
        "c.json": '{"definitions": {"d": {"type": "null"}}}',
        "dir/b.json": '{"items": {"$ref": "c.json#/definitions/d"}}',
    }
    assert _accepts('{"$ref": "dir/b.json"}', [None], references)
    assert not _accepts('{"$ref": "dir/b.json"}', [1], references)


def test_anchors_and_embedded_documents() -> None:
    schema = {
        "$id": "http://example.com/root",
        "properties": {"a": {"$ref": "#here"}, "b": {"$ref": "inner"}, "c": {"$ref": "inner#/$defs/x"}},
        "$defs": {
            "anchored": {"$anchor": "here", "type": "integer"},
            "embedded": {"$id": "inner", "type": "string", "items": {"$ref": "#/$defs/x"}, "$defs": {"x": False}},
        },
    }
    text = _text(schema, Draft.DRAFT_2020_12)
    assert _accepts(text, {"a": 1, "b": "x"})
    assert [_accepts(text, value) for value in ({"a": "x"}, {"b": 1}, {"c": 1})] == [False, False, False]


def test_meta_schema_can_be_referred_to() -> None:
    text = '{"properties": {"schema": {"$ref": "http://json-schema.org/draft-07/schema#"}}}'
    assert _accepts(text, {"schema": {"type": "string"}})
    assert not _accepts(text, {"schema": {"type": "what"}})


@pytest.mark.parametrize(
    "ref",
    [
        "other.json",
        "http://127.0.0.1:1/x.json",
        "file:///etc/passwd",
        "https://json-schema.org/draft/2030-01/schema",
        "#/definitions/missing",
        "#missing",
        "#/type/0/1",
        "http://[",
        "",
    ],
)
def test_reference_that_was_not_given_is_refused(ref: str) -> None:
    with pytest.raises(InvalidSchema, match=r"neither in the schema|leads back to itself"):
        parse(_text({"items": {"type": "string"}, "$ref": ref}), {"given.json": "{}"})


@pytest.mark.parametrize(
    "definitions",
    [
        {"a": {"$ref": "#/definitions/a"}},
        {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/c"}, "c": {"$ref": "#/definitions/b"}},
    ],
)
def test_reference_that_leads_back_to_itself_is_refused(definitions: dict[str, Any]) -> None:
    with pytest.raises(InvalidSchema, match="leads back to itself"):
        parse(_text({"items": {"$ref": "#/definitions/a"}, "definitions": definitions}), {})


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ([], "an object or a boolean"),
        ("x", "an object or a boolean"),
        (None, "an object or a boolean"),
        ({"type": "str"}, "#/type must be one or several of"),
        ({"type": ["string", 5]}, "#/type must be one or several of"),
        ({"type": {}}, "#/type must be one or several of"),
        ({"properties": []}, "#/properties must be an object"),
        ({"properties": {"a": {"items": 5}}}, "#/properties/a/items must be an object or a boolean"),
        ({"properties": {"a": None}}, "#/properties/a must be an object or a boolean"),
        ({"required": True}, "#/required must be an array"),
        ({"type": "string", "required": True}, "#/required must be an array"),
        ({"required": ["a", 1]}, "#/required must be an array of strings"),
        ({"enum": "a"}, "#/enum must be an array"),
        ({"allOf": {}}, "#/allOf must be an array"),
        ({"anyOf": [5]}, "#/anyOf/0 must be an object or a boolean"),
        ({"minLength": "5"}, "#/minLength must be a number"),
        ({"minLength": 1.5}, "#/minLength must be an integer"),
        ({"minimum": True}, "#/minimum must be a number"),
        ({"exclusiveMinimum": True}, "#/exclusiveMinimum must be a number"),
        ({"multipleOf": 0}, "#/multipleOf must be greater than 0"),
        ({"uniqueItems": "yes"}, "#/uniqueItems must be true or false"),
        ({"pattern": 5}, "#/pattern must be a string"),
        ({"pattern": "["}, "is not a regular expression"),
        ({"patternProperties": {"(": {}}}, "is not a regular expression"),
        ({"pattern": "a" * 10_001}, "the pattern has 10001 characters"),
        ({"title": 5}, "#/title must be a string"),
        ({"description": {}}, "#/description must be a string"),
        ({"$id": 5}, r"\$id and the names of references must be URIs"),
        ({"items": {"$id": 5}}, r"\$id must be a URI"),
        ({"$ref": 5}, r"#/\$ref must be a string"),
        ({"dependencies": {"a": [1]}}, "#/dependencies must be an array of strings"),
        ({"additionalProperties": "x"}, "#/additionalProperties must be an object or a boolean"),
    ],
)
def test_schema_with_a_keyword_of_a_wrong_type_is_refused(schema: Any, problem: str) -> None:
    with pytest.raises(InvalidSchema, match=problem):
        parse(_text(schema), {})


@pytest.mark.parametrize(
    "schema",
    [
        {"unknown": 5, "$comment": {}, "examples": 1, "format": "never-heard-of"},
        {"definitions": {"unused": {"type": "nothing"}}},
        {"definitions": [1, 2]},
        {"required": []},
        {"enum": []},
        {"enum": [1, 1]},
        {"type": ["string", "string"]},
        {"minLength": 1.0},
        {"pattern": r"^(?!x)(?<name>a)\k<name>\p{Alpha}{2,5000}$"},
    ],
)
def test_schema_that_confluents_loader_accepts_is_accepted(schema: dict[str, Any]) -> None:
    parse(_text(schema), {})


def test_broken_reference_is_refused_with_its_name() -> None:
    with pytest.raises(InvalidSchema, match=r"The reference b\.json: The schema is not JSON"):
        parse("{}", {"b.json": "{"})


def test_number_of_subschemas_is_bounded() -> None:
    properties = ",".join(f'"p{i}":{{}}' for i in range(MAX_SUBSCHEMAS))
    with pytest.raises(InvalidSchema, match="more than 20000 subschemas"):
        parse(f'{{"properties":{{{properties}}}}}', {})


def test_depth_of_references_costs_no_stack() -> None:
    definitions = {f"d{i}": {"items": {"$ref": f"#/definitions/d{i + 1}"}} for i in range(1_500)}
    schema = _text({"$ref": "#/definitions/d0", "definitions": {**definitions, "d1500": {}}})
    assert incompatibilities(parse(schema, {}), parse(schema, {})) != []  # too deep to compare, and so refused
