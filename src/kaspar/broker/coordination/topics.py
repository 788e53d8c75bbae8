"""The cluster's image as group coordinators see it: topics, their partitions, and the racks of their replicas."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from kaspar.groups.topics import TopicView
from kaspar.metadata import ClusterImage, TopicImage


@dataclass(frozen=True, slots=True)
class ImageTopics:
    """Implements `groups.topics.TopicsView` for an image."""

    image: ClusterImage

    def topic(self, name: str) -> TopicView | None:
        topic = self.image.topics.get(name)
        if topic is None:
            return None
        return TopicView(name, topic.topic_id, len(topic.partitions), self._racks(topic))

    def name_of(self, topic_id: uuid.UUID) -> str | None:
        return self.image.topic_names.get(topic_id)

    def names(self) -> Iterable[str]:
        return self.image.topics.keys()

    def _racks(self, topic: TopicImage) -> tuple[frozenset[str], ...]:
        """The racks of each partition's replicas. Empty if no broker has a rack: then assignors have nothing to choose
        by.
        """
        racks = {broker.broker_id: broker.rack for broker in self.image.brokers.values() if broker.rack is not None}
        if not racks:
            return ()
        return tuple(
            frozenset(racks[replica] for replica in partition.replicas if replica in racks)
            for partition in topic.partitions
        )
