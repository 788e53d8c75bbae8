"""The buffer in which a connection assembles a frame that arrives in parts.

Its memory grows with the bytes that arrive, never because of a length prefix alone: an untrusted client that announces
100 MB has to send them before they use memory.
"""

import struct
from typing import Final

FIRST_GROWTH_BYTES: Final = 64 * 1024
FRAME_STEP_BYTES: Final = 64 * 1024

FRAME_SIZE: Final = struct.Struct(">i")


class ReceiveBuffer:
    """`data[start:end]` has arrived and is not handled yet. It begins with a frame's length."""

    __slots__ = ("data", "end", "start")

    def __init__(self, source: bytearray, start: int, end: int) -> None:
        """Take over what has arrived in another buffer."""
        have = end - start
        self.data = bytearray(_capacity_for(source, start, have))
        self.data[:have] = memoryview(source)[start:end]
        self.start = 0
        self.end = have

    @property
    def is_empty(self) -> bool:
        return self.start == self.end

    def room(self) -> memoryview:
        """The space for the next bytes."""
        if self.end == len(self.data):
            self._make_room()
        return memoryview(self.data)[self.end : self._read_up_to()]

    def handled_up_to(self, position: int) -> None:
        self.start = position
        if position == self.end:
            self.start = self.end = 0

    def _read_up_to(self) -> int:
        """The end of the space for the next read. It ends with a large frame, so that the next one is not moved."""
        data = self.data
        if self.end - self.start >= FRAME_SIZE.size:
            frame_end: int = self.start + FRAME_SIZE.size + FRAME_SIZE.unpack_from(data, self.start)[0]
            if frame_end - self.start > FIRST_GROWTH_BYTES and self.end < frame_end:
                return min(frame_end, len(data))
        return len(data)

    def _make_room(self) -> None:
        """Move the incomplete frame of a full buffer to the front, into a larger buffer if needed."""
        have = self.end - self.start
        capacity = _capacity_for(self.data, self.start, have)
        if capacity <= len(self.data) and self.start > 0:
            self.data[:have] = self.data[self.start : self.end]
        else:
            larger = bytearray(capacity)
            larger[:have] = memoryview(self.data)[self.start : self.end]
            self.data = larger
        self.start, self.end = 0, have


def _capacity_for(buffer: bytearray, start: int, have: int) -> int:
    """How much space the frame at `start` may take: its full size once half has arrived, otherwise twice what has
    arrived.

    The full size is rounded up, so that the next frame, which may be a little larger, fits into the same buffer.
    """
    size = FRAME_SIZE.size
    frame = size + FRAME_SIZE.unpack_from(buffer, start)[0] if have >= size else FIRST_GROWTH_BYTES
    allowed = max(2 * have, FIRST_GROWTH_BYTES)
    return max(-(-frame // FRAME_STEP_BYTES) * FRAME_STEP_BYTES if frame <= allowed else allowed, have + 1)
