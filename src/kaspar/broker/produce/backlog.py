"""Counts batches that wait to be appended: for their checks (broker/produce/appender.py) or for their transaction
(broker/produce/unverified.py). Their number and their bytes are limited: above the limits the broker reads no more
requests until half of them are done.
"""

from collections.abc import Callable


class Backlog:
    def __init__(self, *, overload: Callable[[bool], None]) -> None:
        """`overload` is called when too much is waiting, and when it no longer is."""
        self._overload = overload
        self._overloaded = False
        self.limit_bytes = -1
        """`queued.max.request.bytes`; negative for no limit."""
        self.limit_count = 500
        """`queued.max.requests`. It limits only the batches that wait here; all other requests are handled as they
        arrive.
        """
        self.waiting_bytes = 0
        self.waiting_count = 0

    def add(self, size: int) -> None:
        """A batch of that size has begun to wait."""
        self.waiting_count += 1
        self.waiting_bytes += size
        self._check_load()

    def remove(self, size: int) -> None:
        self.waiting_count -= 1
        self.waiting_bytes -= size
        self._check_load()

    def _check_load(self) -> None:
        """Update the overload. It begins and ends at different numbers, or else each batch could change it."""
        allowed_bytes, allowed_count = self.limit_bytes, self.limit_count
        if self._overloaded:
            allowed_bytes, allowed_count = allowed_bytes // 2, allowed_count // 2
        overloaded = self.waiting_count > allowed_count or (
            self.limit_bytes >= 0 and self.waiting_bytes > allowed_bytes
        )
        if overloaded != self._overloaded:
            self._overloaded = overloaded
            self._overload(overloaded)
