"""Normalized text, as of Confluent's `ProtobufSchemaUtils.toNormalizedString`."""

import pytest

from kaspar.schemas.protobuf import parse
from tests.unit.schemas.protobuf import files

WRITTEN = """
syntax = "proto3";
package a.b;
import "google/type/date.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/any.proto";
import "confluent/meta.proto";
option java_package = "p";
option go_package = "g";
message M {
  reserved 30, 20 to 22;
  reserved "z", "y";
  N n = 3 [deprecated = true, (confluent.field_meta).doc = "d"];
  google.type.Date day = 2;
  map<string, N> by_name = 1;
  oneof second { string d = 12; string c = 10; }
  oneof first { string b = 8; N a = 7; }
  enum Level { ZERO = 0; TWO = 2; ONE = 1; MINUS = -1; }
}
message N {}
"""

NORMALIZED = """\
syntax = "proto3";
package a.b;

import "confluent/meta.proto";
import "google/protobuf/any.proto";
import "google/protobuf/timestamp.proto";
import "google/type/date.proto";

option go_package = "g";
option java_package = "p";

message M {
  reserved 20 to 22;
  reserved 30;
  reserved "y";
  reserved "z";

  map<string, .a.b.N> by_name = 1;
  .google.type.Date day = 2;
  .a.b.N n = 3 [
    (confluent.field_meta) = {
      doc: "d"
    },
    deprecated = true
  ];

  oneof first {
    .a.b.N a = 7;
    string b = 8;
  }
  oneof second {
    string c = 10;
    string d = 12;
  }

  enum Level {
    ZERO = 0;
    MINUS = -1;
    ONE = 1;
    TWO = 2;
  }
}
message N {}
"""


def test_normalized_text_is_sorted_and_has_full_names() -> None:
    assert parse(WRITTEN, {}).normalized == NORMALIZED


@pytest.mark.parametrize("text", files.ALL.values(), ids=files.ALL)
def test_normalized_text_is_valid_and_normalized(text: str) -> None:
    normalized = parse(text, {}).normalized
    assert parse(normalized, {}).normalized == normalized


def test_syntax_proto2_is_not_written() -> None:
    written = parse('syntax = "proto2"; message M {}', {})
    assert written.normalized == parse("message M {}", {}).normalized == "\nmessage M {}\n"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "message M { optional int32 a = 1; optional int32 b = 2; }",
            "message M { optional int32 b = 2; optional int32 a = 1; }",
        ),
        ("enum E { A = 1; B = 2; }", "enum E { B = 2; A = 1; }"),
        ("message M { extensions 5, 3; }", "message M { extensions 3; extensions 5; }"),
        ("message M { reserved 5, 3; }", "message M { reserved 3; reserved 5; }"),
        ('option java_package = "j"; option go_package = "g";', 'option go_package = "g"; option java_package = "j";'),
    ],
)
def test_order_of_independent_parts_makes_no_difference(one: str, other: str) -> None:
    assert parse(one, {}).normalized == parse(other, {}).normalized


def test_order_of_messages_makes_a_difference() -> None:
    """Message indexes count them."""
    one, other = parse("message A {} message B {}", {}), parse("message B {} message A {}", {})
    assert one.normalized != other.normalized
