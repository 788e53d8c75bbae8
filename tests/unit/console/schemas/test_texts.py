"""Schemas are formatted and compared for people."""

import pytest

from kaspar.console.problems import Unacceptable
from kaspar.console.schemas.texts import DiffLine, diff, formatted


def test_json_is_formatted_and_keeps_its_order() -> None:
    assert formatted('{"type":"record","a":1.10}', "AVRO") == '{\n  "type": "record",\n  "a": 1.10\n}'
    assert formatted('"int"', "AVRO") == '"int"'


def test_protobuf_and_broken_json_stay_as_they_are() -> None:
    assert formatted('syntax = "proto3";', "PROTOBUF") == 'syntax = "proto3";'
    assert formatted("{", "JSON") == "{"


def test_diff_shows_what_was_removed_and_added() -> None:
    assert diff("a\nb\nc", "a\nx\nc") == [
        DiffLine("same", "a", 1, 1),
        DiffLine("removed", "b", old=2),
        DiffLine("added", "x", new=2),
        DiffLine("same", "c", 3, 3),
    ]


def test_long_runs_of_same_lines_are_left_out() -> None:
    before = [str(number) for number in range(40)]
    after = [*before[:20], "new", *before[20:]]
    lines = diff("\n".join(before), "\n".join(after))
    assert [line.kind for line in lines] == ["skip", *["same"] * 3, "added", *["same"] * 3, "skip"]
    assert (lines[0].count, lines[-1].count) == (17, 17)


def test_same_texts_have_no_difference() -> None:
    assert [line.kind for line in diff("a\nb", "a\nb")] == ["skip"]
    assert diff("", "") == []


def test_schemas_that_are_too_long_are_refused() -> None:
    with pytest.raises(Unacceptable):
        diff("\n" * 6_000, "a")
