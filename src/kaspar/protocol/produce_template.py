"""The Produce response that a broker sends most often: one partition was written, at these offsets.

Two such responses for one topic differ only in their numbers, so the other bytes are stored for each topic and version.
They are taken from a real response, so that the encoding is defined in one place. Not used with a throttle time.
"""

import struct
from typing import Final

from kaspar.base.errors import invariant
from kaspar.protocol.shapes import PartitionProduceResponse

_SIZE_AND_CORRELATION_ID: Final = 8
_FIRST_WITH_LOG_START_OFFSET: Final = 5
_MARKS: Final = (-0x0102_0304, 0x0506, -0x0708_090A_0B0C_0D0E, -0x1112_1314_1516_1718, -0x2122_2324_2526_2728)

SAMPLE: Final = PartitionProduceResponse(*_MARKS)
"""The result in the response from which the bytes are taken."""


class ProduceResponseTemplate:
    __slots__ = ("_after", "_before", "_has_log_start_offset", "_pack", "_size")

    def __init__(self, version: int, sample: bytes) -> None:
        """`sample` is a whole frame: the response with SAMPLE at this version."""
        self._has_log_start_offset = version >= _FIRST_WITH_LOG_START_OFFSET
        numbers = "ihqqq" if self._has_log_start_offset else "ihqq"
        rest = sample[_SIZE_AND_CORRELATION_ID:]
        self._before, found, self._after = rest.partition(struct.pack(f">{numbers}", *_MARKS[: len(numbers)]))
        invariant(bool(found), "a response contains the numbers it was given")
        layout = struct.Struct(f">ii{len(self._before)}s{numbers}{len(self._after)}s")
        self._pack = layout.pack
        self._size = layout.size - 4

    def fill(
        self, correlation_id: int, index: int, base_offset: int, log_append_time_ms: int, log_start_offset: int
    ) -> bytes:
        """Build the response for this batch: the same bytes as those of the normal encoding."""
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
