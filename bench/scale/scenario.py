"""The measurements. Each changes the cluster through its controller, and measures the cost."""

import gc
import itertools
import os
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from bench.meters import resident_bytes
from bench.scale.counting import CountingStore, Traffic
from kaspar.base.errors import ErrorCode
from kaspar.base.ids import BrokerId
from kaspar.config import BrokerSettings
from kaspar.controller.controller import Controller
from kaspar.controller.events import (
    AlterPartitions,
    ControllerEvent,
    CreateTopics,
    FenceBrokers,
    IsrChange,
    NewTopic,
)
from kaspar.controller.registration import register_broker
from kaspar.controller.shell import ControllerShell
from kaspar.metadata.deltas import apply_delta, decode_delta, delta_between, encode_delta
from kaspar.metadata.image import AdvertisedEndpoint, BrokerRegistration, ClusterImage
from kaspar.metadata.images import ImageUpdate, ImageVersion
from kaspar.metadata.loading import prepare_store
from kaspar.metadata.store import Store

_TOPICS_OF_AN_EVENT = 20
_SINGLE_CHANGES = 100
_CHANGES_AT_ONCE = 1000


class Line(NamedTuple):
    """A line of the table: what was measured, and the values."""

    title: str
    seconds: float
    traffic: Traffic
    delta_bytes: int | None
    """The bytes that are sent to each broker that follows."""
    apply_seconds: float | None
    """The time that a broker needs to decode and apply them."""


@dataclass(frozen=True, slots=True)
class Size:
    brokers: int
    topics: int
    partitions_of_each: int

    @property
    def partitions(self) -> int:
        return self.topics * self.partitions_of_each


