"""Confluent's rules of compatibility, one by one: what is found for a pair of schemas, and what is said about it."""

from functools import cache
from typing import NamedTuple

import pytest

from kaspar.schemas.levels import CompatibilityLevel, EarlierVersion, check
from kaspar.schemas.protobuf import ProtobufSchema, incompatibilities, parse
from kaspar.schemas.protobuf.compatibility import differences
from kaspar.schemas.protobuf.differences import Change


class Case(NamedTuple):
    """The writer's schema and the reader's. `found` are changes with their paths; those with a `!` are incompatible."""

    name: str
    old: str
    new: str
    found: list[str]


PROTO2 = [
    Case(
        "an added required field", "message T {}", "message T { required int32 a = 1; }", ["!REQUIRED_FIELD_ADDED T/1"]
    ),
    Case(
        "a removed required field",
        "message T { required int32 a = 1; }",
        "message T {}",
        ["!REQUIRED_FIELD_REMOVED T/1"],
    ),
    Case(
        "an optional number that is required",
        "message T { optional int32 a = 1; }",
        "message T { required int32 a = 1; }",
        ["!FIELD_NUMERIC_LABEL_CHANGED T/1"],
    ),
    Case(
        "an optional number that is repeated",
        "message T { optional int32 a = 1; }",
        "message T { repeated int32 a = 1; }",
        ["!FIELD_NUMERIC_LABEL_CHANGED T/1"],
    ),
    Case(
        "an optional string that is repeated",
        "message T { optional string a = 1; }",
        "message T { repeated bytes a = 1; }",
        ["FIELD_STRING_OR_BYTES_LABEL_CHANGED T/1"],
    ),
    Case(
        "a group that is a message",
        "message T { optional group G = 1 {} }",
        "message T { optional G g = 1; message G {} }",
        ["!FIELD_KIND_CHANGED T/1"],
    ),
    Case(
        "a field in a group",
        "message T { optional group G = 1 { optional int32 a = 1; } }",
        "message T { optional group G = 1 { optional string a = 1; } }",
        ["!FIELD_SCALAR_KIND_CHANGED T/G/1"],
    ),
]

