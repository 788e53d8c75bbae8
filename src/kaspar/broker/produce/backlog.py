"""Batches that wait to be appended: for their checks (broker/produce/appender.py) or for their transaction
(broker/produce/unverified.py). How many may wait, and how many bytes they may hold, is bounded: beyond that the broker
takes no more requests until half of them are done.
"""

from collections.abc import Callable


class Backlog:
    def __init__(self, *, overload: Callable[[bool], None]) -> None:
        """`overload` is called when too much waits, and when it no longer does."""
        self._overload = overload
        self._overloaded = False
        self.limit_bytes = -1
        """`queued.max.request.bytes`; a negative number sets no limit."""
        self.limit_count = 500
        """`queued.max.requests`: of those that wait here, since the others are handled as they arrive."""
        self.waiting_bytes = 0
        self.waiting_count = 0

    def add(self, size: int) -> None:
        """A batch of that size waits."""
        self.waiting_count += 1
        self.waiting_bytes += size
        self._check_load()

    def remove(self, size: int) -> None:
        self.waiting_count -= 1
        self.waiting_bytes -= size
        self._check_load()

    def _check_load(self) -> None:
        """The overload begins and ends at different numbers, or each batch could change it."""
        allowed_bytes, allowed_count = self.limit_bytes, self.limit_count
        if self._overloaded:
            allowed_bytes, allowed_count = allowed_bytes // 2, allowed_count // 2
        overloaded = self.waiting_count > allowed_count or (
            self.limit_bytes >= 0 and self.waiting_bytes > allowed_bytes
        )
        if overloaded != self._overloaded:
            self._overloaded = overloaded
            self._overload(overloaded)