class Scenario:
    """The scenario with one cluster. `connect` opens a session with its store."""

    def __init__(self, size: Size, connect: Callable[[], Store]) -> None:
        self._size = size
        self._connect = connect
        self._store = CountingStore(connect())
        self._settings = BrokerSettings.of({"node.id": "1", "min.insync.replicas": "2"})
        self._updates: list[ImageUpdate] = []
        self._shell = self._new_shell()
        self.image_bytes = 0
        self.image_memory = 0

    def _new_shell(self) -> ControllerShell:
        return ControllerShell(self._store, Controller(self._settings), cluster_id="scale")

    async def run(self) -> list[Line]:
        await self._register_all()
        await self._shell.start()
        self._store.take()
        self._shell.add_follower(self._updates.append)
        lines = [await self._create_all(), await self._create_one_more()]
        lines += [await self._change_single(), await self._change_many()]
        lines += [await self._lose_broker()]
        lines += [await self._start_again(), self._send_whole_image()]
        await self._shell.stop()
        return lines

    # -- the cluster ---------------------------------------------------------------------------------------------------

    async def _register_all(self) -> None:
        """Register all brokers in another session, as if each had its own."""
        await prepare_store(self._store, "scale")
        session = self._connect()
        for number in range(1, self._size.brokers + 1):
            endpoint = AdvertisedEndpoint("PLAINTEXT", f"broker-{number}.example", 9092, "PLAINTEXT")
            registration = BrokerRegistration(
                BrokerId(number), -1, (endpoint,), f"rack-{number % 3}", True, (uuid.UUID(int=number),)
            )
            await register_broker(session, registration)

    # -- measurements --------------------------------------------------------------------------------------------------

    async def _create_all(self) -> Line:
        gc.collect()
        before = resident_bytes(os.getpid())
        size = self._size
        names = [f"topic-{number}" for number in range(size.topics)]
        events: list[ControllerEvent[Any]] = [
            CreateTopics(
                tuple(NewTopic(name, size.partitions_of_each, 3) for name in names[first : first + _TOPICS_OF_AN_EVENT])
            )
            for first in range(0, len(names), _TOPICS_OF_AN_EVENT)
        ]
        line = await self._measure(f"create {size.topics:,} topics with {size.partitions:,} partitions", events)
        self._updates.clear()
        gc.collect()
        self.image_memory = resident_bytes(os.getpid()) - before
        assert sum(len(topic.partitions) for topic in self._image.topics.values()) == size.partitions
        return line._replace(delta_bytes=None, apply_seconds=None)  # nothing is sent for all of them together

    async def _create_one_more(self) -> Line:
        event = CreateTopics((NewTopic("one-more", 10, 3),))
        return await self._measure("create a topic of 10 partitions", [event])

    async def _change_single(self) -> Line:
        """Change one partition after the other, like a follower that repeatedly falls behind and catches up."""
        title = "change the in-sync replicas of a partition, the median of many"
        lines = [await self._measure(title, [self._isr_changes(1)]) for _ in range(_SINGLE_CHANGES)]
        return sorted(lines, key=lambda line: line.seconds)[len(lines) // 2]

    async def _change_many(self) -> Line:
        title = f"change the in-sync replicas of {_CHANGES_AT_ONCE:,} partitions at once"
        return await self._measure(title, [self._isr_changes(_CHANGES_AT_ONCE)])

    def _isr_changes(self, count: int) -> AlterPartitions:
        """Remove the last replica from the ISR of this number of partitions with the same leader."""
        image = self._image
        leader = next(iter(image.brokers))
        led = (
            (topic, number, partition)
            for topic in image.topics.values()
            for number, partition in enumerate(topic.partitions)
            if partition.leader == leader == partition.isr[0] and len(partition.isr) == len(partition.replicas)
        )
        changes = [
            IsrChange(topic.topic_id, number, partition.leader_epoch, partition.partition_epoch, partition.isr[:-1])
            for topic, number, partition in itertools.islice(led, count)
        ]
        assert len(changes) == count
        return AlterPartitions(leader, image.brokers[leader].epoch, tuple(changes))

    async def _lose_broker(self) -> Line:
        lost = max(self._image.brokers)
        epoch = self._image.brokers[lost].epoch
        led = sum(partition.leader == lost for topic in self._image.topics.values() for partition in topic.partitions)
        replicas = sum(lost in partition.isr for topic in self._image.topics.values() for partition in topic.partitions)
        title = f"a broker dies: {led:,} elections, {replicas:,} partitions change"
        line = await self._measure(title, [FenceBrokers(((lost, epoch),))])
        assert not any(lost in partition.isr for topic in self._image.topics.values() for partition in topic.partitions)
        return line

    async def _start_again(self) -> Line:
        """Start another controller, which reads everything."""
        await self._shell.stop()
        self._store = CountingStore(self._connect())
        self._shell = self._new_shell()
        began = time.perf_counter()
        await self._shell.start()
        seconds = time.perf_counter() - began
        return Line("start of a controller: the store is read", seconds, self._store.take(), None, None)

    def _send_whole_image(self) -> Line:
        began = time.perf_counter()
        delta = delta_between(None, ImageUpdate.whole(ImageVersion(1, 1), self._image))
        encoded = encode_delta(delta)
        seconds = time.perf_counter() - began
        self.image_bytes = len(encoded)
        began = time.perf_counter()
        image = apply_delta(None, decode_delta(encoded)).image
        applied = time.perf_counter() - began
        assert image.topics == self._image.topics
        return Line("the whole image, for a broker that starts", seconds, Traffic(), len(encoded), applied)

    # -- helpers -----------------------------------------------------------------------------------------------------

    @property
    def _image(self) -> ClusterImage:
        return self._shell.image

    async def _measure(self, title: str, events: Sequence[ControllerEvent[Any]]) -> Line:
        """The time until the last event is committed and published, and the delta of all of them for the brokers."""
        known = self._image
        self._updates.clear()
        self._store.take()
        began = time.perf_counter()
        for event in events:
            _check(await self._shell.submit(event))
        seconds = time.perf_counter() - began
        traffic = self._store.take()
        update = self._updates[0]
        for each in self._updates[1:]:
            update = update.merged_with(each)
        encoded = encode_delta(delta_between((ImageVersion(1, 0), known), update))
        began = time.perf_counter()
        image = apply_delta(known, decode_delta(encoded)).image
        applied = time.perf_counter() - began
        assert image.topics == self._image.topics, "a broker that follows has the controller's image"
        return Line(title, seconds, traffic, len(encoded), applied)


def _check(reply: Any) -> None:
    for each in reply if isinstance(reply, tuple) else ():
        assert each.outcome.error is ErrorCode.NONE, each
