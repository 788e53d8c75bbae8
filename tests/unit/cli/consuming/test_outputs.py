"""How records are printed."""

import json
import math
import re
import struct

import pytest

from kaspar.cli.consuming.format_string import compile_format
from kaspar.cli.consuming.outputs import Output, show, show_parts
from kaspar.cli.consuming.pretty import COLOURS, NO_COLOURS, pretty
from kaspar.cli.records.json_path import parse_json_path
from kaspar.cli.records.record import RawRecord, ReadRecord
from kaspar.cli.records.types import RecordType

RAW = RawRecord("orders", 2, 17, 1_700_000_000_000, b"alice", b'{"amount":12}', (("trace", b"7"), ("n", None)), 5)
TOMBSTONE = RawRecord("orders", 2, 18, 1_700_000_000_000, None, None)
BINARY = RawRecord("orders", 2, 19, 1_700_000_000_000, b"\xff", b"\xfe\x00", (("h", b"\xfd"),))
ESCAPES = re.compile(r"\x1b\[[\d;]*m")


def _read(raw: RawRecord) -> ReadRecord:
    return ReadRecord(raw, RecordType.AUTO, RecordType.AUTO)


def _line(output: Output, raw: RawRecord, *, meta: bool = False) -> bytes:
    return show(output, meta=meta, separator="\t", colours=NO_COLOURS, width=120)(_read(raw))


@pytest.mark.parametrize(
    ("output", "expected", "of_tombstone"),
    [
        (Output.VALUE, b'{"amount":12}\n', b"\n"),
        (Output.KEY_VALUE, b'alice\t{"amount":12}\n', b"\t\n"),
        (Output.HEX, b"7b22616d6f756e74223a31327d\n", b"\n"),
        (Output.BASE64, b"eyJhbW91bnQiOjEyfQ==\n", b"\n"),
    ],
)
def test_plain_lines(output: Output, expected: bytes, of_tombstone: bytes) -> None:
    assert _line(output, RAW) == expected
    assert _line(output, RAW, meta=True) == b"orders\t2\t17\t1700000000000\t" + expected
    assert _line(output, TOMBSTONE) == of_tombstone


def test_json_lines_have_parsed_values() -> None:
    assert json.loads(_line(Output.JSON, RAW)) == {
        "topic": "orders",
        "partition": 2,
        "offset": 17,
        "timestamp": 1_700_000_000_000,
        "key": "alice",
        "value": {"amount": 12},
        "headers": [{"name": "trace", "value": "7"}, {"name": "n", "value": None}],
    }
    described = json.loads(_line(Output.JSON, RAW, meta=True))
    assert (described["leader_epoch"], described["key_size"], described["value_size"]) == (5, 5, 13)
    assert described["timestamp_type"] == "CreateTime"


def test_json_lines_tell_null_and_bytes_apart() -> None:
    tombstone, binary = json.loads(_line(Output.JSON, TOMBSTONE)), json.loads(_line(Output.JSON, BINARY))
    assert (tombstone["key"], tombstone["value"]) == (None, None)
    assert (binary["key_base64"], binary["value_base64"]) == ("/w==", "/gA=")
    assert binary["headers"] == [{"name": "h", "value_base64": "/Q=="}]
    assert "value" not in binary


@pytest.mark.parametrize("text", ["null", '"quoted"', "NaN", "[Infinity]", "1e999", "plain", "[" * 100_000])
def test_json_lines_have_other_values_as_their_text(text: str) -> None:
    """The null of JSON is no tombstone, a string with quotes is not the same as one without, and NaN is no JSON."""
    line = _line(Output.JSON, RawRecord("t", 0, 0, 0, None, text.encode()))
    assert json.loads(line, parse_constant=pytest.fail)["value"] == text


def test_json_line_of_a_double_that_is_no_number() -> None:
    record = ReadRecord(RawRecord("t", 0, 0, 0, None, struct.pack(">d", math.nan)), RecordType.AUTO, RecordType.DOUBLE)
    line = show(Output.JSON, meta=False, separator="", colours=NO_COLOURS, width=80)(record)
    assert json.loads(line, parse_constant=pytest.fail)["value"] == "NaN"


