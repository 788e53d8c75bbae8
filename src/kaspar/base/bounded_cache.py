"""A cache with a limit for the number or the weight of its entries, and for their age. Threads may share it."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

FOREVER: Final = float("inf")


class BoundedCache(Generic[K, V]):
    """A new entry replaces the least recently used one if the cache is full."""

    def __init__(
        self,
        max_entries: int,
        *,
        lifetime_s: float = FOREVER,
        monotonic: Callable[[], float] = time.monotonic,
        max_weight: float = FOREVER,
        weight_of: Callable[[K, V], int] = lambda key, value: 0,
    ) -> None:
        """With a `lifetime_s` of 0 nothing is stored. The weights of all entries together are at most `max_weight`."""
        self._max_entries = max_entries
        self._lifetime_s = lifetime_s
        self._monotonic = monotonic
        self._max_weight = max_weight
        self._weight_of = weight_of
        self._weight = 0
        self._lock = threading.Lock()
        self._entries: OrderedDict[K, tuple[V, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[K]:
        """A copy of the keys, the least recently used first; includes expired entries."""
        with self._lock:
            return iter(list(self._entries))

    def get(self, key: K) -> V | None:
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            value, expires_at = entry
            if self._monotonic() >= expires_at:
                self._discard(key)
                return None
            self._entries.move_to_end(key)
            return value

    def put(self, key: K, value: V) -> None:
        if self._lifetime_s <= 0:
            return
        with self._lock:
            self._discard(key)
            self._entries[key] = (value, self._monotonic() + self._lifetime_s)
            self._weight += self._weight_of(key, value)
            while len(self._entries) > self._max_entries or self._weight > self._max_weight:
                self._discard(next(iter(self._entries)))

    def discard(self, key: K) -> None:
        with self._lock:
            self._discard(key)

    def _discard(self, key: K) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._weight -= self._weight_of(key, entry[0])
