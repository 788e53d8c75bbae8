"""Tracks what is left to read for a command that stops at the current end."""

from collections.abc import Iterable, Mapping

from kaspar.base.ids import TopicPartition


class Remaining:
    """The partitions that this consumer reads and whose end it has not reached.

    The ends are those at the start of the command, so it also stops while others produce. The end of a partition is
    reached when its last record was read, or when the broker reports the end: after the last record there may be
    offsets without one, such as transaction markers.
    """

    def __init__(self, ends: Mapping[TopicPartition, int]) -> None:
        self._ends = ends
        self._left: set[TopicPartition] = set()
        self._was_assigned = False

    def assign(self, starts: Mapping[TopicPartition, int | None]) -> None:
        """Add partitions that are read from now on. `starts` are their first offsets, None if unknown."""
        self._was_assigned = True
        for where, start in starts.items():
            end = self._ends.get(where, 0)
            if end > 0 and (start is None or start < end):
                self._left.add(where)

    def revoke(self, partitions: Iterable[TopicPartition]) -> None:
        self._left.difference_update(partitions)

    def read(self, where: TopicPartition, offset: int) -> None:
        if offset + 1 >= self._ends.get(where, 0):
            self._left.discard(where)

    def reached_end(self, where: TopicPartition) -> None:
        self._left.discard(where)

    def is_behind_end(self, where: TopicPartition, offset: int) -> bool:
        """Whether the record was written after the command started."""
        return offset >= self._ends.get(where, 0)

    @property
    def is_done(self) -> bool:
        return self._was_assigned and not self._left
