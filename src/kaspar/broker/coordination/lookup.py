"""Finds the coordinator of a group or a transactional id: the leader of its partition of the internal topic."""

import functools
from typing import Final

from kaspar.base.ids import BrokerId
from kaspar.coordination import partition_for
from kaspar.metadata import NO_LEADER
from kaspar.metadata.images import ImageSource

REMEMBERED_KEYS: Final = 1 << 14
"""Computing the partition of a key, by Java's hash, takes longer than most requests."""

_partition_for = functools.lru_cache(REMEMBERED_KEYS)(partition_for)


class CoordinatorLookup:
    def __init__(self, images: ImageSource) -> None:
        self._images = images

    def coordinator_of(self, internal_topic: str, key: str) -> BrokerId:
        """The coordinator of a key. NO_LEADER if the topic is not created yet, or the partition's leader is not up."""
        image = self._images.current
        topic = image.topics.get(internal_topic)
        if topic is None:
            return NO_LEADER
        return image.reachable_leader(topic.partitions[_partition_for(key, len(topic.partitions))])
