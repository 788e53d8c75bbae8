"""The canonical text: what Confluent's registry has for a .proto text, and the same for every form of one schema."""

import base64

import pytest

from kaspar.schemas import SchemaType, format_of
from kaspar.schemas.protobuf import parse
from tests.unit.schemas.protobuf import files
from tests.unit.schemas.protobuf.descriptors import registered_by_python, without_order_of_fields

# Texts as Confluent's registry stores them: they are their own canonical text.
CANONICAL = {
    "a message": """\
syntax = "proto3";
package com.acme;

message MyRecord {
  string f1 = 1;
  OtherRecord f2 = 2;
}
message OtherRecord {
  int32 other_id = 1;
}
""",
    "proto2 with labels and defaults": """\
syntax = "proto2";

message M {
  required int32 id = 1;
  optional string name = 2 [default = "none"];
  repeated Kind kinds = 3;

  enum Kind {
    A = 1;
    B = 2;
  }
}
""",
    "imports and options of the file": """\
syntax = "proto3";
package shop;

import "google/protobuf/timestamp.proto";
import "google/type/date.proto";
import public "confluent/type/decimal.proto";

option java_package = "com.shop";
option java_multiple_files = true;

message M {
  google.protobuf.Timestamp at = 1;
  google.type.Date day = 2;
  confluent.type.Decimal price = 3;
}
""",
    "several options of a field": """\
syntax = "proto3";

import "confluent/meta.proto";

message M {
  string a = 1 [deprecated = true];
  string b = 2 [
    deprecated = true,
    (confluent.field_meta) = {
      doc: "a \\"b\\"",
      params: [
        {
          key: "k",
          value: "v"
        }
      ],
      tags: [
        "PII"
      ]
    },
    json_name = "c"
  ];
}
""",
    "oneofs, maps and nested types": """\
syntax = "proto3";

message M {
  reserved 8, 10 to 12;
  reserved "old";

  map<string, N> by_name = 1;
  optional int32 present = 2;

  oneof choice {
    string text = 3;
    N message = 4;
  }

  message N {
    E e = 1;
\x20\x20
    enum E {
      ZERO = 0;
    }
  }
}
""",
    "extensions": """\
syntax = "proto2";

message M {
  extensions 100 to 199;
}

extend M {
  optional string note = 100;
}
""",
    "a service": """\
syntax = "proto3";

message M {}

service S {
  rpc One (M) returns (M);
  rpc Many (stream M) returns (stream M) {
    option deprecated = true;
  };
}
""",
    "only an enum": """\
syntax = "proto3";

enum E {
  option allow_alias = true;
  A = 0;
  B = 0 [deprecated = true];
}
""",
}


@pytest.mark.parametrize("text", CANONICAL.values(), ids=CANONICAL)
def test_text_in_confluents_layout_is_its_own_canonical_text(text: str) -> None:
    assert parse(text, {}).canonical == text


@pytest.mark.parametrize("text", files.ALL.values(), ids=files.ALL)
def test_canonical_text_has_the_same_canonical_text(text: str) -> None:
    canonical = parse(text, {}).canonical
    assert parse(canonical, {}).canonical == canonical


@pytest.mark.parametrize("text", files.ALL.values(), ids=files.ALL)
def test_canonical_text_compiles_to_the_same_descriptor(text: str) -> None:
    schema = parse(text, {})
    assert without_order_of_fields(parse(schema.canonical, {})) == without_order_of_fields(schema)


@pytest.mark.parametrize("text", files.ALL.values(), ids=files.ALL)
def test_descriptor_of_pythons_client_has_the_canonical_text_of_its_source(text: str) -> None:
    schema = parse(text, {})
    assert parse(registered_by_python(schema), {}).canonical == schema.canonical


@pytest.mark.parametrize("text", files.ALL.values(), ids=files.ALL)
def test_serialized_form_has_the_same_canonical_text(text: str) -> None:
    schema = parse(text, {})
    assert parse(schema.formatted("serialized"), {}).canonical == schema.canonical


def test_text_that_java_prints_of_a_descriptor_has_the_canonical_text_of_its_source() -> None:
    """Full names, a message for every map, no line for proto2."""
    java = parse(
        """package a;
        message M {
          repeated .a.M.ByNameEntry by_name = 1; optional .a.N n = 2;
          message Before {}
          message ByNameEntry { option map_entry = true; optional string key = 1; optional .a.N value = 2; }
        }
        message N {}""",
        {},
    )
    source = parse(
        'syntax = "proto2"; package a;'
        "message M { message Before {} map<string, N> by_name = 1; optional N n = 2; } message N {}",
        {},
    )
    assert java.canonical == source.canonical


def test_option_map_entry_in_a_string_or_a_comment_is_left_alone() -> None:
    text = """// option map_entry = true;
    message M { /* option map_entry = true; */ optional string a = 1 [default = "option map_entry = true;"]; }"""
    assert '[default = "option map_entry = true;"]' in parse(text, {}).canonical


def test_references_may_be_texts_that_java_prints() -> None:
    """With imports that have explicit messages for maps, too."""
    dependency = """syntax = "proto3"; package d;
    message D { repeated .d.D.MEntry m = 1;
                message MEntry { option map_entry = true; string key = 1; int32 value = 2; } }"""
    schema = parse('syntax = "proto3"; import "d.proto"; message M { .d.D d = 1; }', {"d.proto": dependency})
    assert schema.files()[0].message_type[0].nested_type[0].options.map_entry
    assert len(schema.files()[0].message_type[0].nested_type[0].reserved_name) == 0


