"""A transport that only remembers, and the bytes that go through it."""

import asyncio
import struct
from collections.abc import Callable, Iterable

from kaspar.network.connection import Connection


class RecordingTransport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.sent = bytearray()
        self.when_closed: Callable[[], object] = lambda: None
        self.client_reads = True
        self._reading = True
        self._closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += data

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        for data in list_of_data:
            self.write(data)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True

    def is_reading(self) -> bool:
        return self._reading

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        """As a real transport does: it is gone when the client has taken what was written."""
        if not self._closing:
            self._closing = True
            if self.client_reads:
                self.when_closed()

    def abort(self) -> None:
        if not self._closing or not self.client_reads:
            self._closing = True
            self.when_closed()


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def receive(connection: Connection, data: bytes, *, at_once: int = 1 << 30) -> None:
    """Hand `data` over as a transport would: into the buffer the connection offers, as much as fits."""
    position = 0
    while position < len(data):
        buffer = memoryview(connection.get_buffer(-1))
        count = min(len(buffer), len(data) - position, at_once)
        buffer[:count] = data[position : position + count]
        position += count
        connection.buffer_updated(count)
