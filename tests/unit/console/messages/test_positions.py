"""Positions as the page writes them."""

import pytest

from kaspar.console.messages.reading.positions import (
    AtOffset,
    AtTime,
    Cursor,
    End,
    Position,
    parse_partitions,
    parse_position,
)
from kaspar.console.problems import Unacceptable


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("newest", End.NEWEST),
        ("oldest", End.OLDEST),
        ("offset:17", AtOffset(17)),
        ("time:1700000000000", AtTime(1_700_000_000_000)),
        ("cursor:0:17,3:4", Cursor({0: 17, 3: 4})),
    ],
)
def test_position(text: str, position: Position) -> None:
    assert parse_position(text) == position


@pytest.mark.parametrize(
    "text",
    [
        "",
        "latest",
        "newest:1",
        "offset:",
        "offset:-1",
        "offset:99999999999999999999",
        "time:now",
        "cursor:",
        "cursor:0",
    ],
)
def test_other_positions_are_refused(text: str) -> None:
    with pytest.raises(Unacceptable):
        parse_position(text)


def test_a_cursor_is_written_as_it_is_read() -> None:
    assert parse_position(f"cursor:{Cursor({3: 4, 0: 17})}") == Cursor({0: 17, 3: 4})


def test_partitions() -> None:
    assert parse_partitions("") == ()
    assert parse_partitions("3,1,1") == (1, 3)
    with pytest.raises(Unacceptable):
        parse_partitions("1,x")
