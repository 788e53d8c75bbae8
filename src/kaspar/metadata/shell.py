"""Runs the controller over a store: events one by one, each decision committed before anyone sees it.

Every transaction also puts the fence node (metadata/fence.py), so that an older controller cannot write any more.

A store that does not answer for a second, or a session that is lost, interrupts the controller: every change is refused
with NOT_CONTROLLER, which clients take as "ask again", while this broker serves records as before. It claims the store
again for as long as it takes, in a new epoch, and then reads everything anew, since the outcome of its last change is
unknown. Only another controller ends it.

How a topic comes and goes:
- Create: one transaction. After it the topic exists; brokers make the logs when they see the new image. A broker that
  crashes in between makes them at its next start, for the image says so.
- Delete: one transaction moves the topic to the deleted ones, and its name is free at once. Brokers remove the logs
  of every deleted topic they hold, when they see the new image and at every start, and report it (`LogsRemoved`);
  after the last report it is forgotten. Logs of topics that the store has never heard of are not touched: a lost
  metadata file must not cost data.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeAlias, overload

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.log import get_log
from kaspar.metadata import layout
from kaspar.metadata.controller import Controller
from kaspar.metadata.events import (
    AllocateProducerIds,
    AlterConfigs,
    AlterPartitions,
    AssignDirectories,
    BrokersSeen,
    CreatedTopic,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    Event,
    FeatureOutcome,
    IsrOutcome,
    LogsLost,
    LogsRemoved,
    NamedOutcome,
    ProducerIdBlock,
    ResourceOutcome,
    TopicDeletion,
    UpdateFeatures,
)
from kaspar.metadata.fence import Fence, NoLongerController, StoreAway, fenced_by, retried
from kaspar.metadata.image import BrokerRegistration, ClusterImage
from kaspar.metadata.loading import load_brokers, load_image, prepare_store
from kaspar.metadata.store import (
    Create,
    Node,
    SessionLost,
    Store,
    StoreError,
    StoreFull,
    UnknownOutcome,
    VersionConflict,
)

log = get_log(__name__)

OnImage = Callable[[ClusterImage, ClusterImage, frozenset[str]], Awaitable[None] | None]
"""Called with the old image, the new one, and the names of the topics that were made, changed or deleted."""

_MAX_QUEUED_EVENTS = 1000
_LONGEST_DELAY_S = 5.0
"""Between two attempts to claim a store that is away."""
LOOK_AT_FENCE_S = 10.0


class _LookAtBrokers:
    """Asks the shell to read who is up."""


class _LookAtFence:
    """Asks the shell to see whether the store is there, and still its own."""


_Event: TypeAlias = Event | _LookAtBrokers | _LookAtFence


class ControllerShell:
    """Owns the cluster's state while it is the controller. When another one is, `ended` is set and it refuses all."""

    def __init__(
        self,
        store: Store,
        controller: Controller,
        *,
        retry_delay_s: float = 0.05,
        cluster_id: str | None = None,
        reconnect: Callable[[], Awaitable[Store]] | None = None,
        met_a_bug: Callable[[Exception], None] = lambda problem: None,
    ) -> None:
        """`reconnect` opens another session when the first one is lost, and registers this broker in it; without it a
        lost session ends the controller. `met_a_bug` is told what nobody else may be there to hear.
        """
        self.ended = asyncio.Event()
        self.interrupted: str | None = None
        """Why nothing can be changed now, as a sentence. For any thread."""
        self._store = store
        self._controller = controller
        self._retry_delay_s = retry_delay_s
        self._cluster_id = cluster_id
        self._reconnect = reconnect
        self._met_a_bug = met_a_bug
        self._listeners: list[OnImage] = []
        self._queue: asyncio.Queue[tuple[_Event, asyncio.Future[Any]]] = asyncio.Queue(_MAX_QUEUED_EVENTS)
        self._watch_fired = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._image: ClusterImage | None = None
        self._unfollowed: frozenset[str] = frozenset()
        """Topics whose last change a listener has not carried out, for it met a bug."""
        self._is_full = False
        self._fence = Fence(store, controller.broker_id, retry_delay_s=retry_delay_s)

    @property
    def image(self) -> ClusterImage:
        assert self._image is not None, "the controller has not started"
        return self._image

    def add_listener(self, on_image: OnImage) -> None:
        """The answer to an event waits for every listener, so whoever gets it finds the change carried out here."""
        self._listeners.append(on_image)

    async def start(self) -> ClusterImage:
        """Claim the store, read the image and see which brokers are up. No older controller can write from then on.

        The broker it lives in is registered before, for a leader that is not up when the controller first looks
        loses its partitions.
        """
        await self._fence.retried(lambda: prepare_store(self._store, self._cluster_id))
        self._image = await self._claim()
        self._tasks.append(asyncio.create_task(self._run(), name="controller"))
        self._tasks.append(asyncio.create_task(self._follow_watch(), name="controller-broker-watch"))
        self._tasks.append(asyncio.create_task(self._look_at_fence(), name="controller-fence"))
        await self.look_at_brokers()
        return self.image

    async def stop(self) -> None:
        """Events that wait are refused. Safe to call twice."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._end("the controller stops")

    async def look_at_brokers(self) -> None:
        """Returns once the image shows the brokers that are up now."""
        await self._enqueue(_LookAtBrokers())

    @overload
    async def submit(self, event: CreateTopics) -> tuple[CreatedTopic, ...]: ...
    @overload
    async def submit(self, event: DeleteTopics) -> tuple[TopicDeletion, ...]: ...
    @overload
    async def submit(self, event: CreatePartitions) -> tuple[NamedOutcome, ...]: ...
    @overload
    async def submit(self, event: AlterConfigs) -> tuple[ResourceOutcome, ...]: ...
    @overload
    async def submit(self, event: UpdateFeatures) -> tuple[FeatureOutcome, ...]: ...
    @overload
    async def submit(self, event: AllocateProducerIds) -> ProducerIdBlock: ...
    @overload
    async def submit(self, event: AlterPartitions) -> tuple[IsrOutcome, ...]: ...
    @overload
    async def submit(self, event: BrokersSeen | LogsRemoved | AssignDirectories | LogsLost) -> None: ...

    async def submit(self, event: Event) -> Any:
        """The reply, once it is committed and every listener has seen it. Raises Refused."""
        return await self._enqueue(event)

    async def _enqueue(self, event: _Event) -> Any:
        self._check_takes_events()
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        await self._queue.put((event, answer))
        if self.ended.is_set() or self.interrupted is not None:  # it may have waited for room
            self._refuse_waiting(self.interrupted or "the controller stopped while the event waited for its turn")
        return await answer

    def _check_takes_events(self) -> None:
        if self.ended.is_set():
            raise NoLongerController("This is not the correct controller for this cluster.")
        if self.interrupted is not None:
            raise StoreAway(self.interrupted)

    async def _run(self) -> None:
        while not self.ended.is_set():
            event, answer = await self._queue.get()
            try:
                reply = await self._handle(event)
            except (StoreAway, SessionLost) as problem:
                self._answer_error(answer, StoreAway(str(problem)))
                await self._recover(str(problem))
            except NoLongerController as problem:
                self._answer_error(answer, problem)
                self._replaced(problem)
            except StoreFull as problem:
                self._note_full(problem)
                self._answer_error(answer, Refused(ErrorCode.KAFKA_STORAGE_ERROR, str(problem)))
            except asyncio.CancelledError:
                self._answer_error(answer, NoLongerController("the controller stops"))
                raise
            except Exception as problem:
                # The edge of the task: a refusal goes to whoever asked, and so does a defect, which is also logged.
                if not isinstance(problem, Refused):
                    self._failed(problem, type(event).__name__)
                self._answer_error(answer, problem)
            else:
                if not answer.done():
                    answer.set_result(reply)

    async def _handle(self, event: _Event) -> Any:
        if isinstance(event, _LookAtFence):
            await self._fence.check()
            return await self._tell(self.image, self._unfollowed) if self._unfollowed else None
        if isinstance(event, _LookAtBrokers):
            self._watch_fired.clear()
            seen = await self._fence.retried(lambda: load_brokers(self._store, self._on_watch))
            event = BrokersSeen(seen)
        decision = self._controller.decide(self.image, event)
        for step in decision.steps:
            if step.operations:
                await self._fence.commit(step.operations)
                self._note_space()
            await self._publish(step.image, step.changed_topics)
        return decision.reply

    def _note_full(self, problem: StoreFull) -> None:
        if not self._is_full:
            self._is_full = True
            log.warning("changes are refused until the metadata store has space", reason=str(problem))

    def _note_space(self) -> None:
        if self._is_full:
            self._is_full = False
            log.info("the metadata store has space again")

    async def _publish(self, image: ClusterImage, changed_topics: frozenset[str]) -> None:
        old, self._image = self.image, image
        await self._tell(old, changed_topics)

    async def _tell(self, old: ClusterImage, changed_topics: frozenset[str]) -> None:
        """Topics with which a listener meets a bug are told again when the fence is looked at. Not with every event:
        the bug may stay, and other topics have no part in it.
        """
        self._unfollowed |= changed_topics
        for listener in self._listeners:
            waiting = listener(old, self.image, changed_topics)
            if waiting is not None:
                await waiting
        self._unfollowed -= changed_topics

    # -- claiming the store, and claiming it again -------------------------------------------------------------------

    async def _claim(self) -> ClusterImage:
        """The image as it is once nobody else can change it."""
        await self._fence.claim()
        image = await self._fence.retried(lambda: load_image(self._store))
        if image.controller_epoch != self._fence.epoch:
            raise fenced_by(image.controller_id, image.controller_epoch)
        return image

    async def _recover(self, reason: str) -> None:
        """Return when the store is claimed again, or another controller has it."""
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
                self._failed(problem, "the store is claimed again")
                reason = repr(problem)

    def _interrupt(self, reason: str) -> None:
        if self.interrupted is None:
            log.error("the controller is interrupted: nothing can be changed until it is back", reason=reason)
        self.interrupted = f"The metadata store cannot be used, so nothing can be changed: {reason}."
        self._refuse_waiting(self.interrupted)

    async def _start_over(self) -> None:
        if self._store.is_lost:
            if self._reconnect is None:
                raise NoLongerController("the session with the metadata store is over")
            self._store = self._fence.store = await self._reconnect()
        await self._store.get(layout.FENCE)  # one question, as long as the store is away
        loaded = await self._claim()
        image, changed_topics = loaded.after(self.image)
        # From here on events may wait for their turn: what listeners have to report is not refused.
        self.interrupted = None
        log.info("the controller is back", epoch=image.controller_epoch, changed_topics=len(changed_topics))
        await self._publish(image, changed_topics)
        await self._handle(_LookAtBrokers())

    def _on_watch(self, path: str) -> None:
        self._watch_fired.set()

    async def _follow_watch(self) -> None:
        """Looks at the brokers again whenever the watch says that one came or went."""
        while not self.ended.is_set():
            await self._watch_fired.wait()
            self._watch_fired.clear()
            try:
                await self.look_at_brokers()
            except Refused as refusal:
                # Interrupted, or the store is full: the brokers are looked at when that is over.
                log.warning("the brokers that are up could not be looked at", reason=refusal.message)
                await asyncio.sleep(_LONGEST_DELAY_S)
                self._watch_fired.set()
            except Exception as problem:
                self._met_a_bug(problem)

    async def _look_at_fence(self) -> None:
        """Where nothing is changed for long, nobody else would notice that the store is away or has another owner."""
        while not self.ended.is_set():
            await asyncio.sleep(LOOK_AT_FENCE_S)
            with contextlib.suppress(Exception):  # whatever it is, the controller has noticed
                await self._enqueue(_LookAtFence())

    def _failed(self, problem: Exception, event: str) -> None:
        log.exception("an event failed in the controller", event=event)
        self._met_a_bug(problem)

    def _replaced(self, problem: NoLongerController) -> None:
        log.error("no longer the controller", reason=problem.message)
        self._end(problem.message)

    def _end(self, reason: str) -> None:
        self.ended.set()
        self._refuse_waiting(reason)

    def _refuse_waiting(self, reason: str) -> None:
        while not self._queue.empty():
            _, answer = self._queue.get_nowait()
            self._answer_error(answer, NoLongerController(reason))

    @staticmethod
    def _answer_error(answer: asyncio.Future[Any], problem: Exception) -> None:
        if not answer.done():
            answer.set_exception(problem)


async def register_broker(
    store: Store, registration: BrokerRegistration, *, retry_delay_s: float = 0.05
) -> BrokerRegistration:
    """Announces a broker that is up, for as long as its session lives; the registration with its epoch."""
    path, value = layout.broker_path(registration.broker_id), layout.encode_registration(registration)
    node = await retried(lambda: _register_once(store, path, value), retry_delay_s)
    if not node.is_mine:
        # Of another session: another broker, or this one's last life, whose session the store has yet to give up.
        raise Refused(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"Another broker is registered with that broker id: {registration.broker_id}",
        )
    return replace(registration, epoch=node.created)


async def _register_once(store: Store, path: str, value: bytes) -> Node:
    with contextlib.suppress(VersionConflict):  # an attempt whose outcome was unknown may have made it
        await store.transact([Create(path, value, ephemeral=True)])
    node = await store.get(path)
    if node is None:
        raise UnknownOutcome("the registration went away as it was read")
    return node
