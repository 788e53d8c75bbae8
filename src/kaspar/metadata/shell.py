"""Runs the controller over a store: events one by one, each decision committed before anyone sees it.

Every transaction also puts the fence node, on the condition that nobody put it meanwhile. That one operation is the
fencing (a newer controller has put it, so an older one is refused) and the answer to unknown outcomes (the fence says
whether the transaction is in). Two transactions of one controller cannot overtake each other either.

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
from dataclasses import dataclass, replace
from typing import Any, TypeVar, overload

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId
from kaspar.base.log import get_log
from kaspar.metadata import layout
from kaspar.metadata.controller import Controller
from kaspar.metadata.decision import Step
from kaspar.metadata.events import (
    AllocateProducerIds,
    AlterConfigs,
    AlterPartitions,
    BrokersSeen,
    CreatedTopic,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    Event,
    FeatureOutcome,
    IsrOutcome,
    LogsRemoved,
    NamedOutcome,
    ProducerIdBlock,
    ResourceOutcome,
    TopicDeletion,
    UpdateFeatures,
)
from kaspar.metadata.image import BrokerRegistration, ClusterImage
from kaspar.metadata.loading import load_brokers, load_image, prepare_store
from kaspar.metadata.store import (
    Create,
    Node,
    Operation,
    Put,
    SessionLost,
    Store,
    StoreFull,
    UnknownOutcome,
    VersionConflict,
)

T = TypeVar("T")
log = get_log(__name__)

OnImage = Callable[[ClusterImage, ClusterImage, frozenset[str]], Awaitable[None] | None]
"""Called with the old image, the new one, and the names of the topics that were made, changed or deleted."""

_MAX_QUEUED_EVENTS = 1000
_MAX_ATTEMPTS = 20


class _LookAtBrokers:
    """Asks the shell to read who is up."""


@dataclass(slots=True)
class _Fence:
    controller_id: BrokerId
    epoch: int
    transaction: int
    version: int


class NoLongerController(Refused):
    def __init__(self, reason: str) -> None:
        super().__init__(ErrorCode.NOT_CONTROLLER, reason)


class ControllerShell:
    """Owns the cluster's state while it is the controller. When it no longer is, `ended` is set and it refuses all."""

    def __init__(
        self, store: Store, controller: Controller, *, retry_delay_s: float = 0.05, cluster_id: str | None = None
    ) -> None:
        self.ended = asyncio.Event()
        self._store = store
        self._controller = controller
        self._retry_delay_s = retry_delay_s
        self._cluster_id = cluster_id
        self._listeners: list[OnImage] = []
        self._queue: asyncio.Queue[tuple[Event | _LookAtBrokers, asyncio.Future[Any]]] = asyncio.Queue(
            _MAX_QUEUED_EVENTS
        )
        self._watch_fired = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._image: ClusterImage | None = None
        self._fence: _Fence | None = None

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
        await self._retried(lambda: prepare_store(self._store, self._cluster_id))
        self._fence = await self._claim()
        image = await self._retried(lambda: load_image(self._store))
        assert image.controller_epoch == self._fence.epoch, "the image is of this controller's epoch"
        self._image = image
        self._tasks.append(asyncio.create_task(self._run(), name="controller"))
        self._tasks.append(asyncio.create_task(self._follow_watch(), name="controller-broker-watch"))
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
    async def submit(self, event: BrokersSeen | LogsRemoved) -> None: ...

    async def submit(self, event: Event) -> Any:
        """The reply, once it is committed and every listener has seen it. Raises Refused."""
        return await self._enqueue(event)

    async def _enqueue(self, event: Event | _LookAtBrokers) -> Any:
        if self.ended.is_set():
            raise NoLongerController("This is not the correct controller for this cluster.")
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        await self._queue.put((event, answer))
        if self.ended.is_set():
            self._end("the controller stopped while the event waited for its turn")
        return await answer

    async def _run(self) -> None:
        while not self.ended.is_set():
            event, answer = await self._queue.get()
            try:
                reply = await self._handle(event)
            except (NoLongerController, SessionLost) as problem:
                self._answer_error(answer, NoLongerController(str(problem)))
                log.error("no longer the controller", reason=str(problem))
                self._end(str(problem))
            except StoreFull as problem:
                self._answer_error(answer, Refused(ErrorCode.KAFKA_STORAGE_ERROR, str(problem)))
            except asyncio.CancelledError:
                self._answer_error(answer, NoLongerController("the controller stops"))
                raise
            except Exception as problem:
                # The edge of the task: a refusal goes to whoever asked, and so does a defect, which is also logged.
                if not isinstance(problem, Refused):
                    log.exception("an event failed in the controller", event=type(event).__name__)
                self._answer_error(answer, problem)
            else:
                if not answer.done():
                    answer.set_result(reply)

    async def _handle(self, event: Event | _LookAtBrokers) -> Any:
        if isinstance(event, _LookAtBrokers):
            self._watch_fired.clear()
            seen = await self._retried(lambda: load_brokers(self._store, self._on_watch))
            event = BrokersSeen(seen)
        decision = self._controller.decide(self.image, event)
        for step in decision.steps:
            await self._carry_out(step)
        return decision.reply

    async def _carry_out(self, step: Step) -> None:
        if step.operations:
            await self._commit(step.operations)
        old, self._image = self.image, step.image
        for listener in self._listeners:
            waiting = listener(old, step.image, step.changed_topics)
            if waiting is not None:
                await waiting

    async def _commit(self, operations: tuple[Operation, ...]) -> None:
        fence = self._fence
        assert fence is not None, "a controller claims the fence before it decides"
        number = fence.transaction + 1
        value = layout.encode_fence(fence.controller_id, fence.epoch, number)
        for attempt in range(_MAX_ATTEMPTS):
            conflict: VersionConflict | None = None
            try:
                await self._store.transact([Put(layout.FENCE, value, fence.version), *operations])
                self._fence = replace(fence, transaction=number, version=fence.version + 1)
                return
            except VersionConflict as problem:
                conflict = problem
            except UnknownOutcome as problem:
                log.warning("the outcome of a metadata change is unknown; looking again", problem=str(problem))
                await asyncio.sleep(self._retry_delay_s if attempt else 0)
            found = await self._read_fence()
            if found.epoch != fence.epoch:
                raise NoLongerController(f"broker {found.controller_id} is the controller in epoch {found.epoch}")
            if found.transaction == number:
                self._fence = found
                return
            if conflict is not None and found.version == fence.version:
                raise AssertionError(f"the image and the store disagree: {conflict}")
        raise NoLongerController("the metadata store does not answer")

    async def _claim(self) -> _Fence:
        """Put the fence as our own, one epoch further."""
        for _ in range(_MAX_ATTEMPTS):
            found = await self._read_fence()
            epoch = found.epoch + 1
            claim = layout.encode_fence(self._controller.broker_id, epoch, 0)
            try:
                await self._store.transact([Put(layout.FENCE, claim, found.version)])
            except (VersionConflict, UnknownOutcome):
                # Claiming once more costs an epoch at most, and is right whether or not the first claim is in.
                continue
            return _Fence(self._controller.broker_id, epoch, 0, found.version + 1)
        raise NoLongerController("the metadata store does not answer")

    async def _read_fence(self) -> _Fence:
        node = await self._retried(lambda: self._store.get(layout.FENCE))
        assert node is not None, "the fence is made with the store and never deleted"
        fields = layout.decode(node.value)
        return _Fence(BrokerId(fields["controller"]), fields["epoch"], fields["transaction"], node.version)

    async def _retried(self, read: Callable[[], Awaitable[T]]) -> T:
        """For what may be done twice: reads, and preparing the store."""
        for attempt in range(_MAX_ATTEMPTS):
            try:
                return await read()
            except UnknownOutcome as problem:
                log.warning("the metadata store did not answer; asking again", problem=str(problem))
                await asyncio.sleep(self._retry_delay_s if attempt else 0)
        raise NoLongerController("the metadata store does not answer")

    def _on_watch(self, path: str) -> None:
        self._watch_fired.set()

    async def _follow_watch(self) -> None:
        """Looks at the brokers again whenever the watch says that one came or went."""
        while not self.ended.is_set():
            await self._watch_fired.wait()
            self._watch_fired.clear()
            try:
                await self.look_at_brokers()
            except Refused:
                return

    def _end(self, reason: str) -> None:
        self.ended.set()
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
    path = layout.broker_path(registration.broker_id)
    for attempt in range(_MAX_ATTEMPTS):
        try:
            node = await _register_once(store, path, layout.encode_registration(registration))
        except UnknownOutcome as problem:
            log.warning("the metadata store did not answer; registering again", problem=str(problem))
            await asyncio.sleep(retry_delay_s if attempt else 0)
            continue
        if node.is_mine:
            return replace(registration, epoch=node.created)
        # Of another session: another broker, or this one's last life, whose session the store has yet to give up.
        raise Refused(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"Another broker is registered with that broker id: {registration.broker_id}",
        )
    raise NoLongerController("the metadata store does not answer")


async def _register_once(store: Store, path: str, value: bytes) -> Node:
    with contextlib.suppress(VersionConflict):  # an attempt whose outcome was unknown may have made it
        await store.transact([Create(path, value, ephemeral=True)])
    node = await store.get(path)
    if node is None:
        raise UnknownOutcome("the registration went away as it was read")
    return node