PROTO3 = [
    Case("no change", "message T { string a = 1; }", "message T { string a = 1; }", []),
    Case(
        "another package",
        "package a; message T { T t = 1; }",
        "package b; message T { T t = 1; }",
        ["PACKAGE_CHANGED "],
    ),
    Case("an added message", "message T {}", "message T {} message U {}", ["MESSAGE_ADDED U"]),
    Case("a removed message", "message T {} message U {}", "message T {}", ["!MESSAGE_REMOVED U"]),
    Case("a removed nested message", "message T { message U {} }", "message T {}", ["!MESSAGE_REMOVED T/U"]),
    Case(
        "another order",
        "message T {} message U {}",
        "message U {} message T {}",
        ["MESSAGE_MOVED T", "MESSAGE_MOVED U"],
    ),
    Case("an added enum", "message T {}", "message T { enum E { Z = 0; } }", ["ENUM_ADDED T/E"]),
    Case("a removed enum", "enum E { Z = 0; }", "", ["ENUM_REMOVED E"]),
    Case("an added value", "enum E { Z = 0; }", "enum E { Z = 0; A = 1; }", ["ENUM_CONST_ADDED E/1"]),
    Case("a removed value", "enum E { Z = 0; A = 1; }", "enum E { Z = 0; }", ["ENUM_CONST_REMOVED E/1"]),
    Case("a renamed value", "enum E { Z = 0; A = 1; }", "enum E { Z = 0; B = 1; }", ["ENUM_CONST_CHANGED E/1"]),
    Case("an added field", "message T {}", "message T { string a = 1; }", ["FIELD_ADDED T/1"]),
    Case("a removed field", "message T { string a = 1; }", "message T {}", ["FIELD_REMOVED T/1"]),
    Case("a renamed field", "message T { string a = 1; }", "message T { string b = 1; }", ["FIELD_NAME_CHANGED T/1"]),
    Case(
        "another number",
        "message T { string a = 1; }",
        "message T { string a = 2; }",
        ["FIELD_REMOVED T/1", "FIELD_ADDED T/2"],
    ),
    Case(
        "a field of a nested message",
        "message T { message U { int32 a = 1; } }",
        "message T { message U { string a = 1; } }",
        ["!FIELD_SCALAR_KIND_CHANGED T/U/1"],
    ),
    Case(
        "a number that is a message",
        "message T { int32 a = 1; } message U {}",
        "message T { U a = 1; } message U {}",
        ["!FIELD_KIND_CHANGED T/1"],
    ),
    Case(
        "a map that is a repeated message",
        "message T { map<string, string> a = 1; } message U {}",
        "message T { repeated U a = 1; } message U {}",
        ["!FIELD_KIND_CHANGED T/1"],
    ),
    Case(
        "a message that is another one",
        "message T { U a = 1; } message U {} message V {}",
        "message T { V a = 1; } message U {} message V {}",
        ["!FIELD_NAMED_TYPE_CHANGED T/1"],
    ),
    Case(
        "a full name for a relative one",
        "package p; message T { U a = 1; message U {} }",
        "package p; message T { .p.T.U a = 1; message U {} }",
        [],
    ),
    Case(
        "keys of a map",
        "message T { map<int32, string> a = 1; }",
        "message T { map<string, string> a = 1; }",
        ["!FIELD_SCALAR_KIND_CHANGED T/1"],
    ),
    Case(
        "values of a map",
        "message T { map<string, int32> a = 1; }",
        "message T { map<string, bool> b = 1; }",
        ["FIELD_NAME_CHANGED T/1"],
    ),
    Case(
        "messages of a map",
        "message T { map<string, U> a = 1; } message U {} message V {}",
        "message T { map<string, V> a = 1; } message U {} message V {}",
        ["!FIELD_NAMED_TYPE_CHANGED T/1"],
    ),
    Case(
        "an optional number that is repeated",
        "message T { optional int32 a = 1; }",
        "message T { repeated int32 a = 1; }",
        ["!FIELD_NUMERIC_LABEL_CHANGED T/1"],
    ),
    Case("an optional field without a label", "message T { optional int32 a = 1; }", "message T { int32 a = 1; }", []),
    Case(
        "an optional message that is repeated",
        "message T { optional T a = 1; }",
        "message T { repeated T a = 1; }",
        [],
    ),
    Case("an added oneof", "message T {}", "message T { oneof o { string a = 1; } }", ["ONEOF_ADDED T/o"]),
    Case("a removed oneof", "message T { oneof o { string a = 1; } }", "message T {}", ["ONEOF_REMOVED T/o"]),
    Case(
        "a renamed oneof",
        "message T { oneof o { string a = 1; } }",
        "message T { oneof p { string a = 1; } }",
        ["ONEOF_REMOVED T/o", "ONEOF_ADDED T/p"],
    ),
    Case(
        "a field added to a oneof",
        "message T { oneof o { string a = 1; } }",
        "message T { oneof o { string a = 1; string b = 2; } }",
        ["ONEOF_FIELD_ADDED T/o/2"],
    ),
    Case(
        "a field removed from a oneof",
        "message T { oneof o { string a = 1; string b = 2; } }",
        "message T { oneof o { string a = 1; } }",
        ["!ONEOF_FIELD_REMOVED T/o/2"],
    ),
    Case(
        "a field that leaves a oneof",
        "message T { oneof o { string a = 1; string b = 2; } }",
        "message T { oneof o { string a = 1; } string b = 2; }",
        ["FIELD_ADDED T/2"],
    ),
    Case(
        "a field that leaves a oneof with another type",
        "message T { oneof o { string a = 1; string b = 2; } }",
        "message T { oneof o { string a = 1; } int32 b = 2; }",
        ["FIELD_ADDED T/2", "!FIELD_SCALAR_KIND_CHANGED T/2"],
    ),
    Case(
        "a type in a oneof",
        "message T { oneof o { string a = 1; } }",
        "message T { oneof o { int32 a = 1; } }",
        ["!FIELD_SCALAR_KIND_CHANGED T/o/1"],
    ),
    Case(
        "a field moved to a new oneof",
        "message T { string a = 1; }",
        "message T { oneof o { string a = 1; int32 b = 2; } }",
        ["ONEOF_ADDED T/o"],
    ),
    Case(
        "a field moved to a new oneof with another type",
        "message T { string a = 1; }",
        "message T { oneof o { int32 a = 1; } }",
        ["ONEOF_ADDED T/o", "!FIELD_SCALAR_KIND_CHANGED T/1"],
    ),
    Case(
        "several fields moved to a oneof",
        "message T { string a = 1; string b = 2; }",
        "message T { oneof o { string a = 1; string b = 2; } }",
        ["!MULTIPLE_FIELDS_MOVED_TO_ONEOF T/o", "ONEOF_ADDED T/o"],
    ),
    Case(
        "a field moved to a oneof that was there",
        "message T { string a = 1; oneof o { string b = 2; } }",
        "message T { oneof o { string a = 1; string b = 2; } }",
        ["!FIELD_MOVED_TO_EXISTING_ONEOF T/o", "ONEOF_FIELD_ADDED T/o/1"],
    ),
    Case(
        "two oneofs made one",
        "message T { oneof o { string a = 1; } oneof p { string b = 2; } }",
        "message T { oneof o { string a = 1; string b = 2; } }",
        ["!FIELD_MOVED_TO_EXISTING_ONEOF T/o", "ONEOF_FIELD_ADDED T/o/2", "ONEOF_REMOVED T/p"],
    ),
    Case(
        "a oneof made two",
        "message T { oneof o { string a = 1; string b = 2; } }",
        "message T { oneof o { string a = 1; } oneof p { string b = 2; } }",
        ["ONEOF_ADDED T/p"],
    ),
    Case(
        "a field moved to a renamed oneof",
        "message T { string a = 1; oneof o { string b = 2; } }",
        "message T { oneof p { string a = 1; string b = 2; } }",
        ["!FIELD_MOVED_TO_EXISTING_ONEOF T/p", "ONEOF_REMOVED T/o", "ONEOF_ADDED T/p"],
    ),
]

