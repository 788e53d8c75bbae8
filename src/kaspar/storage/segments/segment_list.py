"""The segments of a log in order."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from kaspar.storage.segments.segment import Segment


class Segments(NamedTuple):
    """The list of segments, published as one value, so that a thread never sees half of a change."""

    base_offsets: tuple[int, ...]
    all: tuple[Segment, ...]

    @staticmethod
    def of(segments: Sequence[Segment]) -> "Segments":
        return Segments(tuple(segment.base_offset for segment in segments), tuple(segments))

    def slot_of(self, offset: int) -> int:
        """The index of the segment that contains `offset`; 0 for an offset before all of them."""
        return max(bisect_right(self.base_offsets, offset) - 1, 0)

    def below(self, offset: int) -> tuple[Segment, ...]:
        """The segments without records at or above `offset`; never the last one."""
        return tuple(segment for segment, end in zip(self.all, self.base_offsets[1:], strict=False) if end <= offset)
