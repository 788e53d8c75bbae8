"""The Accept header."""

import pytest

from kaspar.web.media_types import accepted_ranges, media_type_name


@pytest.mark.parametrize(
    ("accept", "ranges"),
    [
        (None, [("*/*", 1.0)]),
        ("  ", [("*/*", 1.0)]),
        ("Application/JSON", [("application/json", 1.0)]),
        ("text/html; q=0.5, */* ;Q=0.1", [("text/html", 0.5), ("*/*", 0.1)]),
        ("text/html;level=1;q=0", [("text/html", 0.0)]),
        (",text/html,", [("text/html", 1.0)]),
    ],
)
def test_ranges_have_their_weights(accept: str | None, ranges: list[tuple[str, float]]) -> None:
    assert accepted_ranges(accept) == ranges


@pytest.mark.parametrize("weight", ["", "x", "nan", "inf", "2", "-1"])
def test_malformed_weight_counts_as_one(weight: str) -> None:
    assert accepted_ranges(f"text/html;q={weight}") == [("text/html", 1.0)]


def test_number_of_ranges_is_bounded() -> None:
    assert len(accepted_ranges("a/b," * 5_000)) == 100


def test_name_of_a_content_type() -> None:
    assert media_type_name(" Application/JSON ; charset=utf-8") == "application/json"
