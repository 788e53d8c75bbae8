"""How a broker follows images: in order, merged while it is busy, and never taking absence for deletion."""

import asyncio
import uuid
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest

from kaspar.base.ids import BrokerId, LeaderEpoch
from kaspar.metadata.image import ClusterImage, DeletedTopic, PartitionImage, TopicImage
from kaspar.metadata.images import FollowedImage, ImageChange, ImageUpdate, ImageVersion
from tests.unit.metadata.stores import until, within

ME, OTHER = BrokerId(1), BrokerId(2)
EMPTY = ClusterImage("cluster")
FOR_EVER_S = 20.0


def topic(name: str, number: int, *replicas: BrokerId) -> TopicImage:
    replicas = replicas or (ME,)
    partition = PartitionImage(replicas, replicas, replicas[0], LeaderEpoch(0), 0)
    return TopicImage(name, uuid.UUID(int=number), (partition,))


def image_of(*topics: TopicImage, deleted: tuple[DeletedTopic, ...] = ()) -> ClusterImage:
    image = replace(EMPTY, deleted_topics={each.topic_id: each for each in deleted})
    return image.with_topics({each.name: each for each in topics})


def deletion(of: TopicImage) -> DeletedTopic:
    return DeletedTopic(of.name, of.topic_id, of.partitions[0].replicas)


def update(number: int, image: ClusterImage, *changed: str, epoch: int = 1, **more: Any) -> ImageUpdate:
    return ImageUpdate(ImageVersion(epoch, number), image, frozenset(changed), **more)


class Follower:
    """Follows images, and remembers each change."""

    def __init__(self) -> None:
        self.changes: list[ImageChange] = []
        self.bugs: list[Exception] = []
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        self.images = FollowedImage(ME, on_bug=self.bugs.append, retry_s=0.001)
        self.images.add_listener("test", self.on_image)

    async def on_image(self, change: ImageChange) -> None:
        self.changes.append(change)
        await self.may_go_on.wait()

    async def receive(self, *updates: ImageUpdate) -> ImageChange:
        for each in updates:
            self.images.receive(each)
        assert await self.images.followed(updates[-1].version, within_s=FOR_EVER_S)
        return self.changes[-1]


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(within(FOR_EVER_S, scenario))


async def started(first: ClusterImage = EMPTY) -> Follower:
    follower = Follower()
    follower.images.receive(ImageUpdate.whole(ImageVersion(1, 0), first))
    await follower.images.start()
    return follower


def test_the_first_image_is_all_new() -> None:
    async def scenario() -> None:
        old, gone = topic("old", 1), topic("gone", 2)
        follower = await started(image_of(old, deleted=(deletion(gone),)))
        (first,) = follower.changes
        assert first.old.topics == {}
        assert first.changed_topics == {"old"}
        assert first.deleted_topics == (deletion(gone),)
        await follower.images.stop()

    run(scenario())


def test_a_listener_that_fails_with_the_first_image_fails_the_start() -> None:
    async def scenario() -> None:
        follower = Follower()

        def fail(change: ImageChange) -> None:
            raise ZeroDivisionError

        follower.images.add_listener("fails", fail)
        follower.images.receive(update(0, EMPTY))
        with pytest.raises(ZeroDivisionError):
            await follower.images.start()
        await follower.images.stop()

    run(scenario())


def test_updates_that_arrive_meanwhile_are_merged_in_their_order() -> None:
    async def scenario() -> None:
        follower = await started()
        first, second = topic("t", 1), topic("t", 2)
        follower.may_go_on.clear()
        follower.images.receive(update(1, image_of(first), "t"))
        await until(lambda: len(follower.changes) == 2)
        follower.images.receive(update(2, replace(EMPTY), "t", deleted_topics=(deletion(first),)))
        follower.images.receive(update(3, image_of(second, topic("u", 3)), "t", "u"))
        assert follower.images.current.topics == {"t": first}
        assert not await follower.images.followed(ImageVersion(1, 2), within_s=0)
        follower.may_go_on.set()
        assert await follower.images.followed(ImageVersion(1, 3), within_s=FOR_EVER_S)
        merged = follower.changes[-1]
        assert len(follower.changes) == 3
        assert merged.old.topics == {"t": first}
        assert merged.new.topics["t"] == second
        assert merged.changed_topics == {"t", "u"}
        assert merged.deleted_topics == (deletion(first),)
        await follower.images.stop()

    run(scenario())


def test_what_an_older_controller_publishes_late_is_ignored() -> None:
    async def scenario() -> None:
        follower = await started()
        newer = image_of(topic("t", 1))
        await follower.receive(update(1, newer, "t", epoch=2))
        follower.images.receive(update(9, EMPTY, "t", epoch=1, deleted_topics=(deletion(topic("t", 1)),)))
        change = await follower.receive(update(2, newer, epoch=2))
        assert change.new.topics == newer.topics
        assert change.deleted_topics == ()
        await follower.images.stop()

    run(scenario())


def test_a_topic_that_is_missing_and_not_deleted_is_kept() -> None:
    async def scenario() -> None:
        kept, deleted, elsewhere = topic("kept", 1), topic("deleted", 2), topic("elsewhere", 3, OTHER)
        follower = await started(image_of(kept, deleted, elsewhere))
        torn = update(1, EMPTY, "kept", "deleted", "elsewhere", deleted_topics=(deletion(deleted),))
        change = await follower.receive(torn)
        assert change.new.topics == {"kept": kept}, "of the others this broker has nothing to lose"
        assert change.deleted_topics == (deletion(deleted),)
        assert follower.images.current is change.new
        change = await follower.receive(update(2, image_of(kept)))
        assert change.new.topics == {"kept": kept}
        await follower.images.stop()

    run(scenario())


def test_a_deletion_that_only_the_image_says_is_one() -> None:
    async def scenario() -> None:
        gone = topic("gone", 1)
        follower = await started(image_of(gone))
        change = await follower.receive(update(7, image_of(deleted=(deletion(gone),)), "gone"))
        assert change.new.topics == {}
        assert change.deleted_topics == (deletion(gone),)
        await follower.images.stop()

    run(scenario())


def test_a_recreated_topic_replaces_the_old_one() -> None:
    async def scenario() -> None:
        old, new = topic("t", 1), topic("t", 2)
        follower = await started(image_of(old))
        change = await follower.receive(update(1, image_of(new), "t"))
        assert change.new.topics == {"t": new}
        assert change.new.topic_names == {new.topic_id: "t"}
        await follower.images.stop()

    run(scenario())


def test_waiters_are_released_when_the_broker_stops() -> None:
    async def scenario() -> None:
        follower = await started()
        waiting = asyncio.create_task(follower.images.followed(ImageVersion(1, 5), within_s=FOR_EVER_S))
        await asyncio.sleep(0)
        await follower.images.stop()
        assert not await waiting
        assert not await follower.images.followed(ImageVersion(1, 5), within_s=FOR_EVER_S)

    run(scenario())
