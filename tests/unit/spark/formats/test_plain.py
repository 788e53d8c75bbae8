"""Bytes and strings, and the options that declare a format."""

import base64
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StringType

from kaspar.spark.formats import FormatOptions, decoder_of
from kaspar.spark.formats.decoder import rows_refused
from kaspar.spark.formats.plain import StringDecoder
from kaspar.spark.kafka_settings import InvalidOption
from kaspar.spark.writing.options import WriteOptions

BYTES = FormatOptions()


@dataclass(frozen=True)
class Declared:
    key_format: FormatOptions = BYTES
    value_format: FormatOptions = BYTES


def test_bytes_are_given_as_they_are() -> None:
    column = pa.array([b"\xff", None, b""], pa.binary())
    decoder = decoder_of(Declared(), "value")
    assert decoder.data_type == BinaryType()
    assert decoder.decode(column).values is column


def test_text_that_is_not_utf8_is_bad_and_its_neighbours_are_not() -> None:
    decoder = decoder_of(Declared(key_format=FormatOptions("string")), "key")
    assert decoder.data_type == StringType()
    done = decoder.decode(pa.array(["é".encode(), b"\xc3", None, b"", b"\xed\xa0\x80"], pa.binary()))
    assert done.values.to_pylist() == ["é", None, None, "", None]
    assert done.values.type == pa.string()
    assert done.bad == {1: "it is not text in UTF-8", 4: "it is not text in UTF-8"}


def test_a_part_of_a_column_counts_its_own_rows() -> None:
    column = pa.array([b"\xff", b"a", b"\xff"], pa.binary()).slice(1)
    assert list(StringDecoder().decode(column).bad) == [1]


def test_rows_refused_finds_each_and_no_other() -> None:
    refused = {0, 3, 4, 9}
    assert rows_refused(lambda start, end: not refused & set(range(start, end)), 0, 10) == sorted(refused)
    assert rows_refused(lambda start, end: False, 0, 0) == []


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"value.format": "xml"}, "Option 'value.format' must be one of bytes, string, json, avro, protobuf"),
        ({"value.format": "json"}, "'value.schema' must be given"),
        ({"value.schema": "a int"}, "'value.schema' has no effect while 'value.format' is bytes"),
        ({"value.format": "json", "value.schema": "a int", "value.message": "x"}, "'value.message' has no effect"),
        ({"value.format": "protobuf", "value.schema": "AA=="}, "'value.message' must be given"),
        ({"value.format": "avro", "value.schema": "/no/such.avsc"}, "names a file that cannot be read: /no/such.avsc"),
        ({"value.format": "protobuf", "value.message": "A", "value.schema": "/no/set"}, "names a file that cannot be"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: dict[str, str], complaint: str) -> None:
    with pytest.raises(InvalidOption, match=complaint):
        FormatOptions.of(options, "value")


@pytest.mark.parametrize(
    ("declared", "complaint"),
    [
        (
            FormatOptions("json", schema="a what"),
            "Option 'value.schema' cannot be used: .*'what' is not a supported",
        ),
        (FormatOptions("json", schema="a map<int,int>"), "type map<int,int> cannot be read from JSON"),
        (FormatOptions("avro", schema="{}"), "Option 'value.schema' cannot be used: the Avro schema is invalid"),
        (
            FormatOptions("protobuf", message="no.such.Class"),
            "Option 'value.message' cannot be used: .*cannot be imported",
        ),
        (FormatOptions("protobuf", message="json.JSONDecoder"), "is not a generated Protobuf message"),
        (FormatOptions("protobuf", message="X", descriptor_set=b""), "has no message X"),
        (FormatOptions("protobuf", message="X", descriptor_set=b"\xff"), "not a Protobuf descriptor set"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_with_its_option(declared: FormatOptions, complaint: str) -> None:
    with pytest.raises(InvalidOption, match=complaint):
        decoder_of(Declared(value_format=declared), "value")


def test_names_are_in_any_case_and_files_are_read_where_options_are(tmp_path: Path) -> None:
    schema = tmp_path / "order.avsc"
    schema.write_text('"long"')
    assert FormatOptions.of({"KEY.Format": "Avro", "key.SCHEMA": str(schema)}, "key").schema == '"long"'
    descriptors = tmp_path / "orders.bin"
    descriptors.write_bytes(b"some")
    for given in (str(descriptors), base64.b64encode(b"some").decode()):
        options = {"value.format": "protobuf", "value.message": "m", "value.schema": given}
        assert FormatOptions.of(options, "value").descriptor_set == b"some"


def test_a_sink_refuses_a_format_without_a_registry() -> None:
    for option in ("key.format", "Value.Format"):
        with pytest.raises(InvalidOption, match=r"so option 'schema\.registry\.url' must be given"):
            WriteOptions.of({"kafka.bootstrap.servers": "nowhere:1", "topic": "t", option: "json"})
