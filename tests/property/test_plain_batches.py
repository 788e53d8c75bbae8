"""A coordinator's batch is built on a short way, compiled or not, and has the bytes of any other batch."""

import importlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaspar.records import Record, build_batch, build_plain_batch

interpreted = importlib.import_module("kaspar.records.core.building")

Records = list[tuple[bytes, bytes | None]]
RECORDS = st.lists(st.tuples(st.binary(max_size=200), st.none() | st.binary(max_size=9000)), min_size=1, max_size=150)


@pytest.mark.parametrize("build", [build_plain_batch, interpreted.build_plain_batch], ids=["in use", "interpreted"])
@given(records=RECORDS, timestamp=st.integers(0, 1 << 50))
def test_it_is_the_batch_that_build_batch_makes(
    build: Callable[[Records, int], bytearray], records: Records, timestamp: int
) -> None:
    assert build(records, timestamp) == build_batch([Record(timestamp, *each) for each in records])


def test_a_batch_holds_at_least_one_record() -> None:
    with pytest.raises(ValueError, match="at least one"):
        build_plain_batch([], 0)
