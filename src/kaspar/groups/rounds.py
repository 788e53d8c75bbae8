"""A round over all groups of a shard and their committed offsets, in slices."""

from collections import deque
from collections.abc import Iterable
from typing import Final

from kaspar.groups.offsets.committed import Piece

MAX_VISITED_PER_SLICE: Final = 1000
"""Groups and offsets that are looked at in one turn of the event loop ..."""
MAX_DELETED_PER_SLICE: Final = 250
"""... or offsets that are deleted in it: their tombstones are one batch."""


class Round:
    """The remaining groups, and the remaining pieces of the first one if it was begun."""

    def __init__(self) -> None:
        self._groups: deque[str] = deque()
        self._pieces: list[Piece] | None = None

    def __bool__(self) -> bool:
        return bool(self._groups)

    def begin(self, groups: Iterable[str]) -> None:
        self._groups.extend(groups)

    def clear(self) -> None:
        self._groups.clear()
        self._pieces = None

    def take(self) -> tuple[str, list[Piece] | None]:
        """The next group, and its remaining pieces, or None if it was not begun."""
        pieces, self._pieces = self._pieces, None
        return self._groups.popleft(), pieces

    def put_back(self, group_id: str, pieces: list[Piece]) -> None:
        """Continue with this group, which is not finished, in the next slice."""
        self._groups.appendleft(group_id)
        self._pieces = pieces
