"""A dict of mutable values that can be forked: a value is copied when either dict first changes it."""

from typing import Protocol, Self, TypeVar

K = TypeVar("K")


class Copyable(Protocol):
    def copy(self) -> Self: ...


V = TypeVar("V", bound=Copyable)


class ForkableDict(dict[K, V]):
    """Values may be changed only via `writable`. Entries are added and removed as in any dict."""

    __slots__ = ("_own",)

    def __init__(self) -> None:
        super().__init__()
        self._own: set[K] | None = None
        """The keys whose values are not shared with another dict. None means all keys, before the first fork."""

    def fork(self) -> "ForkableDict[K, V]":
        """A dict with the same entries. Changes of either dict are not visible in the other."""
        fork: ForkableDict[K, V] = ForkableDict()
        fork.update(self)
        fork._own, self._own = set(), set()
        return fork

    def writable(self, key: K) -> V:
        """The value, which may be changed in place. Raises KeyError."""
        value = self[key]
        if self._own is not None and key not in self._own:
            value = self[key] = value.copy()
            self._own.add(key)
        return value