@pytest.mark.parametrize(
    "other",
    [
        'syntax="proto3";message   M{string a=1;}',
        "// a comment\nsyntax = 'proto3'; /* another */ message M { string a = 1; /* one more */ }",
        'syntax = "proto3"; message M { string a = 1 [json_name = "a"]; };',
    ],
)
def test_white_space_comments_and_derived_names_make_no_difference(other: str) -> None:
    assert parse(other, {}).canonical == parse('syntax = "proto3"; message M { string a = 1; }', {}).canonical


@pytest.mark.parametrize(
    "other",
    [
        'syntax = "proto2"; message M { optional string a = 1; }',
        'syntax = "proto3"; package p; message M { string a = 1; }',
        'syntax = "proto3"; message M { optional string a = 1; }',
        'syntax = "proto3"; message M { string a = 1 [json_name = "b"]; }',
        'syntax = "proto3"; message M { string a = 1; reserved 2; }',
        'syntax = "proto3"; message M { string a = 1 [deprecated = true]; }',
    ],
)
def test_schemas_that_differ_have_different_canonical_texts(other: str) -> None:
    assert parse(other, {}).canonical != parse('syntax = "proto3"; message M { string a = 1; }', {}).canonical


def test_options_that_only_the_source_has_make_no_difference() -> None:
    """Descriptors do not have them, so text and descriptor would not be one schema."""
    text = """edition = "2023"; import "google/protobuf/descriptor.proto";
    extend google.protobuf.MessageOptions { string note = 50001 [retention = RETENTION_SOURCE]; }"""
    assert (
        parse(f'{text} message M {{ option (note) = "n"; }}', {}).canonical
        == parse(f"{text} message M {{}}", {}).canonical
    )


def test_names_are_as_short_as_protocs_scoping_allows() -> None:
    text = """syntax = "proto3"; package a.b;
    message M {
      .a.b.M.N own = 1; .a.b.O sibling = 2; a.b.O.N other = 3; .a.b.M.N.a hidden = 4;
      message N { .a.b.M.N.a inner = 1; .a.b.O outer = 2; message a {} }
    }
    message O { message N {} }"""
    canonical = parse(text, {}).canonical
    types = [line.split()[0] for line in canonical.splitlines() if " = " in line and "syntax" not in line]
    assert types == ["N", "O", "O.N", "N.a", "a", "O"]


def test_name_that_an_inner_scope_hides_keeps_its_dot() -> None:
    text = 'syntax = "proto3"; package a; message M { .a.N top = 1; message a {} message N {} } message N {}'
    assert ".a.N top = 1;" in parse(text, {}).canonical


def test_nested_messages_keep_their_indexes() -> None:
    """A map field defines a nested message where it is written, and message indexes count it."""
    text = 'syntax = "proto3"; message M { message A {} map<string, A> x = 1; message B {} map<string, B> y = 2; }'
    schema = parse(text, {})
    for form in (schema.canonical, schema.formatted("serialized")):
        nested = [message.name for message in parse(form, {}).files()[-1].message_type[0].nested_type]
        assert nested == ["A", "XEntry", "B", "YEntry"]


def test_references_are_texts_or_descriptors() -> None:
    dependency = 'syntax = "proto3"; package d; import "base.proto"; message D { Base base = 1; } '
    base = 'syntax = "proto3"; package d; message Base {}'
    text = 'syntax = "proto3"; import "d/d.proto"; message M { d.D d = 1; }'
    with_texts = parse(text, {"base.proto": base, "d/d.proto": dependency})
    described = registered_by_python(parse(dependency, {"base.proto": base}))
    with_descriptors = parse(text, {"base.proto": base, "d/d.proto": described})
    assert with_texts.canonical == with_descriptors.canonical
    assert [file.name for file in with_descriptors.files()] == ["base.proto", "d/d.proto", "default"]


def test_reference_may_have_the_name_of_the_schemas_own_file() -> None:
    schema = parse('syntax = "proto3"; import "default"; message M { D d = 1; }', {"default": "message D {}"})
    assert schema.name == "M"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('syntax = "proto3"; package a.b; enum E { Z = 0; } message M {} message N {}', "a.b.M"),
        ("message M {}", "M"),
        ('syntax = "proto3"; package a; enum E { Z = 0; }', "a.E"),
        ('syntax = "proto3"; import "google/protobuf/any.proto";', None),
    ],
)
def test_name_is_that_of_the_first_message_or_else_the_first_enum(text: str, name: str | None) -> None:
    assert parse(text, {}).name == name


def test_format_ignore_extensions_drops_custom_options_but_confluents() -> None:
    text = """syntax = "proto2"; import "google/protobuf/descriptor.proto"; import "confluent/meta.proto";
    extend google.protobuf.FieldOptions { optional string note = 50001; }
    message M { optional string a = 1 [(note) = "n", (confluent.field_meta).doc = "d", deprecated = true];
                extensions 100 to 199; extend M { optional int32 x = 100; } }"""
    printed = parse(text, {}).formatted("ignore_extensions")
    assert "note" not in printed
    assert "exten" not in printed
    assert "(confluent.field_meta)" in printed
    assert "deprecated = true" in printed


@pytest.mark.parametrize("form", ["", "default", "no such form"])
def test_unknown_format_gives_the_canonical_text(form: str) -> None:
    schema = parse("message M {}", {})
    assert schema.formatted(form) == schema.canonical


def test_package_is_the_format_of_its_type() -> None:
    schema = format_of(SchemaType.PROTOBUF).parse("message M {}", {})
    assert schema.type is SchemaType.PROTOBUF
    assert base64.b64decode(schema.formatted("serialized")).startswith(b"\n\x07default")
