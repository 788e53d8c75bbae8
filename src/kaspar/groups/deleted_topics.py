"""Deletes the committed offsets of topics that have been deleted: onPartitionsDeleted of GroupCoordinatorShard in
Kafka, in slices, so that other work is not blocked.

A name does not identify a topic, because another topic may have it by now. So offsets are deleted by the ids of the
topics that were reported as deleted. Those that were committed without an id are deleted only if the topic that had the
name is one of these. A topic that is merely missing from an image keeps its offsets.
"""

import uuid
from collections.abc import Mapping
from typing import Final, NamedTuple

from kaspar.base.errors import ErrorCode
from kaspar.coordination import Decision, Now, StoredRecord, Timer
from kaspar.groups.offsets.committed import Offsets
from kaspar.groups.rounds import MAX_DELETED_PER_SLICE, MAX_VISITED_PER_SLICE, Round

DELETE_OFFSETS: Final = "delete offsets of deleted topics"
"""The timer of the next slice."""
RETRY_AFTER_MS: Final = 1000


class Deleted(NamedTuple):
    """The deleted topics of one name."""

    topic_ids: frozenset[uuid.UUID]
    takes_unnamed: bool
    """Whether offsets without a topic id were committed for one of them."""

    def merged_with(self, other: "Deleted | None") -> "Deleted":
        if other is None:
            return self
        return Deleted(self.topic_ids | other.topic_ids, self.takes_unnamed or other.takes_unnamed)

    def has(self, topic_id: uuid.UUID) -> bool:
        return self.takes_unnamed if not topic_id.int else topic_id in self.topic_ids


class DeletedTopics:
    def __init__(self, offsets: Offsets) -> None:
        self._offsets = offsets
        self._round = Round()
        self._deleted: dict[str, Deleted] = {}
        """The deleted topics by name, as long as some of their offsets are left."""

    def add(self, deleted: Mapping[str, Deleted], now: Now) -> Decision:
        for name, each in deleted.items():
            self._deleted[name] = each.merged_with(self._deleted.get(name))
        self._round.clear()  # visit all groups for the new ones
        return Decision(timers=(Timer(DELETE_OFFSETS, now.steady_ms),))

    def delete_offsets(self, now: Now) -> Decision:
        """Delete the next slice of a round over all groups. If the log refuses it, the round is repeated later."""
        deleted, groups = dict(self._deleted), self._round
        if not groups:
            groups.begin(self._offsets.groups_with_offsets())

        def refused(code: ErrorCode, later: Now) -> Decision:
            for name, each in deleted.items():
                self._deleted[name] = each.merged_with(self._deleted.get(name))
            groups.clear()
            return Decision(timers=(Timer(DELETE_OFFSETS, later.steady_ms + RETRY_AFTER_MS),))

        records: list[StoredRecord] = []
        visited = 0
        while groups and visited < MAX_VISITED_PER_SLICE and len(records) < MAX_DELETED_PER_SLICE:
            group_id, pieces = groups.take()
            if pieces is None:
                pieces = self._offsets.pieces_of(group_id, deleted)
                unnamed = {name for name, each in deleted.items() if each.takes_unnamed}
                records += self._offsets.pending_for(group_id, unnamed)
            visited += 1
            if pieces:
                piece = pieces.pop()
                visited += len(piece.partitions)
                records += self._offsets.topic_deleted(group_id, piece, deleted[piece.topic].has)
            if pieces:
                groups.put_back(group_id, pieces)
        timers = (Timer(DELETE_OFFSETS, now.steady_ms),) if groups else ()
        if not groups:
            self._deleted = {}
        return Decision(records, timers=timers, if_refused=refused)
