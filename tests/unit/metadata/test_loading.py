"""The image is a snapshot of one moment, even if the store changes meanwhile."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kaspar.base.errors import Refused
from kaspar.controller.events import CreatePartitions, CreateTopics, DeleteTopics, MorePartitions, NewTopic
from kaspar.controller.events import TopicReference as Named
from kaspar.controller.fence import retried
from kaspar.controller.registration import register_broker
from kaspar.controller.shell import ControllerShell
from kaspar.metadata.faults import Fault, FaultyStore
from kaspar.metadata.image import ClusterImage
from kaspar.metadata.images import ImageUpdate
from kaspar.metadata.layout import topic_nodes
from kaspar.metadata.loading import load_image, prepare_store
from kaspar.metadata.sqlite import SqliteMetadata
from kaspar.metadata.store import DamagedStore, Delete, Node, Store, UnknownOutcome, Watcher
from tests.unit.controller.clusters import broker, controller, vacated
from tests.unit.metadata.stores import within


class Interrupted(FaultyStore):
    """Before each read something else happens."""

    def __init__(self, store: Store, meanwhile: Callable[[], Awaitable[None]]) -> None:
        super().__init__(store)
        self.meanwhile = meanwhile

    async def get(self, path: str, watcher: Watcher | None = None) -> Node | None:
        await self.meanwhile()
        return await super().get(path, watcher)

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        await self.meanwhile()
        return await super().get_many(paths)

    async def children(self, path: str, watcher: Watcher | None = None) -> list[str]:
        await self.meanwhile()
        return await super().children(path, watcher)


class Writer:
    """A controller that creates and deletes topics, large and small, and remembers every image."""

    def __init__(self, metadata: SqliteMetadata, seed: int) -> None:
        self.metadata = metadata
        self.rng = random.Random(seed)
        self.images: list[ClusterImage] = []
        self.left = 0

    async def start(self) -> None:
        store = self.metadata.connect()
        await prepare_store(store)
        await register_broker(store, broker(1, clean_start=True), retry_delay_s=0)
        self.shell = ControllerShell(store, controller(), retry_delay_s=0)
        self.shell.add_follower(self.remember)
        await self.shell.start()
        await self.shell.submit(CreateTopics((NewTopic("large", 1200), NewTopic("small"))))

    def remember(self, update: ImageUpdate) -> None:
        self.images.append(replace(update.image, brokers={}))

    async def change(self) -> None:
        if self.left <= 0 or self.rng.random() < 0.3:
            return
        self.left -= 1
        name = self.rng.choice(["large", "small", "new"])
        if name not in self.shell.image.topics:
            await self.shell.submit(CreateTopics((NewTopic(name, self.rng.choice([1, 700])),)))
        elif self.rng.random() < 0.5:
            await self.shell.submit(DeleteTopics((Named(name),)))
        else:
            count = len(self.shell.image.topics[name].partitions) + 400
            await self.shell.submit(CreatePartitions((MorePartitions(name, count),)))


def run(scenario: Callable[[SqliteMetadata], Coroutine[Any, Any, None]], folder: Path) -> None:
    async def main() -> None:
        metadata = await SqliteMetadata.open(folder)
        try:
            await within(30, scenario(metadata))
        finally:
            await metadata.close()

    asyncio.run(main())


@pytest.mark.parametrize("seed", range(5))
def test_an_image_is_one_that_there_was_although_topics_are_created_and_deleted_meanwhile(
    tmp_path: Path, seed: int
) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        writer = Writer(metadata, seed)
        await writer.start()
        reader = Interrupted(metadata.connect(), writer.change)
        for _ in range(5):
            writer.left = 8
            assert await load_image(reader) in writer.images
        await writer.shell.stop()

    run(scenario, tmp_path)


def test_an_image_is_read_again_if_another_controller_claims_the_store_meanwhile(tmp_path: Path) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        writer = Writer(metadata, 0)
        await writer.start()
        reads = 0

        async def claim() -> None:
            nonlocal reads
            reads += 1
            if reads in (2, 6):
                successor = ControllerShell(await vacated(metadata.connect()), controller(seed=reads), retry_delay_s=0)
                await successor.start()
                await successor.submit(DeleteTopics((Named("large" if reads == 2 else "small"),)))
                await successor.stop()

        image = await load_image(Interrupted(metadata.connect(), claim))
        assert image == await load_image(metadata.connect())
        assert image.topics == {}
        assert image.controller_epoch == 3
        await writer.shell.stop()

    run(scenario, tmp_path)


def test_a_store_that_never_rests_ends_as_unknown(tmp_path: Path) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        writer = Writer(metadata, 0)
        await writer.start()

        async def change() -> None:
            writer.left = 1
            await writer.change()

        reader = Interrupted(metadata.connect(), change)
        with pytest.raises(UnknownOutcome):
            await load_image(reader)
        await writer.shell.stop()

    run(scenario, tmp_path)


def test_faults_while_the_image_is_read_are_retried(tmp_path: Path) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        writer = Writer(metadata, 0)
        await writer.start()
        rng = random.Random(0)
        reader = FaultyStore(metadata.connect(), lambda: rng.choice([Fault.NONE] * 20 + [Fault.NOT_SENT]))
        for _ in range(10):
            assert await retried(lambda: load_image(reader), 0) == writer.images[-1]
        await writer.shell.stop()

    run(scenario, tmp_path)


def test_a_store_that_lacks_nodes_is_damaged(tmp_path: Path) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        writer = Writer(metadata, 0)
        await writer.start()
        store = metadata.connect()
        await store.transact([Delete(f"{topic_nodes.topic_path('large')}/2")])
        with pytest.raises(DamagedStore, match="large/2"):
            await load_image(store)
        await writer.shell.stop()
        successor = ControllerShell(await vacated(metadata.connect()), controller(seed=1), retry_delay_s=0)
        with pytest.raises((DamagedStore, Refused)):
            await successor.start()

    run(scenario, tmp_path)
