"""Maximum matching in a bipartite graph: as many pairs as possible, each vertex in at most one (Hopcroft and Karp)."""

from collections import deque
from collections.abc import Sequence


def maximum_matching(neighbors: Sequence[Sequence[int]], right_size: int) -> list[int | None]:
    """`neighbors` has the right vertices of each left one. Returns the right vertex of each left one, or None."""
    matching = _Matching(neighbors, right_size)
    while matching.measure():
        for left, right in enumerate(matching.of_left):
            if right is None:
                matching.augment(left)
    return matching.of_left


class _Matching:
    def __init__(self, neighbors: Sequence[Sequence[int]], right_size: int) -> None:
        self._neighbors = neighbors
        self.of_left: list[int | None] = [None] * len(neighbors)
        self._of_right: list[int | None] = [None] * right_size
        self._level: list[int | None] = []

    def measure(self) -> bool:
        """Number the left vertices by distance from an unmatched one. Returns whether a path augments."""
        self._level = [0 if right is None else None for right in self.of_left]
        queue = deque(left for left, right in enumerate(self.of_left) if right is None)
        augments = False
        while queue:
            left = queue.popleft()
            level = self._level[left]
            assert level is not None
            for right in self._neighbors[left]:
                next_left = self._of_right[right]
                if next_left is None:
                    augments = True
                elif self._level[next_left] is None:
                    self._level[next_left] = level + 1
                    queue.append(next_left)
        return augments

    def augment(self, start: int) -> None:
        """Follow a path to an unmatched right vertex, if there is one, and swap its edges. Without recursion, because a
        path may have as many vertices as the graph."""
        path: list[tuple[int, int]] = []
        branches = [(start, iter(self._neighbors[start]))]
        while branches:
            left, rights = branches[-1]
            for right in rights:
                next_left = self._of_right[right]
                if next_left is None:
                    for matched_left, matched_right in (*path, (left, right)):
                        self.of_left[matched_left] = matched_right
                        self._of_right[matched_right] = matched_left
                    return
                if self._is_next(left, next_left):
                    path.append((left, right))
                    branches.append((next_left, iter(self._neighbors[next_left])))
                    break
            else:
                self._level[left] = None
                branches.pop()
                if path:
                    path.pop()

    def _is_next(self, left: int, next_left: int) -> bool:
        level, next_level = self._level[left], self._level[next_left]
        return level is not None and next_level == level + 1
