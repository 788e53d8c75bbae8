"""Whether a partition is known not to exist: only the store can say so."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from kaspar.base.ids import BrokerId, LeaderEpoch, TopicPartition, random_uuid
from kaspar.metadata import PartitionImage, SqliteMetadata, Store, TopicImage
from kaspar.metadata.layout import topic_nodes
from kaspar.metadata.loading import prepare_store
from kaspar.metadata.store import UnknownOutcome
from kaspar.metadata.stored_topics import StoredTopics

ONE = PartitionImage((BrokerId(1),), (BrokerId(1),), BrokerId(1), LeaderEpoch(0), 0)


async def lacks(store: Callable[[], Store | None], *partitions: TopicPartition) -> list[bool]:
    return [await StoredTopics(store).lacks(partition) for partition in partitions]


def test_a_partition_is_gone_if_the_store_has_no_such_topic_or_it_has_fewer_partitions(tmp_path: Path) -> None:
    async def scenario() -> None:
        metadata = await SqliteMetadata.open(tmp_path)
        store = metadata.connect()
        await prepare_store(store)
        await store.transact(topic_nodes.topic_change(None, TopicImage("t", random_uuid(), (ONE, ONE))))
        asked = [TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("t", 2), TopicPartition("gone", 0)]
        assert await lacks(lambda: store, *asked) == [False, False, True, True]
        await store.close()
        await metadata.close()

    asyncio.run(scenario())


def test_nothing_is_known_while_the_store_cannot_be_read() -> None:
    async def get(path: str) -> None:
        raise UnknownOutcome("it does not respond")

    away = cast(Store, SimpleNamespace(get=get))
    assert asyncio.run(lacks(lambda: away, TopicPartition("gone", 0))) == [False]
    assert asyncio.run(lacks(lambda: None, TopicPartition("gone", 0))) == [False]
