"""What a consumer sees of a fetch response, as records."""

import pytest

from kaspar.base.errors import MalformedBytes
from kaspar.records import Codec, ControlType, iter_visible
from tests.unit.records.test_column_reading import batch_at, marker_at


def offsets(
    data: bytes | bytearray, *, aborted: tuple[tuple[int, int], ...] = (), start: int = 0, until: int = 1000
) -> list[int]:
    return [record.offset for record in iter_visible(memoryview(data), aborted, start, until)]


@pytest.mark.parametrize("codec", Codec)
def test_a_range_may_start_and_end_within_batches(codec: Codec) -> None:
    data = batch_at(0, codec=codec) + batch_at(3, codec=codec) + batch_at(6, codec=codec)
    assert offsets(data, start=1, until=8) == [1, 2, 3, 4, 5, 6, 7]


def test_control_batches_and_aborted_transactions_are_left_out() -> None:
    data = batch_at(0, producer=7) + batch_at(3, producer=8) + marker_at(6, 7, ControlType.ABORT)
    data += batch_at(7, producer=7) + marker_at(10, 7, ControlType.COMMIT) + batch_at(11)
    assert offsets(data, aborted=((7, 0),)) == [3, 4, 5, 7, 8, 9, 11, 12, 13]


def test_a_part_of_a_batch_at_the_end_is_left_out() -> None:
    assert offsets((batch_at(0) + batch_at(3))[:-1]) == [0, 1, 2]


def test_a_damaged_batch_is_refused() -> None:
    damaged = batch_at(0)
    damaged[-1] ^= 1
    with pytest.raises(MalformedBytes, match="the batch at offset 0 is damaged"):
        offsets(damaged)
