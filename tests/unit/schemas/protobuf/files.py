"""Texts of .proto files that together use every feature of the language, for tests of printing and of round trips."""

from typing import Final

PROTO2: Final = r"""
// Comments are not kept.
syntax = "proto2";
package shop.v1;
import "google/protobuf/descriptor.proto";
import "google/protobuf/timestamp.proto";
import public "confluent/meta.proto";
option optimize_for = SPEED;
option java_package = "com.shop";
option (file_settings) = { name: "x" list: ["a", "b"] numbers { key: "k" value: 1 } };
enum Color {
  option allow_alias = true;
  reserved 5 to 7, 10 to max;
  reserved "PINK";
  RED = 0;
  CRIMSON = 0 [deprecated = true, (confluent.enum_value_meta).doc = "it's \"dark\""];
  NONE = -1;
}
message Settings {
  optional string name = 1;
  repeated string list = 2;
  map<string, int32> numbers = 3;
  optional Color color = 4;
  optional double size = 5;
  optional bytes raw = 6;
  optional Settings inner = 7;
  optional group Limits = 8 { optional int32 upper = 1; }
  extensions 100 to 110 [verification = UNVERIFIED];
}
extend Settings { optional int64 extra = 100; }
extend google.protobuf.FileOptions { optional Settings file_settings = 50001; }
extend google.protobuf.FieldOptions {
  repeated int32 many = 50002;
  optional float ratio = 50003;
  optional Settings settings = 50004;
}
message Order {
  reserved 2, 15, 9 to 11;
  reserved "foo", "bar";
  option deprecated = true;
  message Line {
    required int32 number = 1;
    message Deep {}
    optional Deep relative = 2;
    optional .shop.v1.Order.Line.Deep absolute = 3;
  }
  map<string, Line> lines = 1;
  optional string text = 3 [default = "a\nb'\t\\\"", json_name = "T", deprecated = true];
  optional bytes raw = 4 [default = "\001\"x\377"];
  optional double low = 5 [default = -inf];
  optional float high = 6 [default = 1.5e10, (many) = 1, (many) = 2, (ratio) = 0.1,
    (settings) = { name: "n" color: NONE raw: "\377\000" size: nan inner { inner { name: "deep" } } Limits { upper: 3 }
                   [shop.v1.extra]: -7 }];
  optional Color color = 7 [default = CRIMSON];
  optional group Other = 23 { repeated Line x = 1; message Inside {} }
  oneof choice {
    string a = 20;
    Line b = 21;
    group Both = 22 { optional int32 q = 1; }
  }
  repeated int32 packed = 24 [packed = true];
  // A message of this scope hides the package, so this name needs its dot.
  optional .google.protobuf.Timestamp ts = 25;
  extensions 100 to 199, 300 to max;
  extend Order { optional string nested_extension = 100; }
  enum Kind { A = 1; }
  optional Kind kind = 26;
  message google {}
}
extend Order { optional group ExtensionGroup = 101 { optional int32 z = 1; } }
service Shop {
  option deprecated = true;
  rpc Get (Order) returns (stream Order.Line) { option idempotency_level = IDEMPOTENT; }
  rpc Put (stream Order) returns (Order);
}
service Empty {}
"""

PROTO3: Final = r"""
syntax = "proto3";
package a.b.c;
import "google/type/money.proto";
import "google/protobuf/any.proto";
import "confluent/meta.proto";
import "confluent/type/decimal.proto";
option go_package = "example.com/abc";
message Outer {
  option (confluent.message_meta) = { doc: "d" params: [{key: "b" value: "2"}, {key: "a" value: "1"}] tags: "PII" };
  int32 plain = 1;
  optional int32 present = 2;
  repeated string many = 3 [deprecated = true];
  map<int64, google.type.Money> prices = 4;
  oneof one { string left = 5; Inner right = 6; }
  oneof two { bytes up = 7; }
  google.protobuf.Any anything = 8;
  confluent.type.Decimal decimal = 9 [(confluent.field_meta) = {
    params: [{key: "scale" value: "2"}, {key: "precision" value: "5"}] }];
  Level level = 10;
  string snake_case_name = 11;
  string own_json_name = 12 [json_name = "other"];
  message Inner { message Deeper { Inner up = 1; Level level = 2; } Deeper down = 1; enum Level { X = 0; } }
  reserved 100, 200 to max;
  repeated double packed = 13 [packed = false];
}
enum Level { UNKNOWN = 0; HIGH = 1; LOW = -1; }
message string { .a.b.c.string same_name_as_a_scalar = 1; }
message Empty {}
"""

EDITION: Final = """
edition = "2023";
package e;
import "google/protobuf/descriptor.proto";
option features.field_presence = IMPLICIT;
option features.enum_type = CLOSED;
extend google.protobuf.MessageOptions {
  string note = 50001 [retention = RETENTION_SOURCE, targets = TARGET_TYPE_MESSAGE];
}
message M {
  int32 implicit = 1;
  int32 explicit = 2 [features.field_presence = EXPLICIT];
  int32 needed = 3 [features.field_presence = LEGACY_REQUIRED];
  N delimited = 4 [features.message_encoding = DELIMITED];
  repeated int32 expanded = 5 [features.repeated_field_encoding = EXPANDED];
  reserved foo, bar;
  reserved 9 to 11;
}
message N { option (note) = "n"; }
enum E { ONE = 1; }
"""

EDITION_2024: Final = """
edition = "2024";
package e;
import "google/protobuf/any.proto";
import option "confluent/meta.proto";
local message Hidden { int32 a = 1 [(confluent.field_meta).doc = "d"]; }
export message Shown { Hidden hidden = 1; google.protobuf.Any any = 2; export enum E { ZERO = 0; } }
"""

WITHOUT_PACKAGE: Final = """
message First { optional Second second = 1; optional int32 value = 2; }
message Second { map<string, First> firsts = 1; message Nested {} optional Nested nested = 2; }
"""

ALL: Final = {
    "proto2": PROTO2,
    "proto3": PROTO3,
    "edition": EDITION,
    "edition 2024": EDITION_2024,
    "without a package": WITHOUT_PACKAGE,
}