def test_half_of_a_surrogate_pair_can_be_printed() -> None:
    raw = RawRecord("t", 0, 0, 0, None, rb'{"a": "\ud800"}')
    assert json.loads(_line(Output.JSON, raw))["value"] == {"a": "\ud800"}
    assert rb"\ud800" in _line(Output.PRETTY, raw)
    assert show_parts(parse_json_path("$.a"))(_read(raw)) == b"\\ud800\n"


def test_parts_are_printed_one_a_line() -> None:
    record = _read(RawRecord("t", 0, 0, 0, None, b'{"items": [{"id": "a"}, {"id": 2}, {}]}'))
    assert show_parts(parse_json_path("$.items[*].id"))(record) == b"a\n2\n"
    assert show_parts(parse_json_path("$.nothing"))(record) == b""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"%t %p %o %k %s\n", b'orders 2 17 alice {"amount":12}\n'),
        (r"%T\t%S\t%K\t%h", b"1700000000000\t13\t5\ttrace=7,n=NULL"),
        (r"100%%\x00\0\\", b"100%\0\0\\"),
        ("%R%s", b'\0\0\0\x0d{"amount":12}'),
        ("über", "über".encode()),
    ],
)
def test_format_string_is_that_of_kcat(text: str, expected: bytes) -> None:
    assert compile_format(text)(_read(RAW)) == expected


def test_format_string_of_a_tombstone() -> None:
    assert compile_format("%k|%s|%K|%S|%R")(_read(TOMBSTONE)) == b"||-1|-1|\xff\xff\xff\xff"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("%", "'%' ends with an incomplete '%'"),
        ("%z", "unknown format code '%z'; valid codes: %s"),
        ("\\", r"'\' ends with an incomplete '\'"),
        (r"\q", r"'\q' is not a valid escape; valid escapes: \n"),
        (r"\xg0", r"'\x' is not a valid escape"),
    ],
)
def test_mistake_in_a_format_string_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        compile_format(text)


def test_pretty_record_fits_a_line_or_has_a_block() -> None:
    wide = pretty(_read(RAW), meta=False, colours=NO_COLOURS, width=120)
    assert wide.startswith("orders/2@17  2023-11-1")
    assert wide.endswith('  alice  {"amount": 12}')
    narrow = pretty(_read(RAW), meta=False, colours=NO_COLOURS, width=30)
    assert narrow.splitlines()[1:] == ["  {", '    "amount": 12', "  }"]


def test_pretty_record_with_meta_has_headers_and_sizes() -> None:
    lines = pretty(_read(RAW), meta=True, colours=NO_COLOURS, width=200).splitlines()
    assert lines[1:4] == [
        "  CreateTime 1700000000000, key 5 bytes, value 13 bytes, leader epoch 5",
        "  trace: 7",
        "  n: null",
    ]


def test_colours_change_nothing_else() -> None:
    for width in (30, 120):
        painted = pretty(_read(RAW), meta=False, colours=COLOURS, width=width)
        assert painted != ESCAPES.sub("", painted)
        assert ESCAPES.sub("", painted) == pretty(_read(RAW), meta=False, colours=NO_COLOURS, width=width)


def test_record_cannot_control_the_terminal() -> None:
    raw = RawRecord("t", 0, 0, 0, b"\x1b]0;title\x07", '{"a": "\x9b2J\u202e"}'.encode(), (("\x1b[2J", b"\x1b[2J"),))
    text = pretty(_read(raw), meta=True, colours=NO_COLOURS, width=200)
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(text)
    assert r"\x1b]0;title\x07" in text


def test_pretty_text_of_several_lines_keeps_them() -> None:
    raw = RawRecord("t", 0, 0, 0, None, b"first\nsecond\tcolumn")
    assert pretty(_read(raw), meta=False, colours=NO_COLOURS, width=20).splitlines()[1:] == [
        "  first",
        r"  second\tcolumn",
    ]
