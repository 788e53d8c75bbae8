"""Messages are printed as json_format prints them, whatever is in them."""

from google.protobuf import json_format
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kaspar.schemas.protobuf.sources import compile_schema
from kaspar.serialization.protobuf_to_json import ToJson

TEXT = """
syntax = "proto3";
import "google/protobuf/struct.proto";
import "google/protobuf/wrappers.proto";
message All {
  int32 a = 1; int64 b = 2; bytes c = 3; string d = 4; float e = 5; double f = 6; bool g = 7; E h = 8;
  repeated All i = 9; map<string, All> j = 10; optional sint64 k = 11; oneof l { fixed32 m = 12; All n = 13; }
  google.protobuf.Value o = 14; google.protobuf.BoolValue p = 15; map<int64, E> q = 17;
}
enum E { ZERO = 0; ONE = 1; }
"""
FILES = FileDescriptorSet.FromString(compile_schema(TEXT, {})).file
POOL = DescriptorPool()
for file in FILES:
    POOL.Add(file)
MESSAGE = GetMessageClass(POOL.FindMessageTypeByName("All"))


@settings(max_examples=300, deadline=None)
@given(data=st.lists(st.tuples(st.integers(8, 143), st.binary(max_size=6)), max_size=12))
def test_message_is_printed_as_by_json_format(data: list[tuple[int, bytes]]) -> None:
    message = MESSAGE()
    for tag, rest in data:  # pieces that can be parsed are fields, others are left out
        piece = MESSAGE()
        try:
            piece.ParseFromString((tag.to_bytes() if tag < 128 else bytes((tag & 127 | 128, 1))) + rest)
        except DecodeError:
            continue
        message.MergeFrom(piece)
    try:
        expected = json_format.MessageToDict(message, always_print_fields_with_no_presence=True, descriptor_pool=POOL)
    except (ValueError, json_format.Error):
        assume(False)
        raise
    assert repr(_sorted(ToJson(POOL).of(MESSAGE.DESCRIPTOR)(message))) == repr(_sorted(expected))


def _sorted(value: object) -> object:
    match value:
        case dict():
            return {key: _sorted(value[key]) for key in sorted(value)}
        case list():
            return [_sorted(item) for item in value]
    return value
