"""Lines of standard input as records. tests/compat/commands compares whole runs with Kafka's command."""

import pytest

from kaspar.tools.command_line import CommandFailed
from kaspar.tools.console_producer.lines import InputRecord, LineParser, LineSplitter
from kaspar.tools.console_producer.sending import largest_size


def parse(line: bytes, **properties: str) -> InputRecord:
    """`_` in a name stands for a dot."""
    return LineParser({name.replace("_", "."): value for name, value in properties.items()}).parse(line, 1)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_lines_are_the_same_whatever_the_pieces(size: int) -> None:
    text = b"one\ntwo\r\nthree\rfour\n\n\r\n\rlast"
    splitter = LineSplitter()
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    lines = [line for piece in pieces for line in splitter.feed(piece)]
    assert [*lines, *splitter.finish()] == [b"one", b"two", b"three", b"four", b"", b"", b"", b"last"]


def test_line_is_a_value_unless_told_otherwise() -> None:
    assert LineParser({}).values_only
    assert parse(b"a\tb") == InputRecord(None, b"a\tb", [])


def test_bytes_that_are_no_text_are_kept() -> None:
    assert parse(b"\xff\tv\xfe", parse_key="TRUE") == InputRecord(b"\xff", b"v\xfe", [])


def test_key_ends_at_the_first_separator() -> None:
    assert parse(b"k::v::w", parse_key="true", key_separator="::") == InputRecord(b"k", b"v::w", [])


def test_headers_may_be_split_by_a_pattern() -> None:
    record = parse(b"a:1;;b:2;\tv", parse_headers="true", headers_separator=";+")
    assert record == InputRecord(None, b"v", [("a", b"1"), ("b", b"2")])


def test_fields_equal_to_the_marker_are_null() -> None:
    record = parse(b"h:-\t-\t-", parse_headers="true", parse_key="true", null_marker="-")
    assert record == InputRecord(None, None, [("h", None)])
    assert parse(b"-\tv", parse_headers="true", null_marker="-") == InputRecord(None, b"v", [])


def test_lines_without_separators() -> None:
    with pytest.raises(CommandFailed, match="No key separator found on line number 1: 'x'"):
        parse(b"x", parse_key="true")
    assert parse(b"x", parse_key="true", ignore_error="true") == InputRecord(None, b"x", [])
    assert parse(b"h\tx", parse_headers="true", ignore_error="true") == InputRecord(None, b"x", [("h", None)])


def test_separators_must_differ() -> None:
    with pytest.raises(CommandFailed, match=r"headers.delimiter and headers.separator may not be equal"):
        LineParser({"headers.delimiter": ","})


def test_size_of_a_record_as_java_estimates_it() -> None:
    assert largest_size(InputRecord(None, b"1111111", [])) == 92
