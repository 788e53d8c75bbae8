"""Keeps the messages of the broker, of Java and of Spark's workers off the demo's screen."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_LAST_BYTES: Final = 4000


@contextmanager
def quiet_stderr() -> Iterator[None]:
    """What this process, and processes that it starts, write to stderr goes to a file. If the block fails, the end of
    that is shown: it may say why."""
    with tempfile.TemporaryFile() as messages:
        saved = os.dup(2)
        os.dup2(messages.fileno(), 2)
        failed = True
        try:
            yield
            failed = False
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            if failed:
                written = os.fstat(messages.fileno()).st_size
                os.write(2, os.pread(messages.fileno(), _LAST_BYTES, max(0, written - _LAST_BYTES)))
