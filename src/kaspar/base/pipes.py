"""Requests to a child process and its responses, over its standard input and output, with a deadline.

A frame is its length in four bytes, and as many bytes. The pipe to the process does not block, so that a write of a
large request cannot exceed the deadline.
"""

import os
import selectors
import time
from typing import IO, Final

LENGTH_BYTES: Final = 4


class PeerEnded(Exception):
    """The process has closed its end, usually because it has ended."""


class Pipes:
    def __init__(self, requests: IO[bytes], responses: IO[bytes]) -> None:
        self._requests = requests.fileno()
        self._responses = responses.fileno()
        os.set_blocking(self._requests, False)

    def send(self, data: bytes, until: float) -> None:
        """Send all data by `until`, by the monotonic clock. Raises TimeoutError and PeerEnded, as does `receive`."""
        rest = memoryview(data)
        while rest:
            _wait(self._requests, selectors.EVENT_WRITE, until)
            try:
                rest = rest[os.write(self._requests, rest) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                raise PeerEnded from None

    def receive(self, size: int, until: float) -> bytes:
        data = bytearray()
        while len(data) < size:
            _wait(self._responses, selectors.EVENT_READ, until)
            chunk = os.read(self._responses, size - len(data))
            if not chunk:
                raise PeerEnded
            data += chunk
        return bytes(data)

    def ask(self, request: bytes, until: float) -> bytes:
        """Send a frame and receive one."""
        self.send(len(request).to_bytes(LENGTH_BYTES) + request, until)
        return self.receive(int.from_bytes(self.receive(LENGTH_BYTES, until)), until)


def _wait(pipe: int, event: int, until: float) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, event)
        if not selector.select(max(0.0, until - time.monotonic())):
            raise TimeoutError