EDITION = [
    Case(
        "an added required field",
        "message T {}",
        "message T { int32 a = 1 [features.field_presence = LEGACY_REQUIRED]; }",
        ["!REQUIRED_FIELD_ADDED T/1"],
    ),
    Case(
        "a message that is written as a group",
        "message T { T a = 1; }",
        "message T { T a = 1 [features.message_encoding = DELIMITED]; }",
        ["!FIELD_KIND_CHANGED T/1"],
    ),
    Case(
        "a message that is written as a group by default",
        "message T { T a = 1; }",
        "option features.message_encoding = DELIMITED; message T { T a = 1; }",
        ["!FIELD_KIND_CHANGED T/1"],
    ),
]

CASES = [
    pytest.param(f"{syntax}\n{case.old}", f"{syntax}\n{case.new}", case.found, id=f"{syntax[-8:-2]}: {case.name}")
    for syntax, cases in (
        ('syntax = "proto2";', PROTO2),
        ('syntax = "proto3";', PROTO3),
        ('edition = "2023";', EDITION),
    )
    for case in cases
]


@cache
def parsed(text: str) -> ProtobufSchema:
    """Once for all cases with this text."""
    return parse(text, {})


def found(old: str, new: str, old_references: dict[str, str], new_references: dict[str, str]) -> list[str]:
    return changes(parse(new, new_references), parse(old, old_references))


def changes(new: ProtobufSchema, old: ProtobufSchema) -> list[str]:
    return [
        f"{'' if each.change.is_compatible else '!'}{each.change.name} {each.location[2:]}"
        for each in differences(new, old)
    ]


@pytest.mark.parametrize(("old", "new", "expected"), CASES)
def test_change_is_found(old: str, new: str, expected: list[str]) -> None:
    assert changes(parsed(new), parsed(old)) == expected


