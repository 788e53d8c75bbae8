"""Which fetched records are checked on the event loop: those whose check takes less time than the way to a thread."""

import pytest

from kaspar.broker.replication.fetcher import (
    CHECKED_INLINE_BYTES,
    FEW_BATCHES,
    FEW_BATCHES_INLINE_BYTES,
    is_quick_to_check,
)
from kaspar.records import Record, build_batch


def _records(size: int, batch_bytes: int) -> memoryview:
    batch = bytes(build_batch([Record(0, None, b"x" * batch_bytes)]))
    return memoryview((batch * (size // len(batch) + 1))[:size])


@pytest.mark.parametrize(
    ("size", "batch_bytes", "is_quick"),
    [
        (CHECKED_INLINE_BYTES, 10, True),
        (CHECKED_INLINE_BYTES + 1, 10, False),
        (FEW_BATCHES_INLINE_BYTES, FEW_BATCHES_INLINE_BYTES // FEW_BATCHES, True),
        (FEW_BATCHES_INLINE_BYTES, FEW_BATCHES_INLINE_BYTES // FEW_BATCHES // 2, False),
        (FEW_BATCHES_INLINE_BYTES + 1, FEW_BATCHES_INLINE_BYTES, False),
    ],
)
def test_small_responses_and_those_of_few_batches_are_checked_on_the_loop(
    size: int, batch_bytes: int, is_quick: bool
) -> None:
    assert is_quick_to_check(_records(size, batch_bytes)) is is_quick
