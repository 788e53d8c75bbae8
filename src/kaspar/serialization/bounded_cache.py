"""A cache of so many entries, each for so long. Threads may share it."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class BoundedCache(Generic[T]):
    """The entry that was used least recently makes room for a new one."""

    def __init__(self, max_entries: int, lifetime_s: float, monotonic: Callable[[], float]) -> None:
        self._max_entries = max_entries
        self._lifetime_s = lifetime_s
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, tuple[T, float]] = OrderedDict()

    def get(self, key: Hashable) -> T | None:
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            value, expires_at = entry
            if self._monotonic() >= expires_at:
                del self._entries[key]
                return None
            self._entries.move_to_end(key)
            return value

    def put(self, key: Hashable, value: T) -> None:
        if self._lifetime_s <= 0:
            return
        with self._lock:
            self._entries[key] = (value, self._monotonic() + self._lifetime_s)
            self._entries.move_to_end(key)
            while len(self._entries) > self._max_entries:
                self._entries.popitem(last=False)
