"""A dict of mutable values that can be forked: a value is copied when one of the two first changes it."""

from typing import Protocol, Self, TypeVar

K = TypeVar("K")


class Copyable(Protocol):
    def copy(self) -> Self: ...


V = TypeVar("V", bound=Copyable)


class ForkableDict(dict[K, V]):
    """Values are changed only as `writable` returns them. Entries are added and removed as in any dict."""

    __slots__ = ("_own",)

    def __init__(self) -> None:
        super().__init__()
        self._own: set[K] | None = None
        """The keys whose values no other dict shares. None: all of them, as long as there was no fork."""

    def fork(self) -> "ForkableDict[K, V]":
        """A dict with the same entries: a change of either is not seen in the other."""
        fork: ForkableDict[K, V] = ForkableDict()
        fork.update(self)
        fork._own, self._own = set(), set()
        return fork

    def writable(self, key: K) -> V:
        """The value, to be changed in place. Raises KeyError."""
        value = self[key]
        if self._own is not None and key not in self._own:
            value = self[key] = value.copy()
            self._own.add(key)
        return value
