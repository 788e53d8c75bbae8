"""A round over all groups of a shard, and over all that each has committed: a slice at a time."""

from collections import deque
from collections.abc import Iterable
from typing import Final

from kaspar.groups.offsets.committed import Piece

MAX_VISITED_PER_SLICE: Final = 1000
"""Groups and offsets that are looked at before the event loop turns to other work ..."""
MAX_DELETED_PER_SLICE: Final = 250
"""... or offsets that are deleted: their tombstones are one batch."""


class Round:
    """The groups that are left, and of the first one, if it was begun, the pieces of its offsets that are left."""

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
        """The next group, and the pieces of its offsets that are left; None if it was not begun."""
        pieces, self._pieces = self._pieces, None
        return self._groups.popleft(), pieces

    def put_back(self, group_id: str, pieces: list[Piece]) -> None:
        """The group is not done: it is the next one again."""
        self._groups.appendleft(group_id)
        self._pieces = pieces
