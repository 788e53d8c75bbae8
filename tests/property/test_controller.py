"""The controller under random events, unknown outcomes, lost sessions, late watches and crashes.

Invariants: the published image is the stored one, an acknowledged change is never lost, no producer id is given
twice, leader epochs never go back, and every partition keeps distinct replicas, a leader among its in-sync replicas,
or none.
"""

import asyncio
import random
import tempfile
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId
from kaspar.config import AlterOperation, BrokerSettings
from kaspar.controller.controller import Controller
from kaspar.controller.events import (
    AllocateProducerIds,
    AlterConfigs,
    AssignDirectories,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    LogsLost,
    LogsRemoved,
    MorePartitions,
    NewTopic,
    ResourceType,
    TopicReference,
)
from kaspar.controller.registration import register_broker
from kaspar.controller.shell import ControllerShell
from kaspar.metadata.faults import Fault, FaultyStore
from kaspar.metadata.image import NO_LEADER, AdvertisedEndpoint, BrokerRegistration, ClusterImage, TopicImage
from kaspar.metadata.images import ImageUpdate
from kaspar.metadata.loading import load_brokers, load_image, prepare_store
from kaspar.metadata.sqlite import SqliteMetadata
from kaspar.metadata.store import SessionLost, Store, UnknownOutcome
from tests.unit.metadata.stores import until

T = TypeVar("T")

NAMES = ["a", "b", "a.b", "a_b", "big", "bad name"]
BROKERS = [BrokerId(1), BrokerId(2), BrokerId(3)]
FAULTS = [Fault.NOT_SENT, Fault.NO_RESPONSE, Fault.SESSION_LOST, Fault.SESSION_LOST_AFTER]


def tuples(strategy: st.SearchStrategy[T], most: int) -> st.SearchStrategy[tuple[T, ...]]:
    return st.lists(strategy, min_size=1, max_size=most).map(tuple)


names = st.sampled_from(NAMES)
topics = st.builds(
    NewTopic,
    names,
    st.sampled_from([-1, 0, 1, 3, 501]),
    st.sampled_from([-1, 1, 2, 3]),
    configs=st.sampled_from([(), (("segment.ms", "5"),), (("nonsense", "1"),)]),
)
operations = st.builds(
    ConfigOperation,
    st.sampled_from(["segment.ms", "cleanup.policy", "max.connections", "log.dirs"]),
    st.sampled_from(list(AlterOperation)),
    st.sampled_from(["5", "compact", "delete", "x"]),
)
resources = st.one_of(
    st.builds(ConfigResource, st.just(ResourceType.TOPIC), names),
    st.builds(ConfigResource, st.just(ResourceType.BROKER), st.sampled_from(["", "1"])),
    st.builds(ConfigResource, st.just(ResourceType.GROUP), st.sampled_from(["", "g/1"])),
)
events = st.one_of(
    st.builds(CreateTopics, tuples(topics, 4), st.booleans()),
    st.builds(DeleteTopics, tuples(st.builds(TopicReference, names), 2)),
    st.builds(CreatePartitions, tuples(st.builds(MorePartitions, names, st.sampled_from([2, 4, 600])), 2)),
    st.builds(AlterConfigs, tuples(st.builds(ConfigChange, resources, tuples(operations, 2), st.booleans()), 2)),
    st.builds(
        lambda name, value: AlterConfigs(
            (ConfigChange(ConfigResource(ResourceType.TOPIC, name), (ConfigOperation.set("segment.ms", value),)),)
        ),
        st.sampled_from(["a", "b"]),
        st.sampled_from(["6", "7"]),
    ),
    st.just(AllocateProducerIds(BrokerId(1))),
)
steps = st.one_of(
    events,
    st.sampled_from(
        ["broker 2", "broker 3", "logs removed", "logs found", "logs lost", "watches", "restart", "crash", "away"]
    ),
)


