"""Deletes committed offsets that have expired, and empty groups that have none left: GroupCoordinatorShard's
cleanupGroupMetadata in Kafka, in slices, so that other work is not blocked.
"""

from typing import Final

from kaspar.base.errors import ErrorCode
from kaspar.coordination import Decision, Now, StoredRecord, Timer
from kaspar.groups.context import ShardContext
from kaspar.groups.counts import GroupCounts
from kaspar.groups.group import Group
from kaspar.groups.offsets.committed import Offsets, Piece
from kaspar.groups.rounds import MAX_DELETED_PER_SLICE, MAX_VISITED_PER_SLICE, Round
from kaspar.groups.table import GroupTable

EXPIRE: Final = "expire offsets"
"""The timer of the next slice, or of the next round."""


class OffsetExpiration:
    def __init__(self, table: GroupTable, offsets: Offsets, context: ShardContext, counts: GroupCounts) -> None:
        self._table = table
        self._offsets = offsets
        self._context = context
        self._counts = counts
        self._round = Round()

    def next_round(self, now: Now) -> Timer:
        return Timer(EXPIRE, now.steady_ms + self._context.settings.offsets_retention_check_interval_ms)

    def expire(self, now: Now) -> Decision:
        """Visit the next slice of a round over all groups."""
        groups = self._round
        if not groups:
            groups.begin(self._table.groups)
        records: list[StoredRecord] = []
        visited = 0
        while groups and visited < MAX_VISITED_PER_SLICE and len(records) < MAX_DELETED_PER_SLICE:
            group_id, pieces = groups.take()
            group = self._table.get(group_id)
            if group is not None:
                pieces = self._offsets.pieces_of(group_id) if pieces is None else pieces
                visited += 1 + self._expire_group(group, pieces, records, now)
                if pieces:
                    break  # the rest of the group follows when these tombstones are in the log
        timer = Timer(EXPIRE, now.steady_ms) if groups else self.next_round(now)
        return Decision(records, timers=(timer,), if_refused=self._refused)

    def _expire_group(self, group: Group, pieces: list[Piece], records: list[StoredRecord], now: Now) -> int:
        """Add the tombstones of one group to `records`. Returns how many offsets were visited."""
        expired, nothing_left, visited = self._offsets.expire(
            group, pieces, now.believed_ms, at_most=MAX_DELETED_PER_SLICE
        )
        records += expired
        self._counts.offset_expirations += len(expired)
        if pieces:
            self._round.put_back(group.group_id, pieces)
        elif nothing_left and group.is_empty and not group.is_awaited:
            records += group.tombstones()
        return visited

    def _refused(self, code: ErrorCode, now: Now) -> Decision:
        """Wait for the next round, which finds the same offsets, since the log is refusing appends."""
        self._round.clear()
        return Decision(timers=(self.next_round(now),))
