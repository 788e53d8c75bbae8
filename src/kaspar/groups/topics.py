"""The topics of the cluster as a group coordinator knows them: enough to assign their partitions."""

import uuid
from collections.abc import Iterable
from typing import NamedTuple, Protocol


class TopicView(NamedTuple):
    """`racks[n]` are the racks of partition n's replicas, as far as they are known."""

    name: str
    topic_id: uuid.UUID
    partition_count: int
    racks: tuple[frozenset[str], ...] = ()


class TopicsView(Protocol):
    """One moment of the cluster's topics. Immutable: a change makes another view."""

    def topic(self, name: str) -> TopicView | None: ...

    def name_of(self, topic_id: uuid.UUID) -> str | None: ...

    def names(self) -> Iterable[str]: ...


class NoTopics:
    """What is known before anybody has said anything."""

    def topic(self, name: str) -> TopicView | None:
        return None

    def name_of(self, topic_id: uuid.UUID) -> str | None:
        return None

    def names(self) -> Iterable[str]:
        return ()
