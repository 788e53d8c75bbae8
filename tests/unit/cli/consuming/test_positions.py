"""Where a consumer begins and ends."""

from datetime import UTC, datetime

import pytest

from kaspar.cli.consuming.positions import (
    AtOffset,
    AtTime,
    End,
    Last,
    Position,
    Start,
    parse_position,
    parse_until,
)

NOW = datetime(2026, 11, 17, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("start", Start()),
        ("earliest", Start()),
        ("END", End()),
        ("0", AtOffset(0)),
        ("1234", AtOffset(1234)),
        ("-10", Last(10)),
        ("1763374800000", AtTime(1_763_374_800_000)),
        ("@1000", AtTime(1000)),
        ("1 second ago", AtTime(1_794_909_599_000)),
        ("2026-11-17T10:00Z", AtTime(1_794_909_600_000)),
    ],
)
def test_position_is_understood(text: str, expected: Position) -> None:
    assert parse_position(text, NOW) == expected


def test_what_is_no_position_is_refused() -> None:
    with pytest.raises(ValueError, match="neither start, end, an offset, -N for the last N, nor a time"):
        parse_position("somewhere", NOW)
    with pytest.raises(ValueError, match="neither end nor a time"):
        parse_until("start", NOW)


def test_until_is_the_end_or_a_time() -> None:
    assert parse_until("end", NOW) == End()
    assert parse_until("@1000", NOW) == AtTime(1000)
