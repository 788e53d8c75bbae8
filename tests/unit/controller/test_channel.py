"""The channel to the controller: a reply waits until this broker has followed the change; the controller does not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.controller.channel import Channel
from kaspar.controller.events import DONE, AllocateProducerIds, CreateTopics, NewTopic
from kaspar.controller.shell import ControllerShell
from kaspar.metadata.image import ClusterImage
from kaspar.metadata.images import FollowedImage, ImageChange, OnImage
from kaspar.metadata.sqlite import SqliteMetadata
from tests.unit.controller.test_shell import ONE, run, running, stored
from tests.unit.metadata.stores import until


class Bugs(list[Exception]):
    """What was reported as a bug."""


@asynccontextmanager
async def following(
    shell: ControllerShell, on_image: OnImage, *, within_s: float = 20.0, bugs: Bugs | None = None
) -> AsyncIterator[Channel]:
    """The channel of a broker whose only listener is this one, which hears of what comes after the first image."""
    images = FollowedImage(ONE, on_bug=(Bugs() if bugs is None else bugs).append, retry_s=0.001)
    channel = Channel(images, follow_within_s=within_s)
    shell.add_follower(images.receive)
    channel.connect(shell)
    await images.start()
    images.add_listener("test", on_image)
    try:
        yield channel
    finally:
        await images.stop()


def test_a_reply_waits_until_the_change_is_followed_and_the_controller_does_not(tmp_path: Path) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        may_go_on = asyncio.Event()

        async def make_logs(change: ImageChange) -> None:
            await may_go_on.wait()

        async with running(metadata.connect()) as shell, following(shell, make_logs) as channel:
            creating = asyncio.create_task(channel.submit(CreateTopics((NewTopic("t"),))))
            await until(lambda: "t" in shell.image.topics)
            (again,) = await shell.submit(CreateTopics((NewTopic("t"),)))
            assert again.outcome.error is ErrorCode.TOPIC_ALREADY_EXISTS
            refused_too = asyncio.create_task(channel.submit(CreateTopics((NewTopic("t"),))))
            await shell.submit(AllocateProducerIds(ONE))
            assert not creating.done()
            assert not refused_too.done(), "a topic that is reported as existing takes writes at once"
            may_go_on.set()
            (created,) = await creating
            assert created.outcome == DONE
            await refused_too

    run(scenario, tmp_path)


def test_a_commit_does_not_wait_until_the_change_is_followed(tmp_path: Path) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        may_go_on = asyncio.Event()

        async def make_logs(change: ImageChange) -> None:
            await may_go_on.wait()

        async with running(metadata.connect()) as shell, following(shell, make_logs) as channel:
            (created,), _ = await asyncio.wait_for(channel.commit(CreateTopics((NewTopic("t"),))), 10)
            assert created.outcome == DONE
            may_go_on.set()

    run(scenario, tmp_path)


def test_a_reply_does_not_wait_for_ever(tmp_path: Path) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        never = asyncio.Event()

        async def hang(change: ImageChange) -> None:
            await never.wait()

        async with running(metadata.connect()) as shell, following(shell, hang, within_s=0.01) as channel:
            (created,) = await channel.submit(CreateTopics((NewTopic("t"),)))
            assert created.outcome == DONE
            never.set()

    run(scenario, tmp_path)


def test_without_a_controller_every_event_is_refused() -> None:
    async def scenario() -> None:
        channel = Channel(FollowedImage(ONE, on_bug=Bugs().append))
        assert channel.problem is not None
        with pytest.raises(Refused) as refused:
            await channel.submit(AllocateProducerIds(ONE))
        assert refused.value.code is ErrorCode.NOT_CONTROLLER

    asyncio.run(scenario())


def test_a_failing_listener_is_logged_and_retried_and_the_next_event_is_served(tmp_path: Path) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        delivered: list[frozenset[str]] = []
        known: list[ClusterImage] = []
        bugs = Bugs()

        def fail_twice(change: ImageChange) -> None:
            delivered.append(change.changed_topics)
            if len(delivered) < 3:
                raise ZeroDivisionError
            known.append(change.old)

        async with running(metadata.connect()) as shell:
            before = shell.image
            async with following(shell, fail_twice, bugs=bugs) as channel:
                (created,) = await channel.submit(CreateTopics((NewTopic("t"),)))
                assert created.outcome == DONE, "it is committed, whatever became of it here"
                await until(lambda: len(delivered) == 3)
                (created,) = await channel.submit(CreateTopics((NewTopic("other"),)))
                assert created.outcome == DONE
                assert delivered == [{"t"}, {"t"}, {"t"}, {"other"}]
                assert known[0] is before, "what failed is delivered again from where it failed"
                assert [type(bug) for bug in bugs] == [ZeroDivisionError] * 2
                assert await stored(metadata) == shell.image

    run(scenario, tmp_path)
