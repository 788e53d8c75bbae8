"""The answer that a broker gives most often: one partition was written, here are its offsets.

Two such answers about one topic differ in their numbers alone, so the rest of the bytes is kept, with places for the
numbers, for each topic and version. It is taken from a real answer: how answers are written is known in one place.
"""

import struct
from typing import Final

from kaspar.protocol.produce import PartitionProduceResponse

_SIZE_AND_CORRELATION_ID: Final = 8
_FIRST_WITH_LOG_START_OFFSET: Final = 5
_MARKS: Final = (-0x0102_0304, 0x0506, -0x0708_090A_0B0C_0D0E, -0x1112_1314_1516_1718, -0x2122_2324_2526_2728)

SAMPLE: Final = PartitionProduceResponse(*_MARKS)
"""What the answer must be about from which a form is taken."""


class OneWritten:
    __slots__ = ("_after", "_before", "_has_log_start_offset", "_pack", "_size")

    def __init__(self, version: int, sample: bytes) -> None:
        """`sample` is a whole frame, the answer about SAMPLE at this version."""
        self._has_log_start_offset = version >= _FIRST_WITH_LOG_START_OFFSET
        numbers = "ihqqq" if self._has_log_start_offset else "ihqq"
        rest = sample[_SIZE_AND_CORRELATION_ID:]
        self._before, found, self._after = rest.partition(struct.pack(f">{numbers}", *_MARKS[: len(numbers)]))
        assert found, "an answer holds the numbers it was given"
        layout = struct.Struct(f">ii{len(self._before)}s{numbers}{len(self._after)}s")
        self._pack = layout.pack
        self._size = layout.size - 4

    def fill(
        self, correlation_id: int, index: int, base_offset: int, log_append_time_ms: int, log_start_offset: int
    ) -> bytes:
        if self._has_log_start_offset:
            return self._pack(
                self._size,
                correlation_id,
                self._before,
                index,
                0,
                base_offset,
                log_append_time_ms,
                log_start_offset,
                self._after,
            )
        return self._pack(
            self._size, correlation_id, self._before, index, 0, base_offset, log_append_time_ms, self._after
        )
