"""Runs the controller over a store: it handles events one by one, and commits each decision before it is visible.
Events about dead brokers come first (controller/event_queue.py).

Every transaction also writes the fence node (controller/fence.py), so that an older controller can no longer write.

After each commit the new image is published to the brokers that follow this controller, with the deletions that led to
it (metadata/images.py). The controller does not wait until they have applied it, not even for its own broker.

A store that does not respond for a while, or a lost session, interrupts the controller: every change is refused with
NOT_CONTROLLER, which clients retry, while brokers serve records as before. It keeps trying to claim the store again, in
a new epoch, and then reads everything again, because the outcome of its last change is unknown. It stops being the
controller only when another broker takes over.

How a topic is created and deleted:
- Create: one transaction. After it the topic exists; brokers create the logs when they see the new image. A broker that
  crashes in between creates them at its next start, because the image has the topic.
- Delete: one transaction moves the topic to the deleted topics, and its name is free at once. Brokers remove their logs
  of every deleted topic, when they see the new image and at every start, and report it (`LogsRemoved`); after the last
  report the store forgets the topic. Logs of topics that the store does not know are not touched, so that a lost
  metadata file does not cost data.
"""

import asyncio
import contextlib
import functools
import itertools
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId
from kaspar.base.log import get_log
from kaspar.controller.controller import Controller
from kaspar.controller.decision import Decision
from kaspar.controller.event_queue import EventQueue
from kaspar.controller.events import BrokersSeen, ControllerEvent, DirectoriesFailed, FenceBrokers
from kaspar.controller.fence import Fence, NoLongerController, StoreDisagrees, StoreUnavailable, fenced_by
from kaspar.controller.metrics import ControllerMetrics
from kaspar.controller.state_changes import record_changes
from kaspar.metadata.image import ClusterImage, DeletedTopic
from kaspar.metadata.images import ImageUpdate, ImageVersion
from kaspar.metadata.layout import store_paths
from kaspar.metadata.layout.controller_nodes import Address
from kaspar.metadata.loading import load_brokers, load_image, prepare_store
from kaspar.metadata.store import AccessDenied, SessionLost, Store, StoreError, StoreFull

log = get_log(__name__)

R = TypeVar("R")

Follower: TypeAlias = Callable[[ImageUpdate], None]
"""Called with each published update, in order. It must not fail or block: it puts the update into a queue."""

_MAX_QUEUED_EVENTS = 1000
_LONGEST_DELAY_S = 5.0
"""The longest delay between two attempts to claim a store that does not respond."""
DECIDED_INLINE_PARTITIONS = 2000
"""In a larger cluster decisions are made in a thread, because one about all partitions would block the event loop too
long."""
LOOK_AT_FENCE_S = 10.0
RESIGN_WITHIN_S = 1.0


class _LookAtBrokers(ControllerEvent[None], frozen=True):
    """Asks the shell to read which brokers are up."""


class _LookAtFence(ControllerEvent[None], frozen=True):
    """Asks the shell to check that the store responds, and that no other controller has claimed it."""


class _Resign(ControllerEvent[None], frozen=True):
    """Asks the shell to leave the seat to the successor, or with None to any other broker."""

    successor: BrokerId | None


class Committed(NamedTuple, Generic[R]):
    """The reply to an event, and the version of the image that the reply refers to."""

    reply: R
    version: ImageVersion