class Cluster:
    """A controller in broker 1 over a store that misbehaves, two further brokers, and what must stay true of them."""

    def __init__(self, metadata: SqliteMetadata, rng: random.Random, fault_rate: float) -> None:
        self.metadata = metadata
        self.rng = rng
        self.fault_rate = fault_rate
        self.others: dict[BrokerId, FaultyStore] = {}
        self.producer_ids: set[int] = set()
        self.epochs: dict[tuple[str, int], int] = {}
        self.published: ImageUpdate | None = None
        self.calls_away = 0
        self.comes_back = False
        self.is_starting = False

    def choose(self) -> Fault:
        if self.calls_away:
            self.calls_away -= 1
            return self.rng.choice([Fault.NOT_SENT, Fault.NO_RESPONSE])
        if self.comes_back:
            return Fault.NONE
        # A start takes many calls, and a lost session begins it anew.
        rate = min(self.fault_rate, 0.05) if self.is_starting else self.fault_rate
        return self.rng.choice(FAULTS) if self.rng.random() < rate else Fault.NONE

    async def start(self) -> None:
        """A new life of broker 1: as often as it takes, for sessions are lost during the start too."""
        self.calls_away = 0
        self.is_starting = True
        while True:
            self.store = FaultyStore(self.metadata.connect(), self.choose)
            core = Controller(BrokerSettings.of({"node.id": "1", "num.partitions": "2"}), rng=self.rng)
            self.shell = ControllerShell(self.store, core, retry_delay_s=0)
            self.shell.add_follower(self.on_image)
            self.published = None
            try:
                await self.until_it_returns(lambda: prepare_store(self.store))
                await register_broker(self.store, registration(BrokerId(1)), retry_delay_s=0)
                await self.shell.start()
                self.is_starting = False
                return
            except (Refused, SessionLost):
                await self.stop()

    async def until_it_returns(self, call: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await call()
            except UnknownOutcome:
                continue

    async def stop(self) -> None:
        await self.shell.stop()
        await self.store.close()

    def on_image(self, update: ImageUpdate) -> None:
        last, self.published = self.published, update
        if last is None:
            return
        assert update.version > last.version
        old, new = last.image, update.image
        deleted = {topic.topic_id for topic in update.deleted_topics}
        assert deleted <= new.deleted_topics.keys()
        for name in old.topics.keys() | new.topics.keys():
            if name not in update.changed_topics:
                assert same_but_for_places(old.topics.get(name), new.topics.get(name))
        for topic_id in old.topic_names.keys() - new.topic_names.keys():
            assert topic_id in deleted, "a topic vanished, and nobody said that it is deleted"

    async def play(self, step: object) -> None:
        match step:
            case "broker 2" | "broker 3":
                await self.toggle(BrokerId(int(str(step)[-1])))
            case "watches":
                self.store.deliver_watches()
            case "restart":
                await self.stop()
                await self.start()
            case "away":
                self.calls_away, self.comes_back = self.rng.randint(20, 50), True
                await self.submit(CreateTopics((NewTopic("a"),)))
                self.comes_back = False
            case "crash":
                await self.store.close()
            case "logs removed":
                await self.submit(LogsRemoved(BrokerId(1), tuple(self.shell.image.deleted_topics)))
            case "logs found":
                places = tuple((*place, uuid.UUID(int=self.rng.getrandbits(128))) for place in self.some_partitions())
                await self.submit(AssignDirectories(BrokerId(1), places))
            case "logs lost":
                await self.submit(LogsLost(BrokerId(1), tuple(self.some_partitions())))
            case _:
                await self.submit(step)
        await self.check()

    def some_partitions(self) -> list[tuple[uuid.UUID, int]]:
        return [
            (topic.topic_id, number)
            for topic in self.shell.image.topics.values()
            for number in range(len(topic.partitions))
            if self.rng.random() < 0.5
        ]

    async def toggle(self, broker_id: BrokerId) -> None:
        store = self.others.pop(broker_id, None)
        if store is not None:
            await store.close()
            return
        store = FaultyStore(self.metadata.connect())
        await register_broker(store, registration(broker_id))
        self.others[broker_id] = store

    async def submit(self, event: object) -> None:
        try:
            reply = await cast(Any, self.shell).submit(event)
        except Refused as refused:
            if refused.code == ErrorCode.NOT_CONTROLLER:
                await self.recover()
            return
        if isinstance(event, AllocateProducerIds):
            assert reply.first not in self.producer_ids, "a producer id was given twice"
            self.producer_ids.add(reply.first)
        if isinstance(event, CreateTopics) and not event.validate_only:
            for created in reply:
                if created.outcome.error == ErrorCode.NONE:
                    assert self.shell.image.topics[created.name].topic_id == created.topic_id

    async def recover(self) -> None:
        """A store that was away is claimed again; a lost session is another life."""
        await until(lambda: self.shell.interrupted is None or self.shell.ended.is_set())
        if self.shell.ended.is_set() or self.store.is_lost:
            await self.stop()
            await self.start()

    async def check(self) -> None:
        await self.recover()
        image = self.shell.image
        plain = self.metadata.connect()
        stored = await load_image(plain)
        assert replace(stored, brokers=image.brokers) == image, "the published image is the stored one"
        self.check_partitions(image)
        self.store.deliver_watches()
        await self.check_brokers(plain)
        await plain.close()

    async def check_brokers(self, plain: Store) -> None:
        """A session that is lost meanwhile takes its broker with it, and its controller is not asked any more."""
        while True:
            try:
                await self.shell.look_at_brokers()
                up = await load_brokers(plain)
                if not self.store.is_lost:
                    assert self.shell.image.brokers == up
                    return
            except Refused:
                pass
            await self.stop()
            await self.start()

    def check_partitions(self, image: ClusterImage) -> None:
        seen: dict[tuple[str, int], int] = {}
        for name, topic in image.topics.items():
            assert image.topic_names[topic.topic_id] == name
            for number, partition in enumerate(topic.partitions):
                assert len(set(partition.replicas)) == len(partition.replicas) == topic.replication_factor
                assert partition.isr
                assert set(partition.isr) <= set(partition.replicas)
                assert partition.leader in (NO_LEADER, *partition.isr)
                key = (str(topic.topic_id), number)
                assert partition.leader_epoch >= self.epochs.get(key, 0)
                seen[key] = partition.leader_epoch
        assert len(image.topic_names) == len(image.topics)
        self.epochs.update(seen)


def same_but_for_places(old: TopicImage | None, new: TopicImage | None) -> bool:
    """Of topics that no broker has to hear of, only the directories of the logs may have changed."""
    return old is new or (old is not None and new is not None and without_places(old) == without_places(new))


def without_places(topic: TopicImage) -> TopicImage:
    return replace(topic, partitions=tuple(partition._replace(directories=()) for partition in topic.partitions))


def registration(broker_id: BrokerId) -> BrokerRegistration:
    return BrokerRegistration(broker_id, 0, (AdvertisedEndpoint("PLAINTEXT", "host", 9092, "PLAINTEXT"),))


async def play(script: list[object], seed: int, fault_rate: float, folder: Path) -> None:
    metadata = await SqliteMetadata.open(folder)
    cluster = Cluster(metadata, random.Random(seed), fault_rate)
    await cluster.start()
    for step in script:
        await cluster.play(step)
    await cluster.stop()
    await metadata.close()


@settings(max_examples=40, deadline=None)
@given(st.lists(steps, max_size=15), st.integers(0, 2**32), st.sampled_from([0.0, 0.1, 0.3]))
def test_the_image_is_the_stored_one_whatever_happens(script: list[object], seed: int, fault_rate: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(script, seed, fault_rate, Path(folder)))
