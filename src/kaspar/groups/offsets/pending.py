"""Offsets committed in transactions that have not ended, by producer id.

They are not committed yet, but a request for stable offsets gets UNSTABLE_OFFSET_COMMIT for them. When a transaction
commits, they become committed offsets; when it aborts, they are dropped. Of all commits for a partition the last one in
the log counts, whatever the order in which transactions end. So a pending offset is marked as overtaken when one that
follows it in the log is committed, and is dropped when its transaction ends.
"""

from collections.abc import Iterator
from typing import NamedTuple


class GroupTopicPartition(NamedTuple):
    group: str
    topic: str
    partition: int


class _Pending(NamedTuple):
    order: int
    """The position in the log, among the pending offsets."""
    value: bytes
    overtaken: bool


class PendingOffsets:
    """Values are opaque here."""

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[GroupTopicPartition, _Pending]] = {}
        self._producers: dict[str, dict[GroupTopicPartition, set[int]]] = {}
        self._order = 0

    def __bool__(self) -> bool:
        return bool(self._by_producer)

    def has_group(self, group: str) -> bool:
        return group in self._producers

    def __contains__(self, place: GroupTopicPartition) -> bool:
        return place in self._producers.get(place.group, ())

    def places_of(self, group: str) -> Iterator[GroupTopicPartition]:
        return iter(self._producers.get(group, ()))

    def groups(self) -> Iterator[str]:
        return iter(self._producers)

    def add(self, producer_id: int, place: GroupTopicPartition, value: bytes) -> None:
        self._order += 1
        self._by_producer.setdefault(producer_id, {})[place] = _Pending(self._order, value, False)
        self._producers.setdefault(place.group, {}).setdefault(place, set()).add(producer_id)

    def committed_behind(self, place: GroupTopicPartition) -> None:
        """Mark the pending offsets of this partition as overtaken by a commit outside of transactions."""
        self._overtake(place, self._order + 1)

    def drop(self, place: GroupTopicPartition) -> None:
        """Drop the pending offsets of this partition, whose offset was deleted."""
        for producer_id in tuple(self._producers.get(place.group, {}).get(place, ())):
            self._remove(producer_id, place)

    def end(self, producer_id: int, *, committed: bool) -> list[tuple[GroupTopicPartition, bytes]]:
        """End the producer's transaction. Returns the offsets that are committed by it."""
        ended = self._by_producer.get(producer_id, {})
        brought_in = []
        for place, pending in list(ended.items()):
            self._remove(producer_id, place)
            if committed and not pending.overtaken:
                self._overtake(place, pending.order)
                brought_in.append((place, pending.value))
        return brought_in

    def _overtake(self, place: GroupTopicPartition, order: int) -> None:
        for producer_id in self._producers.get(place.group, {}).get(place, ()):
            pendings = self._by_producer[producer_id]
            if pendings[place].order < order:
                pendings[place] = pendings[place]._replace(overtaken=True)

    def _remove(self, producer_id: int, place: GroupTopicPartition) -> None:
        pendings = self._by_producer[producer_id]
        del pendings[place]
        if not pendings:
            del self._by_producer[producer_id]
        places = self._producers[place.group]
        places[place].remove(producer_id)
        if not places[place]:
            del places[place]
        if not places:
            del self._producers[place.group]