@pytest.mark.parametrize(("old", "new", "expected"), CASES)
def test_only_incompatible_changes_are_reported(old: str, new: str, expected: list[str]) -> None:
    messages = incompatibilities(parsed(new), parsed(old))
    assert len(messages) == sum(change.startswith("!") for change in expected)


def test_every_kind_of_change_is_in_the_table() -> None:
    in_table = {change.removeprefix("!").split()[0] for case in CASES for change in case.values[2]}  # type: ignore[union-attr]
    assert in_table == {change.name for change in Change}


GENERAL = ["int32", "int64", "uint32", "uint64", "bool", "E"]
KINDS = [
    GENERAL,
    ["sint32", "sint64"],
    ["string", "bytes"],
    ["fixed32", "sfixed32"],
    ["fixed64", "sfixed64"],
    ["float"],
    ["double"],
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind[0])
def test_scalars_of_one_kind_can_change_into_each_other_and_into_no_other(kind: list[str]) -> None:
    """All pairs with one compilation for each side: a field for every pair."""
    scalars = [scalar for each in KINDS for scalar in each]
    pairs = [(old, new) for old in kind for new in scalars]
    old, new = (
        "".join(f"{pair[side]} f{number} = {number};" for number, pair in enumerate(pairs, 1)) for side in (0, 1)
    )
    syntax = 'syntax = "proto3"; enum E { Z = 0; }'
    changes = found(f"{syntax} message T {{ {old} }}", f"{syntax} message T {{ {new} }}", {}, {})
    expected = [
        f"!FIELD_SCALAR_KIND_CHANGED T/{number}" for number, (_, scalar) in enumerate(pairs, 1) if scalar not in kind
    ]
    assert changes == expected


IMPORTING = 'syntax = "proto3"; import "d.proto"; message T { d.D a = 1; map<string, d.D> b = 2; }'


def dependency(field: str, package: str = "d", more: str = "") -> dict[str, str]:
    return {"d.proto": f'syntax = "proto3"; package {package}; message D {{ {field} x = 1; }} {more}'}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (dependency("int32"), dependency("int32"), []),
        (dependency("int32"), dependency("int64"), []),
        (
            dependency("int32"),
            dependency("string"),
            ["!FIELD_SCALAR_KIND_CHANGED D/1", "!FIELD_NAMED_TYPE_CHANGED T/1", "!FIELD_NAMED_TYPE_CHANGED T/2"],
        ),
        (
            dependency("E", more="message E { D d = 1; int32 n = 2; }"),
            dependency("E", more="message E { D d = 1; string n = 2; }"),
            [
                "!FIELD_NAMED_TYPE_CHANGED E/1",
                "!FIELD_SCALAR_KIND_CHANGED E/2",
                "!FIELD_NAMED_TYPE_CHANGED D/1",
                "!FIELD_NAMED_TYPE_CHANGED T/1",
                "!FIELD_NAMED_TYPE_CHANGED T/2",
            ],
        ),
    ],
    ids=["no change", "a compatible change", "an incompatible change", "an incompatible change in a cycle"],
)
def test_imports_are_followed(old: dict[str, str], new: dict[str, str], expected: list[str]) -> None:
    assert found(IMPORTING, IMPORTING, old, new) == expected


def test_package_of_an_import_may_change() -> None:
    new = IMPORTING.replace("d.D", "e.D")
    assert found(IMPORTING, new, dependency("int32"), dependency("int32", package="e")) == []


def test_message_moved_to_an_import_is_missing_in_the_schema_itself() -> None:
    own = 'syntax = "proto3"; message T { D a = 1; map<string, D> b = 2; } message D { int32 x = 1; }'
    assert found(own, IMPORTING, {}, dependency("int32")) == ["!MESSAGE_REMOVED D"]
    assert found(IMPORTING, own, dependency("int32"), {}) == ["MESSAGE_ADDED D"]


