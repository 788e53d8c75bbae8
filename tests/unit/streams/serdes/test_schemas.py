"""Avro by a schema, and Protobuf by a class."""

import json
from typing import Any

import fastavro
import pytest
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from kaspar.streams import serdes
from kaspar.streams.serdes import SerializationError

TRADE = {
    "type": "record",
    "name": "Trade",
    "fields": [
        {"name": "symbol", "type": "string"},
        {"name": "size", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}
VALUE = {"symbol": "ACME", "size": 100, "note": None}
WRITTEN = b"\x08ACME\xc8\x01\x00"  # text with its length, a number as zigzag varint, the first branch of the union


@pytest.mark.parametrize("schema", [TRADE, json.dumps(TRADE)], ids=["dict", "text"])
def test_avro_has_neither_header_nor_schema(schema: Any) -> None:
    serde = serdes.avro(schema)
    assert serde.serialize("t", VALUE) == WRITTEN
    assert serde.deserialize("t", WRITTEN) == VALUE


def test_avro_fills_in_defaults() -> None:
    assert serdes.avro(TRADE).serialize("t", {"symbol": "ACME", "size": 100}) == WRITTEN


@pytest.mark.parametrize(
    "value", [{"symbol": "ACME"}, VALUE | {"size": "many"}, VALUE | {"note": 5}, VALUE | {"sise": 1}, "ACME", 5]
)
def test_what_is_not_of_the_schema_is_refused(value: Any) -> None:
    with pytest.raises(SerializationError, match=r"The avro serde cannot write .* it does not match the schema"):
        serdes.avro(TRADE).serialize("t", value)


@pytest.mark.parametrize(
    ("data", "reason"), [(WRITTEN[:-2], "not Avro data of the schema"), (WRITTEN + b"\x00", "1 bytes are left over")]
)
def test_avro_reads_all_of_the_bytes(data: bytes, reason: str) -> None:
    with pytest.raises(SerializationError, match=reason):
        serdes.avro(TRADE).deserialize("t", data)


@pytest.mark.parametrize("schema", ["record", "{}", '{"type": "recorded", "name": "A"}'])
def test_an_invalid_schema_is_refused_at_once(schema: str) -> None:
    with pytest.raises(SerializationError, match="The Avro schema is invalid"):
        serdes.avro(schema)


def test_a_schema_is_parsed_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = TRADE | {"name": "ParsedOnce"}
    serdes.avro(schema)
    monkeypatch.delattr(fastavro, "parse_schema")
    assert serdes.avro(schema).serialize("t", VALUE) == WRITTEN


def test_protobuf_writes_and_reads_messages_of_its_class() -> None:
    serde = serdes.protobuf(Timestamp)
    assert serde.serialize("t", Timestamp(seconds=150, nanos=1)) == b"\x08\x96\x01\x10\x01"
    assert serde.deserialize("t", b"\x08\x96\x01\x10\x01") == Timestamp(seconds=150, nanos=1)


def test_equal_messages_have_equal_bytes() -> None:
    one, other = Struct(), Struct()
    names = [f"field-{number}" for number in range(20)]
    for name in names:
        one[name] = 1
    for name in reversed(names):
        other[name] = 1
    assert serdes.protobuf(Struct).serialize("t", one) == serdes.protobuf(Struct).serialize("t", other)


def test_protobuf_refuses_other_messages_and_other_bytes() -> None:
    with pytest.raises(
        SerializationError, match=r"protobuf\(Timestamp\) serde cannot write a Struct .*protobuf\(Struct\)"
    ):
        serdes.protobuf(Timestamp).serialize("t", Struct())
    with pytest.raises(SerializationError, match=r"protobuf\(Timestamp\) serde cannot read 1 bytes"):
        serdes.protobuf(Timestamp).deserialize("t", b"\x08")


def test_a_class_that_is_no_message_is_refused() -> None:
    with pytest.raises(SerializationError, match="takes a message class"):
        serdes.protobuf(dict)
