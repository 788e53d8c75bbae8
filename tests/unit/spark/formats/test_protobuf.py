"""Protobuf messages in columns: types, presence, and what is bad. Descriptors are made here, without a compiler."""

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

from kaspar.spark.formats.data_types import arrow_type_of
from kaspar.spark.formats.protobuf import ProtobufDecoder, message_of_class, message_of_descriptor_set
from kaspar.spark.kafka_settings import InvalidOption

SCALARS = {
    "int32": Field.TYPE_INT32, "sint64": Field.TYPE_SINT64, "uint32": Field.TYPE_UINT32, "uint64": Field.TYPE_UINT64,
    "double": Field.TYPE_DOUBLE, "float": Field.TYPE_FLOAT, "bool": Field.TYPE_BOOL, "string": Field.TYPE_STRING,
    "bytes": Field.TYPE_BYTES,
}  # fmt: skip


def descriptor_set() -> bytes:
    """shop.Order with one field of each kind; shop.Tree, which holds itself; shop.Strict, of proto2."""
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    file.dependency.extend(["google/protobuf/timestamp.proto", "google/protobuf/duration.proto"])
    color = file.enum_type.add(name="Color")
    color.value.add(name="RED", number=0)
    color.value.add(name="BLUE", number=1)
    item = file.message_type.add(name="Item")
    item.field.add(name="sku", number=1, type=Field.TYPE_STRING, label=Field.LABEL_OPTIONAL)
    order = file.message_type.add(name="Order")

    def add(name: str, kind: Any, *, repeated: bool = False, type_name: str | None = None) -> Any:
        label = Field.LABEL_REPEATED if repeated else Field.LABEL_OPTIONAL
        return order.field.add(name=name, number=len(order.field) + 1, type=kind, label=label, type_name=type_name)

    for name, kind in SCALARS.items():
        add(f"a_{name}", kind)
    add("color", Field.TYPE_ENUM, type_name=".shop.Color")
    add("item", Field.TYPE_MESSAGE, type_name=".shop.Item")
    add("items", Field.TYPE_MESSAGE, repeated=True, type_name=".shop.Item")
    add("numbers", Field.TYPE_INT32, repeated=True)
    add("at", Field.TYPE_MESSAGE, type_name=".google.protobuf.Timestamp")
    add("took", Field.TYPE_MESSAGE, type_name=".google.protobuf.Duration")
    perhaps = add("perhaps", Field.TYPE_INT32)
    perhaps.proto3_optional, perhaps.oneof_index = True, 0
    order.oneof_decl.add(name="_perhaps")
    add("stock", Field.TYPE_MESSAGE, repeated=True, type_name=".shop.Order.StockEntry")
    entry = order.nested_type.add(name="StockEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=Field.TYPE_STRING, label=Field.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=Field.TYPE_MESSAGE, label=Field.LABEL_OPTIONAL, type_name=".shop.Item")

    tree = file.message_type.add(name="Tree")
    tree.field.add(name="left", number=1, type=Field.TYPE_MESSAGE, label=Field.LABEL_OPTIONAL, type_name=".shop.Tree")

    old = descriptor_pb2.FileDescriptorProto(name="old.proto", package="shop", syntax="proto2")
    strict = old.message_type.add(name="Strict")
    strict.field.add(name="id", number=1, type=Field.TYPE_INT32, label=Field.LABEL_REQUIRED)
    strict.field.add(name="city", number=2, type=Field.TYPE_STRING, label=Field.LABEL_OPTIONAL)
    return bytes(descriptor_pb2.FileDescriptorSet(file=[file, old]).SerializeToString())


Order: Any = message_of_descriptor_set(descriptor_set(), "shop.Order")
Item: Any = message_of_descriptor_set(descriptor_set(), "shop.Item")


def decode(*records: bytes | None) -> Any:
    decoder = ProtobufDecoder(Order)
    done = decoder.decode(pa.array(records, pa.binary()))
    assert done.values.type == arrow_type_of(decoder.data_type)
    return done


def test_each_type_is_spark_s_and_none_changes_a_value() -> None:
    assert ProtobufDecoder(Order).data_type.simpleString() == (
        "struct<a_int32:int,a_sint64:bigint,a_uint32:bigint,a_uint64:decimal(20,0),a_double:double,a_float:float,"
        "a_bool:boolean,a_string:string,a_bytes:binary,color:string,item:struct<sku:string>,"
        "items:array<struct<sku:string>>,numbers:array<int>,at:timestamp,took:interval day to second,perhaps:int,"
        "stock:map<string,struct<sku:string>>>"
    )
    order = Order(
        a_int32=-5, a_sint64=-(2**63), a_uint32=2**32 - 1, a_uint64=2**64 - 1, a_double=0.1, a_float=0.5, a_bool=True,
        a_string="é", a_bytes=b"\xff", color=1, item={"sku": "i"}, items=[{"sku": "x"}, {}], numbers=[3, 0], perhaps=0,
        at={"seconds": 1, "nanos": 1_999}, took={"seconds": 90},
        stock={"k": {"sku": "s"}},
    )  # fmt: skip
    done = decode(order.SerializeToString())
    assert done.bad == {}
    assert done.values[0].as_py() == {
        "a_int32": -5, "a_sint64": -(2**63), "a_uint32": 2**32 - 1, "a_uint64": Decimal(2**64 - 1), "a_double": 0.1,
        "a_float": 0.5, "a_bool": True, "a_string": "é", "a_bytes": b"\xff", "color": "BLUE", "item": {"sku": "i"},
        "items": [{"sku": "x"}, {"sku": ""}], "numbers": [3, 0], "perhaps": 0,
        "at": datetime.datetime(1970, 1, 1, 0, 0, 1, 1, tzinfo=datetime.UTC), "took": datetime.timedelta(seconds=90),
        "stock": [("k", {"sku": "s"})],
    }  # fmt: skip


def test_a_missing_field_is_null_where_presence_is_tracked_and_its_default_elsewhere() -> None:
    nothing = decode(b"").values[0].as_py()
    assert [name for name, value in nothing.items() if value is None] == ["item", "at", "took", "perhaps"]
    assert (nothing["a_int32"], nothing["a_string"], nothing["color"], nothing["items"]) == (0, "", "RED", [])


def test_an_enum_s_number_without_a_name_is_the_number() -> None:
    assert decode(Order(color=7).SerializeToString()).values[0].as_py()["color"] == "7"


def test_bad_records_are_named_and_spoil_nothing() -> None:
    good = Order(a_int32=1, at={"seconds": 1}).SerializeToString()
    too_far = Order(at={"seconds": 2**62}).SerializeToString()
    done = decode(good, b"\xff", None, too_far, good)
    assert [value and value["a_int32"] for value in done.values.to_pylist()] == [1, None, None, None, 1]
    assert list(done.bad) == [1, 3]
    assert done.bad[1].startswith("it is not a shop.Order in Protobuf")
    assert done.bad[3] == "it has a timestamp or duration that overflows microseconds"


def test_a_required_field_that_is_missing_is_bad() -> None:
    strict = message_of_descriptor_set(descriptor_set(), "shop.Strict")
    done = ProtobufDecoder(strict).decode(pa.array([b"", b"\x08\x05"], pa.binary()))
    assert done.values.to_pylist() == [None, {"id": 5, "city": None}]
    assert done.bad == {0: "a required field is missing: id"}


def test_a_string_of_proto2_that_is_not_utf_8_is_bad() -> None:
    strict = message_of_descriptor_set(descriptor_set(), "shop.Strict")
    done = ProtobufDecoder(strict).decode(pa.array([b"\x08\x05\x12\x01\xff", b"\x08\x05\x12\x01a"], pa.binary()))
    assert done.values.to_pylist() == [None, {"id": 5, "city": "a"}]
    assert done.bad == {0: "it has a string that is not UTF-8"}


class Marked:
    """One byte before each message, as a registry would have it."""

    def find(self, record: bytes) -> tuple[Any, int]:
        return Item, 1


def test_a_lookup_says_where_a_message_begins() -> None:
    decoder = ProtobufDecoder(Item, lookup=Marked())
    assert decoder.decode(pa.array([b"\0" + Item(sku="a").SerializeToString()])).values.to_pylist() == [{"sku": "a"}]


def test_a_generated_class_is_found_by_its_import_path() -> None:
    found = message_of_class("google.protobuf.timestamp_pb2.Timestamp")
    assert ProtobufDecoder(found).data_type.simpleString() == "struct<seconds:bigint,nanos:int>"


def test_a_message_that_holds_itself_is_refused() -> None:
    with pytest.raises(InvalidOption, match=r"shop.Tree is recursive"):
        ProtobufDecoder(message_of_descriptor_set(descriptor_set(), "shop.Tree"))