class ControllerShell:
    """Owns the cluster's state while it is the controller. Afterwards `ended` is set and it refuses all events."""

    def __init__(
        self,
        store: Store,
        controller: Controller,
        *,
        retry_delay_s: float = 0.05,
        cluster_id: str | None = None,
        address: Address | None = None,
        reconnect: Callable[[], Awaitable[Store]] | None = None,
        on_bug: Callable[[Exception], None] = lambda problem: None,
        metrics: ControllerMetrics | None = None,
    ) -> None:
        """`address`: where other brokers reach this controller. `reconnect` opens a new session when the current one is
        lost, and registers this broker in it; without it a lost session ends the controller. `on_bug` is called with
        unexpected failures, which may have no caller to report them to.
        """
        self.ended = asyncio.Event()
        self.interrupted: str | None = None
        """Why nothing can be changed now, as a sentence. Safe from any thread."""
        self._store = store
        self._controller = controller
        self._retry_delay_s = retry_delay_s
        self._cluster_id = cluster_id
        self._reconnect = reconnect
        self._on_bug = on_bug
        self._followers: list[Follower] = []
        self._metrics = metrics or ControllerMetrics()
        self._queue: EventQueue[tuple[float, ControllerEvent[Any], asyncio.Future[Committed[Any]]]]
        self._queue = EventQueue(_MAX_QUEUED_EVENTS)
        self._watch_fired = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._image: ClusterImage | None = None
        self._has_started = False
        self._version = ImageVersion(-1, 0)
        self._is_full = False
        self._deciding = ThreadPoolExecutor(1, thread_name_prefix="kaspar-controller")
        self._fence = Fence(store, controller.broker_id, address=address, retry_delay_s=retry_delay_s)

    @property
    def image(self) -> ClusterImage:
        assert self._image is not None, "the controller is not running"
        return self._image

    def add_follower(self, follower: Follower) -> None:
        """Publish to this follower from now on. If the controller has started, it gets the whole image first."""
        self._followers.append(follower)
        if self._has_started:
            follower(ImageUpdate.whole(self._version, self.image))

    @property
    def store(self) -> Store:
        """The current session with the metadata store."""
        return self._store

    async def start(self) -> ClusterImage:
        """Claim the store, read the image and read which brokers are up. From then on no older controller can write.

        This broker must be registered before: a leader that is not up when the controller first reads the brokers loses
        its partitions. Nothing is published before that: the image has no brokers yet, and this broker's clients would
        drop all brokers that they know.
        """
        await self._fence.retried(lambda: prepare_store(self._store, self._cluster_id))
        self._image = await self._claim()
        self._tasks.append(asyncio.create_task(self._run(), name="controller"))
        self._tasks.append(asyncio.create_task(self._follow_watch(), name="controller-broker-watch"))
        self._tasks.append(asyncio.create_task(self._look_at_fence(), name="controller-fence"))
        await self.look_at_brokers()
        self._has_started = True
        image = self.image
        self._publish(image, frozenset(image.topics), tuple(image.deleted_topics.values()))
        return image

    async def stop(self) -> None:
        """Stop, and refuse the events that wait. Safe to call twice."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._deciding.shutdown(wait=False)
        if not self.ended.is_set():
            self._end("the controller is stopping")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._fence.resign(), RESIGN_WITHIN_S)

    async def look_at_brokers(self) -> None:
        """Read which brokers are up, and return once the image shows them."""
        await self._enqueue(_LookAtBrokers())

    async def resign(self, successor: BrokerId | None) -> None:
        """Leave the seat to the successor, or with None to any other broker, after the events in the queue. Raises
        Refused.
        """
        await self._enqueue(_Resign(successor))

    async def submit(self, event: ControllerEvent[R]) -> R:
        """The reply, once its change is committed and published. Raises Refused."""
        return (await self.commit(event)).reply

    async def commit(self, event: ControllerEvent[R]) -> Committed[R]:
        """The reply, as from `submit`, with the version of the image that shows the change. Raises Refused."""
        return await self._enqueue(event)

    async def _enqueue(self, event: ControllerEvent[R]) -> Committed[R]:
        self._check_takes_events()
        loop = asyncio.get_running_loop()
        reply: asyncio.Future[Committed[R]] = loop.create_future()
        is_urgent = isinstance(event, FenceBrokers | _LookAtBrokers)
        await self._queue.put((loop.time(), event, reply), is_urgent=is_urgent)
        if self.ended.is_set() or self.interrupted is not None:  # that may have changed while it waited for room
            self._refuse_waiting(self.interrupted or "the controller stopped before it handled the event")
        return await reply

    def _check_takes_events(self) -> None:
        if self.ended.is_set():
            raise NoLongerController("This is not the correct controller for this cluster.")
        if self.interrupted is not None:
            raise StoreUnavailable(self.interrupted)

    async def _run(self) -> None:
        while not self.ended.is_set():
            queued_at, event, future = await self._queue.get()
            try:
                reply = await self._measured(queued_at, event)
            except (StoreUnavailable, SessionLost, AccessDenied) as problem:
                _fail(future, StoreUnavailable(str(problem)))
                await self._recover(str(problem))
            except NoLongerController as problem:
                _fail(future, problem)
                self._replaced(problem)
            except StoreFull as problem:
                self._note_full(problem)
                _fail(future, Refused(ErrorCode.KAFKA_STORAGE_ERROR, str(problem)))
            except asyncio.CancelledError:
                _fail(future, NoLongerController("the controller is stopping"))
                raise
            except Exception as problem:
                # The edge of the task: the caller gets the refusal or the unexpected failure, which is also logged.
                if not isinstance(problem, Refused):
                    self._failed(problem, type(event).__name__)
                _fail(future, problem)
            else:
                if not future.done():
                    future.set_result(Committed(reply, self._version))

    async def _measured(self, queued_at: float, event: ControllerEvent[Any]) -> Any:
        metrics, loop = self._metrics, asyncio.get_running_loop()
        started = loop.time()
        metrics.queue_time.record(started - queued_at)
        metrics.events_started += 1
        try:
            return await self._handle(event)
        finally:
            metrics.processing_time.record(loop.time() - started)

    async def _handle(self, event: ControllerEvent[Any]) -> Any:
        if isinstance(event, _LookAtFence):
            await self._fence.check()
            return None
        if isinstance(event, _Resign):
            await self._fence.pass_on(event.successor)
            self._end("the controller was moved to another broker")
            return None
        if isinstance(event, _LookAtBrokers):
            self._watch_fired.clear()
            seen = await self._fence.retried(lambda: load_brokers(self._store, self._on_watch))
            event = BrokersSeen(seen)
        decision = await self._decide(event)
        for step in decision.steps:
            if step.operations:
                try:
                    await self._fence.commit(step.operations)
                except StoreDisagrees:
                    if not isinstance(event, FenceBrokers | DirectoriesFailed):
                        raise
                    # A broker owns its registration, and may have removed it at the same time because it stops.
                    return await self._handle(_LookAtBrokers())
                self._note_space()
            self._publish(step.image, step.changed_topics, step.deleted_topics)
        return decision.reply

    async def _decide(self, event: ControllerEvent[Any]) -> Decision[Any]:
        """Decide, in a thread if there are many partitions. That is safe because images are immutable and there is one
        decision at a time.
        """
        decide = functools.partial(self._controller.decide, self.image, event)
        counts = itertools.accumulate(len(topic.partitions) for topic in self.image.topics.values())
        if all(count <= DECIDED_INLINE_PARTITIONS for count in counts):  # stops at the limit: there may be many topics
            return decide()
        return await asyncio.get_running_loop().run_in_executor(self._deciding, decide)

    def _note_full(self, problem: StoreFull) -> None:
        if not self._is_full:
            self._is_full = True
            log.warning("changes are rejected until the metadata store has space", reason=str(problem))

    def _note_space(self) -> None:
        if self._is_full:
            self._is_full = False
            log.info("the metadata store has space again")

    def _publish(
        self, image: ClusterImage, changed_topics: frozenset[str], deleted_topics: tuple[DeletedTopic, ...]
    ) -> None:
        before, self._image = self._image, image
        if before is not None and before is not image:
            record_changes(before, image, changed_topics, deleted_topics, self._metrics)
        self._version = ImageVersion(self._fence.epoch, self._version.number + 1)
        if self._has_started:
            update = ImageUpdate(self._version, image, changed_topics, deleted_topics)
            for follower in self._followers:
                follower(update)

    # -- claiming the store, and claiming it again -------------------------------------------------------------------

    async def _claim(self) -> ClusterImage:
        """Claim the fence and load the image, which no other controller can change from then on."""
        await self._fence.claim()
        image = await self._fence.retried(lambda: load_image(self._store))
        if image.controller_epoch != self._fence.epoch:
            raise fenced_by(image.controller_id, image.controller_epoch)
        log.info("claimed the metadata store", epoch=image.controller_epoch, topics=len(image.topics))
        return image

    async def _recover(self, reason: str) -> None:
        """Try to claim the store again. Returns on success, or when another controller has it."""
        delay_s = self._retry_delay_s
        while not self.ended.is_set():
            self._interrupt(reason)
            await asyncio.sleep(delay_s)
            delay_s = min(2 * delay_s, _LONGEST_DELAY_S)
            try:
                await self._start_over()
                return
            except NoLongerController as problem:
                self._replaced(problem)
            except (StoreError, Refused) as problem:
                reason = str(problem)
            except Exception as problem:
                self._failed(problem, "claiming the store again")
                reason = repr(problem)

    def _interrupt(self, reason: str) -> None:
        if self.interrupted is None:
            log.error(
                "the controller has lost the metadata store: nothing can be changed until it returns", reason=reason
            )
        self.interrupted = f"The metadata store cannot be used, so nothing can be changed: {reason}."
        self._refuse_waiting(self.interrupted)

    async def _start_over(self) -> None:
        if self._store.is_lost:
            if self._reconnect is None:
                raise NoLongerController("the session with the metadata store is over")
            self._store = self._fence.store = await self._reconnect()
        await self._store.get(store_paths.FENCE)  # a single read: fails fast if the store does not respond
        loaded = await self._claim()
        # These fields are not loaded with the image. They keep their values until the brokers are read again.
        loaded = replace(loaded, brokers=self.image.brokers, shutting_down=self.image.shutting_down)
        image, changed_topics, deleted_topics = loaded.after(self.image)
        # From here on events are accepted, so that what brokers report after they have seen this image is not refused.
        self.interrupted = None
        log.info("the controller is back", epoch=image.controller_epoch, changed_topics=len(changed_topics))
        self._publish(image, changed_topics, deleted_topics)
        await self._handle(_LookAtBrokers())

    def _on_watch(self, path: str) -> None:
        self._watch_fired.set()

    async def _follow_watch(self) -> None:
        """Read the brokers again whenever the watch fires."""
        while not self.ended.is_set():
            await self._watch_fired.wait()
            self._watch_fired.clear()
            try:
                await self.look_at_brokers()
            except Refused as refusal:
                # The controller is interrupted, or the store is full: try again later.
                log.warning("the registered brokers could not be read", reason=refusal.message)
                await asyncio.sleep(_LONGEST_DELAY_S)
                self._watch_fired.set()
            except Exception as problem:
                self._on_bug(problem)

    async def _look_at_fence(self) -> None:
        """Check the fence regularly, so that a store that does not respond, or that another controller has claimed, is
        noticed even while nothing changes.
        """
        while not self.ended.is_set():
            await asyncio.sleep(LOOK_AT_FENCE_S)
            with contextlib.suppress(Exception):  # _run has already handled the failure
                await self._enqueue(_LookAtFence())

    def _failed(self, problem: Exception, event: str) -> None:
        log.exception("an event failed in the controller", event=event)
        self._metrics.errors += 1
        self._on_bug(problem)

    def _replaced(self, problem: NoLongerController) -> None:
        log.error("no longer the controller", reason=problem.message)
        self._end(problem.message)

    def _end(self, reason: str) -> None:
        self.ended.set()
        self._refuse_waiting(reason)

    def _refuse_waiting(self, reason: str) -> None:
        while not self._queue.empty():
            _, _, future = self._queue.get_nowait()
            _fail(future, NoLongerController(reason))


def _fail(future: asyncio.Future[Any], problem: Exception) -> None:
    if not future.done():
        future.set_exception(problem)
