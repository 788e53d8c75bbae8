"""How a broker follows the cluster's image: the updates that the controller publishes, and the listeners of this
broker.

- An update replaces the current image and is then delivered to the listeners in order, one after the other. Updates
  that arrive while one is being delivered are merged, so at most one update waits for a slow listener.
- An older controller's updates are ignored once a newer controller's have arrived.
- Absence from an image never means deletion: deletions are part of an update, or of the image (`deleted_topics`). A
  deleted topic stays in the image's deletions until this broker reports that its logs are removed. So if a topic with
  replicas on this broker is missing from an image and not among the deletions, the image is incomplete, and the topic
  is kept as it was.
- A listener that fails does not affect the others. It gets the topics of the failed change again after RETRY_S, not
  with every update, because the failure may persist and need not affect other topics.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Protocol, TypeAlias

from kaspar.base.ids import BrokerId
from kaspar.base.log import get_log
from kaspar.metadata.image import ClusterImage, DeletedTopic, TopicImage

log = get_log(__name__)

RETRY_S: Final = 10.0
LAST_DELIVERY_S: Final = 5.0
"""How long a delivery may still take when the broker stops."""


class ImageVersion(NamedTuple):
    """Orders published images: the images of a later controller are newer, whatever their number."""

    controller_epoch: int
    number: int


_BEFORE_THE_FIRST: Final = ImageVersion(-1, -1)


@dataclass(frozen=True, slots=True)
class ImageUpdate:
    """What a controller publishes: an image, the topics that differ from the previous image, and the deletions."""

    version: ImageVersion
    image: ClusterImage
    changed_topics: frozenset[str]
    deleted_topics: tuple[DeletedTopic, ...] = ()

    @classmethod
    def whole(cls, version: ImageVersion, image: ClusterImage) -> "ImageUpdate":
        """The update for a follower without an image: all topics count as changed."""
        return cls(version, image, frozenset(image.topics), tuple(image.deleted_topics.values()))

    def merged_with(self, later: "ImageUpdate") -> "ImageUpdate":
        return replace(
            later,
            changed_topics=self.changed_topics | later.changed_topics,
            deleted_topics=_union(self.deleted_topics, later.deleted_topics),
        )


@dataclass(frozen=True, slots=True)
class ImageChange:
    """What a listener gets. `changed_topics` were created, changed or deleted. A topic is deleted if it is among
    `deleted_topics`, not because it is missing from the new image. A recreated topic has another id.
    """

    old: ClusterImage
    new: ClusterImage
    changed_topics: frozenset[str]
    deleted_topics: tuple[DeletedTopic, ...] = ()

    def merged_with(self, later: "ImageChange") -> "ImageChange":
        return ImageChange(
            self.old,
            later.new,
            self.changed_topics | later.changed_topics,
            _union(self.deleted_topics, later.deleted_topics),
        )


OnImage: TypeAlias = Callable[[ImageChange], Awaitable[None] | None]


class ImageSource(Protocol):
    """Provides the current image of the cluster."""

    @property
    def current(self) -> ClusterImage: ...


@dataclass(slots=True)
class _Listener:
    name: str
    on_image: OnImage
    failed: ImageChange | None = None
    """The change that the listener failed to apply."""


class FollowedImage:
    """The newest image that this broker has received, and the listeners that apply it."""

    def __init__(self, broker_id: BrokerId, *, on_bug: Callable[[Exception], None], retry_s: float = RETRY_S) -> None:
        self._broker_id = broker_id
        self._on_bug = on_bug
        self._retry_s = retry_s
        self._retry_at = 0.0
        self._current: ClusterImage | None = None
        self._listeners: list[_Listener] = []
        self._waiting: ImageUpdate | None = None
        self._received = _BEFORE_THE_FIRST
        self._delivered = _BEFORE_THE_FIRST
        self._arrived = asyncio.Event()
        self._waiters: list[tuple[ImageVersion, asyncio.Future[bool]]] = []
        self._task: asyncio.Task[None] | None = None
        self._stopping = False

    @property
    def current(self) -> ClusterImage:
        assert self._current is not None, "no image has reached this broker yet"
        return self._current

    def add_listener(self, name: str, on_image: OnImage) -> None:
        """Add a listener. Listeners are called in the order in which they were added."""
        self._listeners.append(_Listener(name, on_image))

    def receive(self, update: ImageUpdate) -> None:
        """Accept an update that the controller has published. Returns at once; listeners are called later."""
        if update.version <= self._received:
            return
        self._received = update.version
        self._waiting = update if self._waiting is None else self._waiting.merged_with(update)
        self._arrived.set()

    async def start(self) -> ClusterImage:
        """Deliver the first update, then keep following. If a listener fails with the first update, the start fails."""
        await self._arrived.wait()
        change, version = self._take()
        for listener in self._listeners:
            await _call(listener, change)
        self._note_delivered(version)
        self._task = asyncio.create_task(self._follow(), name="follow the cluster's image")
        return self.current

    async def stop(self) -> None:
        """Stop. A delivery in progress may finish within LAST_DELIVERY_S. Safe to call twice."""
        self._stopping = True
        self._arrived.set()
        task, self._task = self._task, None
        if task is not None:
            await asyncio.wait((task,), timeout=LAST_DELIVERY_S)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        waiters, self._waiters = self._waiters, []
        for _, waiter in waiters:
            _resolve(waiter, False)

    async def followed(self, version: ImageVersion, *, within_s: float) -> bool:
        """Wait until this version has been delivered to every listener. False on timeout, or if the broker stops."""
        if version <= self._delivered:
            return True
        if self._stopping:
            return False
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiters.append((version, waiter))
        try:
            return await asyncio.wait_for(waiter, within_s)
        except TimeoutError:
            self._waiters = [each for each in self._waiters if each[1] is not waiter]
            return False

    async def _follow(self) -> None:
        while not self._stopping:
            if await self._is_retry_due():
                await self._retry()
            elif not self._stopping:
                change, version = self._take()
                for listener in self._listeners:
                    await self._notify(listener, change)
                self._note_delivered(version)

    async def _is_retry_due(self) -> bool:
        """Wait for an update, or until a failed listener is due again. True if a retry is due."""
        if all(listener.failed is None for listener in self._listeners):
            await self._arrived.wait()
            return False
        left_s = self._retry_at - asyncio.get_running_loop().time()
        if left_s <= 0:
            return True
        try:
            await asyncio.wait_for(self._arrived.wait(), left_s)
        except TimeoutError:
            return True
        return False

    def _take(self) -> tuple[ImageChange, ImageVersion]:
        """Make the waiting update's image the current one."""
        update, self._waiting = self._waiting, None
        assert update is not None, "an update has arrived"
        self._arrived.clear()
        old = self._current if self._current is not None else ClusterImage(update.image.cluster_id)
        self._current, deleted_topics = self._completed(old, update)
        return ImageChange(old, self._current, update.changed_topics, deleted_topics), update.version

    def _completed(self, old: ClusterImage, update: ImageUpdate) -> tuple[ClusterImage, tuple[DeletedTopic, ...]]:
        """The image with the topics that are missing without being deleted, and the deletions of image and update."""
        image = update.image
        gone = () if image.topics is old.topics else [old.topics[name] for name in old.topics.keys() - image.topics]
        said = [image.deleted_topics[topic.topic_id] for topic in gone if topic.topic_id in image.deleted_topics]
        deleted_topics = _union(update.deleted_topics, tuple(said))
        deleted_ids = {deleted.topic_id for deleted in deleted_topics}
        lacking = [topic for topic in gone if topic.topic_id not in deleted_ids and self._has_replica(topic)]
        if lacking:
            log.error(
                "an image lacks topics that were not deleted; they are kept",
                topics=",".join(sorted(topic.name for topic in lacking)),
                controller_epoch=update.version.controller_epoch,
            )
            image = image.with_topics({topic.name: topic for topic in lacking})
        return image, deleted_topics

    def _has_replica(self, topic: TopicImage) -> bool:
        return any(self._broker_id in partition.replicas for partition in topic.partitions)

    async def _notify(self, listener: _Listener, change: ImageChange) -> None:
        try:
            await _call(listener, change)
        except Exception as problem:
            # The edge of the task: the failure must not affect other listeners.
            log.exception("a change of the image could not be applied; retrying", listener=listener.name)
            listener.failed = change if listener.failed is None else listener.failed.merged_with(change)
            self._retry_at = asyncio.get_running_loop().time() + self._retry_s
            self._on_bug(problem)

    async def _retry(self) -> None:
        for listener in self._listeners:
            failed, listener.failed = listener.failed, None
            if failed is not None:
                await self._notify(listener, replace(failed, new=self.current))

    def _note_delivered(self, version: ImageVersion) -> None:
        self._delivered = version
        waiters, self._waiters = self._waiters, []
        for wanted, waiter in waiters:
            if wanted <= version:
                _resolve(waiter, True)
            else:
                self._waiters.append((wanted, waiter))


async def _call(listener: _Listener, change: ImageChange) -> None:
    waiting = listener.on_image(change)
    if waiting is not None:
        await waiting


def _resolve(waiter: asyncio.Future[bool], result: bool) -> None:
    if not waiter.done():
        waiter.set_result(result)


def _union(some: tuple[DeletedTopic, ...], others: tuple[DeletedTopic, ...]) -> tuple[DeletedTopic, ...]:
    by_id: dict[uuid.UUID, DeletedTopic] = {deleted.topic_id: deleted for deleted in (*some, *others)}
    return tuple(by_id.values())
