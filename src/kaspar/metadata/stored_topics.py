"""Looks up partitions in the metadata store, for callers that must not rely on an image in which one is missing."""

from collections.abc import Callable

from kaspar.base.ids import TopicPartition
from kaspar.base.log import get_log
from kaspar.metadata.layout import topic_nodes
from kaspar.metadata.store import Store, StoreError

log = get_log(__name__)


class StoredTopics:
    def __init__(self, store: Callable[[], Store | None]) -> None:
        """`store` returns the current session, if there is one."""
        self._store = store

    async def lacks(self, partition: TopicPartition) -> bool:
        """Whether the store has no such partition. Also False if it cannot be read now."""
        store = self._store()
        if store is None:
            return False
        try:
            node = await store.get(topic_nodes.topic_path(partition.topic))
        except StoreError as problem:
            log.info("the metadata store cannot be read now", partition=partition, reason=str(problem))
            return False
        return node is None or partition.partition >= topic_nodes.partition_count(node.value)
