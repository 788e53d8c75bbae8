"""From what was read to a record."""

import base64
import json

import pytest

from kaspar.cli.consuming.outputs import Output, show
from kaspar.cli.consuming.pretty import NO_COLOURS
from kaspar.cli.producing.reading import Entry
from kaspar.cli.producing.shaping import NewRecord, Shape, field_text, parse_header
from kaspar.cli.records.record import RawRecord, ReadRecord
from kaspar.cli.records.types import RecordType

ORDER = {"id": 7, "customer": {"name": "Ada"}, "a.b": "dotted", "tags": ["x", "y"]}
ENTRY = Entry("line 1", json.dumps(ORDER), ORDER)


def test_plain_line_has_no_key() -> None:
    assert Shape().record(Entry("line 1", "hello")) == NewRecord("line 1", None, b"hello")


def test_options_apply_to_every_record() -> None:
    shape = Shape(key="k", headers=(("a", b"1"),), partition=2, timestamp_ms=5)
    assert shape.record(Entry("line 1", "v")) == NewRecord("line 1", b"k", b"v", (("a", b"1"),), 2, 5)


def test_key_of_the_entry_wins() -> None:
    assert Shape(key="all").record(Entry("line 1", "v", key="own")).key == b"own"


def test_separator_divides_at_its_first_place() -> None:
    assert Shape(key_separator="::").record(Entry("line 1", "k::v::w")) == NewRecord("line 1", b"k", b"v::w")
    with pytest.raises(ValueError, match="no '::' between key and value"):
        Shape(key_separator="::").record(Entry("line 1", "k:v"))


@pytest.mark.parametrize(
    ("field", "key"), [("id", b"7"), ("customer.name", b"Ada"), ("$.tags[0]", b"x"), ("a.b", b"dotted")]
)
def test_key_field_is_a_name_or_a_path(field: str, key: bytes) -> None:
    record = Shape(key_field=field).record(ENTRY)
    assert (record.key, record.value) == (key, json.dumps(ORDER).encode())


def test_field_that_is_missing_or_ambiguous_is_refused() -> None:
    with pytest.raises(ValueError, match="no field 'nobody'"):
        field_text(ORDER, "nobody")
    with pytest.raises(ValueError, match="matches 2 fields"):
        field_text(ORDER, "$.tags[*]")
    with pytest.raises(ValueError, match="no field 'id'"):
        field_text("text", "id")


def test_value_field_and_types() -> None:
    shape = Shape(key_field="customer.name", value_field="id", value_type=RecordType.LONG)
    assert shape.record(ENTRY) == NewRecord("line 1", b"Ada", b"\0" * 7 + b"\7")


@pytest.mark.parametrize("text", ["", "null"])
def test_tombstones_are_sent_only_if_asked_for(text: str) -> None:
    assert Shape(tombstones=True).record(Entry("line 1", text)).value is None
    assert Shape().record(Entry("line 1", text)).value == text.encode()


def test_bytes_that_are_no_text_are_sent_as_they_are() -> None:
    assert Shape().record(Entry("line 1", b"\xff".decode(errors="surrogateescape"))).value == b"\xff"


def test_headers_are_names_with_values() -> None:
    assert parse_header("a=b=c") == ("a", b"b=c")
    assert parse_header("a=") == ("a", b"")
    assert parse_header("a") == ("a", None)
    with pytest.raises(ValueError, match="is not a header"):
        parse_header("=b")


@pytest.mark.parametrize(
    "raw",
    [
        RawRecord("t", 1, 5, 1000, b"k", b'{"a": [1]}', (("h", b"1"), ("n", None))),
        RawRecord("t", 1, 5, 1000, b"k", b"text"),
        RawRecord("t", 1, 5, 1000, b"k", None),
        RawRecord("t", 1, 5, 1000, b"k", b"null"),
        RawRecord("t", 1, 5, 1000, b"k", b'"quoted"'),
        RawRecord("t", 1, 5, 1000, b"k", rb'{"a": "\ud800"}'),
        RawRecord("t", 1, 5, 1000, b"\xff\0", b"\xfe\0", (("h", b"\xfd"),)),
    ],
)
def test_what_consume_prints_as_json_can_be_produced(raw: RawRecord) -> None:
    line = show(Output.JSON, meta=False, separator="", colours=NO_COLOURS, width=80)(
        ReadRecord(raw, RecordType.AUTO, RecordType.AUTO)
    )
    record = Shape().printed_record(Entry("line 1", line.decode(), json.loads(line)))
    assert record == NewRecord("line 1", raw.key, raw.value, raw.headers, None, 1000)


def test_strings_of_json_are_copied_with_their_type() -> None:
    entry = Entry("line 1", "", {"value": "text"})
    assert Shape(value_type=RecordType.JSON).printed_record(entry).value == b'"text"'


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (17, "not a record"),
        ({"key": "k"}, "not a record"),
        ({"value": "v", "headers": {"a": "b"}}, "headers are not a list"),
        ({"value": "v", "timestamp": "now"}, "is not a number of milliseconds"),
        ({"value": "v", "timestamp": 2**64}, "is too large"),
        ({"value": "v", "headers": [{"name": "\ud800"}]}, "is not UTF-8 text"),
        ({"value_base64": "!"}, "is not base64"),
    ],
)
def test_json_that_is_no_printed_record_is_refused(fields: object, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Shape().printed_record(Entry("line 1", "", fields))


def test_options_win_over_what_was_printed() -> None:
    fields = {"key": "k", "value_base64": base64.b64encode(b"v").decode(), "timestamp": 7, "partition": 3}
    record = Shape(key="new", partition=1, timestamp_ms=9).printed_record(Entry("line 1", "", fields))
    assert record == NewRecord("line 1", b"new", b"v", (), 1, 9)
