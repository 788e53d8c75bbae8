"""Prints lines of JSON on standard output, and turns SIGTERM into an exception."""

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Final

from kaspar.tools.message_json import json_line

TERMINATED: Final = 128 + signal.SIGTERM


class Terminated(BaseException):
    """Raised on SIGTERM. Not an Exception: like Ctrl-C it ends the command wherever it is."""


def emit(name: str, **fields: object) -> None:
    line = json_line({"timestamp": time.time_ns() // 1_000_000, "name": name, **fields})
    print(line, flush=True)


@contextlib.contextmanager
def termination_raises() -> Iterator[None]:
    """Within this context, SIGTERM raises Terminated in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handler(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise Terminated

    before = signal.signal(signal.SIGTERM, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def report(text: object) -> None:
    print(text, file=sys.stderr, flush=True)