def test_types_of_an_import_that_lead_to_each_other_are_compared_once() -> None:
    """Two fields of each type lead to the next one: 2 to the power of 60 paths."""
    depth = 60

    def chain(last: str) -> dict[str, str]:
        links = "".join(f"message D{n} {{ D{n + 1} a = 1; D{n + 1} b = 2; }}" for n in range(depth))
        return {"d.proto": f'syntax = "proto3"; {links} message D{depth} {{ {last} x = 1; }}'}

    text = 'syntax = "proto3"; import "d.proto"; message T { D0 a = 1; }'
    changes = found(text, text, chain("int32"), chain("string"))
    assert len(changes) == 2 * depth + 2
    assert changes[0] == f"!FIELD_SCALAR_KIND_CHANGED D{depth}/1"
    assert changes[-1] == "!FIELD_NAMED_TYPE_CHANGED T/1"


MESSAGES = {
    ("message T {} message U {}", "message T {}"): (
        "MESSAGE_REMOVED",
        "The new schema is missing a MESSAGE type at path '#/U' in the old schema",
    ),
    ("message T { int32 a = 1; }", "message T { T a = 1; }"): (
        "FIELD_KIND_CHANGED",
        "The type of a field at path '#/T/1' in the new schema does not match the old schema",
    ),
    ("message T { int32 a = 1; }", "message T { string a = 1; }"): (
        "FIELD_SCALAR_KIND_CHANGED",
        "The kind of a SCALAR field at path '#/T/1' in the new schema does not match its kind in the old schema",
    ),
    ("message T { T a = 1; } message U {}", "message T { U a = 1; } message U {}"): (
        "FIELD_NAMED_TYPE_CHANGED",
        "The type of a MESSAGE field at path '#/T/1' in the new schema does not match its type in the old schema",
    ),
    ("message T { optional int32 a = 1; }", "message T { repeated int32 a = 1; }"): (
        "FIELD_NUMERIC_LABEL_CHANGED",
        "The label for a NUMERIC field at path '#/T/1' in the new schema does not match its label in the old schema",
    ),
    ("message T { oneof o { int32 a = 1; int32 b = 2; } }", "message T { oneof o { int32 a = 1; } }"): (
        "ONEOF_FIELD_REMOVED",
        "The new schema is missing a oneof field at path '#/T/o/2' in the old schema",
    ),
    ("message T { int32 a = 1; int32 b = 2; }", "message T { oneof o { int32 a = 1; int32 b = 2; } }"): (
        "MULTIPLE_FIELDS_MOVED_TO_ONEOF",
        "Multiple fields in the oneof at path '#/T/o' in the new schema are outside a oneof in the old schema",
    ),
    ("message T { int32 a = 1; oneof o { int32 b = 2; } }", "message T { oneof o { int32 a = 1; int32 b = 2; } }"): (
        "FIELD_MOVED_TO_EXISTING_ONEOF",
        "A field in the oneof at path '#/T/o' in the new schema is outside an existing oneof in the old schema",
    ),
}


@pytest.mark.parametrize(("pair", "expected"), MESSAGES.items(), ids=[kind for kind, _ in MESSAGES.values()])
def test_messages_are_confluents(pair: tuple[str, str], expected: tuple[str, str]) -> None:
    old, new = (parse(f'syntax = "proto3"; {text}', {}) for text in pair)
    reported = check(CompatibilityLevel.BACKWARD, new, [EarlierVersion(None, old)])
    assert reported[0] == f'{{errorType:"{expected[0]}", description:"{expected[1]}"}}'


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "message T {}",
            "message T { required int32 a = 1; }",
            "A required field  at path '#/T/1' in the new schema is missing in the old schema",
        ),
        (
            "message T { required int32 a = 1; }",
            "message T {}",
            "The new schema is missing a required field at path: '#/T/1' in the old schema",
        ),
    ],
    ids=["REQUIRED_FIELD_ADDED", "REQUIRED_FIELD_REMOVED"],
)
def test_messages_about_required_fields_are_confluents(old: str, new: str, expected: str) -> None:
    reported = check(CompatibilityLevel.BACKWARD, parse(new, {}), [EarlierVersion(None, parse(old, {}))])
    assert expected in reported[0]
