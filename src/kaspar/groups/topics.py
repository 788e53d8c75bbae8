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
    """An immutable snapshot of the cluster's topics. A change creates another one."""

    def topic(self, name: str) -> TopicView | None: ...

    def name_of(self, topic_id: uuid.UUID) -> str | None: ...

    def names(self) -> Iterable[str]: ...


class NoTopics:
    """The topics before any were reported."""

    def topic(self, name: str) -> TopicView | None:
        return None

    def name_of(self, topic_id: uuid.UUID) -> str | None:
        return None

    def names(self) -> Iterable[str]:
        return ()
