"""When a member of a cluster leads and follows, and when it does not."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, cast

import pytest

from kaspar.base.ids import BrokerId
from kaspar.broker.cluster import membership
from kaspar.broker.cluster.membership import ClusterStore, Leaderships, Membership
from kaspar.broker.cluster.own_controller import OwnController
from kaspar.broker.cluster.remote_controller import SILENT_S, RemoteController
from kaspar.controller.channel import Channel
from kaspar.metadata.image import AdvertisedEndpoint, ClusterImage
from kaspar.metadata.images import FollowedImage, ImageUpdate, ImageVersion
from kaspar.metadata.layout.broker_nodes import broker_path
from kaspar.metadata.store import Node, Operation, Watcher
from tests.unit.controller.clusters import broker
from tests.unit.metadata.stores import until

ME = BrokerId(1)
REGISTRATION = broker_path(ME, 2)


class OneSession:
    """A session of which nothing is known but this broker's registration: nobody controls."""

    is_lost = False
    is_connected = True
    safe_until = float("inf")

    async def get(self, path: str, watcher: Watcher | None = None) -> Node | None:
        return Node(b"", 0, 7) if path == REGISTRATION else None

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        return [await self.get(path) for path in paths]

    async def children(self, path: str, watcher: Watcher | None = None) -> list[str]:
        return []

    async def transact(self, operations: Sequence[Operation]) -> None:
        raise AssertionError("a member writes nothing here")

    async def close(self) -> None:
        pass


class RecordedLeaderships:
    def __init__(self) -> None:
        self.resumed = asyncio.Event()
        self.resigned = 0

    def resign(self) -> None:
        self.resigned += 1

    async def resume(self) -> None:
        self.resumed.set()


class OwnRegistration:
    path = REGISTRATION
    epoch = 7


class SilentController:
    """Takes the seat, and hands the test what it would publish images to."""

    def __init__(self) -> None:
        self.publish: asyncio.Future[Callable[[ImageUpdate], None]] = asyncio.get_running_loop().create_future()

    shell: object = None

    async def control(self, store: object, endpoint: object, on_update: Callable[[ImageUpdate], None]) -> None:
        if not self.publish.done():
            self.publish.set_result(on_update)
        await asyncio.Event().wait()


async def not_again() -> Any:
    raise AssertionError("its session is alive")


def member(
    images: FollowedImage,
    own: SilentController,
    leaderships: Leaderships,
    join: Callable[[], Awaitable[ClusterStore]] = not_again,
) -> Membership:
    return Membership(
        ME,
        images=images,
        channel=Channel(images),
        own=cast(OwnController, own),
        endpoint=AdvertisedEndpoint("PLAINTEXT", "host1", 9092, "PLAINTEXT"),
        registration=OwnRegistration(),
        join=join,
        leaderships=leaderships,
    )


def image_with(epoch: int) -> ClusterImage:
    return replace(ClusterImage("cluster"), brokers={ME: broker(1, epoch=epoch)})


def test_a_broker_that_starts_leads_nothing_until_the_controller_knows_of_its_registration() -> None:
    """The image that it gets first may be from before its crash, and have it as leader of records that it has lost."""

    async def scenario() -> None:
        images = FollowedImage(ME, on_bug=lambda problem: None)
        leaderships, own = RecordedLeaderships(), SilentController()
        one = member(images, own, leaderships)
        one.start(OneSession())
        assert leaderships.resigned == 1, "before it can have heard of any image"
        publish = await own.publish
        publish(ImageUpdate.whole(ImageVersion(1, 1), image_with(epoch=6)))
        await images.start()
        for _ in range(20):
            await asyncio.sleep(0)
        assert not leaderships.resumed.is_set()
        publish(ImageUpdate.whole(ImageVersion(1, 2), image_with(epoch=7)))
        await asyncio.wait_for(leaderships.resumed.wait(), 5)
        await one.stop()
        await images.stop()

    asyncio.run(scenario())


def test_a_broker_is_in_touch_while_its_session_lives_and_the_controller_is_heard() -> None:
    """A process that was paused may have heard from the controller shortly before its session expired."""

    async def scenario() -> None:
        now = time.monotonic()
        own, session = SilentController(), OneSession()
        one = member(FollowedImage(ME, on_bug=lambda problem: None), own, RecordedLeaderships())
        one.start(session)
        remote = RemoteController(BrokerId(2), ("host2", 9092), me=ME, on_update=lambda update: None)
        assert not one.in_touch(), "no controller is known"
        one._remote = remote
        assert not one.in_touch(), "none was heard from"
        remote.heard_at = now
        assert one.in_touch()
        session.safe_until = now
        assert not one.in_touch()
        own.shell = object()
        assert not one.in_touch(), "another broker may control by now"
        session.safe_until = now + 100
        remote.heard_at = now - SILENT_S
        assert one.in_touch()
        own.shell = None
        assert not one.in_touch()
        await one.stop()
        assert not one.in_touch()

    asyncio.run(scenario())


def test_a_bug_on_the_way_back_does_not_keep_a_broker_from_leading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership, "RETRY_S", 0.001)
    monkeypatch.setattr(membership, "LONGEST_RETRY_S", 0.001)

    class OnceBroken(OneSession):
        def __init__(self) -> None:
            self.bugs: list[Exception] = [ZeroDivisionError("watching")]

        async def get(self, path: str, watcher: Watcher | None = None) -> Node | None:
            if path == REGISTRATION and self.bugs:
                raise self.bugs.pop()
            return await super().get(path, watcher)

    class OnceFailing(RecordedLeaderships):
        bugs: ClassVar[list[Exception]] = [ZeroDivisionError("resuming")]

        async def resume(self) -> None:
            if self.bugs:
                raise self.bugs.pop()
            await super().resume()

    async def scenario() -> None:
        attempts = iter([ZeroDivisionError("joining"), OneSession()])

        async def join() -> Any:
            attempt = next(attempts)
            if isinstance(attempt, Exception):
                raise attempt
            return attempt

        images = FollowedImage(ME, on_bug=lambda problem: None)
        leaderships, own = OnceFailing(), SilentController()
        one = member(images, own, leaderships, join)
        one.start(OnceBroken())
        await until(lambda: leaderships.resigned == 2)
        publish = await own.publish
        publish(ImageUpdate.whole(ImageVersion(1, 1), image_with(epoch=7)))
        await images.start()
        await asyncio.wait_for(leaderships.resumed.wait(), 5)
        assert next(attempts, None) is None
        await one.stop()
        await images.stop()

    asyncio.run(scenario())
