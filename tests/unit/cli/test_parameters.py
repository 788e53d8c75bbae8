"""What commands make of the text of their options."""

import pytest

from kaspar.cli.parameters import parse_partitions


def test_partitions_are_numbers_and_ranges() -> None:
    assert parse_partitions("3") == (3,)
    assert parse_partitions("5, 0-2,1") == (0, 1, 2, 5)
    for text in ("", "a", "1-", "-1", "1,,2"):
        with pytest.raises(ValueError, match="is not a list of partitions"):
            parse_partitions(text)
