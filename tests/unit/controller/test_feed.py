"""What a controller publishes reaches each follower: the delta that it lacks, or everything."""

import asyncio
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from kaspar.base.ids import BrokerId, LeaderEpoch
from kaspar.controller.feed import ImageFeed
from kaspar.metadata.deltas import apply_delta, decode_delta
from kaspar.metadata.image import ClusterImage, PartitionImage, TopicImage
from kaspar.metadata.images import ImageUpdate, ImageVersion

ONE = BrokerId(1)
NONE = ImageVersion(-1, -1)


class Follower:
    """A broker that asks the feed."""

    def __init__(self) -> None:
        self.image: ClusterImage | None = None
        self.version = NONE
        self.changed: frozenset[str] = frozenset()

    async def poll(self, feed: ImageFeed, within_s: float = 5.0) -> bool:
        """Whether there was something new."""
        encoded = await feed.after(self.version, within_s=within_s)
        if encoded is None:
            return False
        delta = decode_delta(encoded)
        assert delta.follows in (None, self.version)
        update = apply_delta(self.image, delta)
        self.image, self.version, self.changed = update.image, update.version, update.changed_topics
        return True


class Publisher:
    def __init__(self, feed: ImageFeed, epoch: int = 1) -> None:
        self.feed = feed
        self.image = ClusterImage("cluster", controller_id=ONE, controller_epoch=epoch)
        self.number = 0
        self.publish()

    def publish(self, *names: str) -> None:
        """Create these topics."""
        partition = PartitionImage((ONE,), (ONE,), ONE, LeaderEpoch(0), 0)
        topics = {name: TopicImage(name, uuid.uuid4(), (partition,)) for name in names}
        self.image = replace(self.image.with_topics(topics), next_producer_id=self.number)
        self.number += 1
        version = ImageVersion(self.image.controller_epoch, self.number)
        self.feed.publish(ImageUpdate(version, self.image, frozenset(names)))


def run(scenario: Callable[[ImageFeed], Coroutine[Any, Any, None]], **options: int) -> None:
    async def within() -> None:
        async with asyncio.timeout(20):
            await scenario(ImageFeed(**options))

    asyncio.run(within())


def test_a_follower_gets_everything_and_then_what_it_lacks() -> None:
    async def scenario(feed: ImageFeed) -> None:
        publisher, follower = Publisher(feed), Follower()
        publisher.publish("a")
        assert await follower.poll(feed)
        assert follower.image == publisher.image
        publisher.publish("b")
        publisher.publish("c")
        assert await follower.poll(feed)
        assert follower.image == publisher.image
        assert follower.changed == {"b", "c"}

    run(scenario)


def test_a_follower_that_has_everything_waits() -> None:
    async def scenario(feed: ImageFeed) -> None:
        publisher, follower = Publisher(feed), Follower()
        await follower.poll(feed)
        assert not await follower.poll(feed, within_s=0.01)
        waiting = asyncio.create_task(follower.poll(feed))
        await asyncio.sleep(0)
        publisher.publish("a")
        assert await waiting
        assert follower.image == publisher.image

    run(scenario)


def test_a_follower_too_far_behind_gets_everything() -> None:
    async def scenario(feed: ImageFeed) -> None:
        publisher, follower = Publisher(feed), Follower()
        await follower.poll(feed)
        for name in "abcdef":
            publisher.publish(name)
        assert await follower.poll(feed)
        assert follower.image == publisher.image
        assert follower.changed == set("abcdef")

    run(scenario, kept=3)


def test_a_follower_of_an_earlier_controller_gets_everything() -> None:
    async def scenario(feed: ImageFeed) -> None:
        follower, earlier = Follower(), ImageFeed()
        Publisher(earlier, epoch=1).publish("a", "b")
        await follower.poll(earlier)
        publisher = Publisher(feed, epoch=2)
        publisher.publish("b")
        assert await follower.poll(feed)
        assert follower.image == publisher.image
        assert follower.changed == {"a", "b"}

    run(scenario)
