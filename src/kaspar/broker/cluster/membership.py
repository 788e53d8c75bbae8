"""This broker's membership in a cluster: it registers, follows or is the controller, and rejoins after a lost session.

    session -> registration -> seat vacant?  yes: take it, be the controller until it is lost
                                                  unless it was left to another broker just now
                                             no:  follow the broker that has it until that is lost
                                                  its process has ended: vacate its seat, and look again

Records do not pass through here: while the controller or ZooKeeper is unreachable, leaders continue to lead. They stop
when the session has expired or the controller has removed the registration: other brokers may lead by then, so this
broker leads nothing until it is registered again.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from kaspar.base.errors import Refused
from kaspar.base.ids import BrokerId
from kaspar.base.log import get_log
from kaspar.broker.cluster.liveness import has_ended
from kaspar.broker.cluster.own_controller import OwnController
from kaspar.broker.cluster.remote_controller import SILENT_S, LostController, RemoteController
from kaspar.broker.security.between_brokers import ConnectToBroker, connect_in_the_clear
from kaspar.controller.channel import Channel
from kaspar.controller.fence import NoLongerController, vacate_seat
from kaspar.metadata import AdvertisedEndpoint, ClusterImage, Store
from kaspar.metadata.images import FollowedImage, ImageUpdate, ImageVersion
from kaspar.metadata.layout import controller_nodes, store_paths
from kaspar.metadata.store import AccessDenied, Node, StoreError

log = get_log(__name__)

RETRY_S: Final = 0.2
LONGEST_RETRY_S: Final = 5.0
SUCCESSOR_WITHIN_S: Final = 1.0
"""How long a seat that was left to another broker is kept free for it."""


class ClusterStore(Store, Protocol):
    """A session with a ZooKeeper ensemble."""

    @property
    def is_connected(self) -> bool: ...

    @property
    def safe_until(self) -> float:
        """The time (`time.monotonic()`) until which the session cannot have expired."""
        ...


class Registration(Protocol):
    """The last registration of this broker."""

    @property
    def path(self) -> str: ...

    @property
    def epoch(self) -> int: ...


class Leaderships(Protocol):
    """The partitions that this broker leads and follows."""

    def resign(self) -> None:
        """Stop leading and following until `resume`."""
        ...

    async def resume(self) -> None:
        """Lead and follow what the current image says."""
        ...


class Membership:
    def __init__(
        self,
        broker_id: BrokerId,
        *,
        images: FollowedImage,
        channel: Channel,
        own: OwnController,
        endpoint: AdvertisedEndpoint,
        registration: Registration,
        join: Callable[[], Awaitable[ClusterStore]],
        leaderships: Leaderships,
        connect: ConnectToBroker = connect_in_the_clear,
    ) -> None:
        """`endpoint` is where other brokers reach this one. `join` opens a session and registers this broker in it,
        which sets `registration`.
        """
        self.own = own
        self._broker_id = broker_id
        self._images = images
        self._channel = channel
        self._endpoint = endpoint
        self._registration = registration
        self._join = join
        self._leaderships = leaderships
        self._connect = connect
        self._store: ClusterStore | None = None
        self._task: asyncio.Task[None] | None = None
        self._received: tuple[ClusterImage | None, ImageVersion] = (None, ImageVersion(-1, -1))
        self._arrived = asyncio.Event()
        self._has_resigned = False
        self._is_leaving = False
        self._remote: RemoteController | None = None

    def start(self, store: ClusterStore) -> None:
        """Start with the first session, `store`, in which this broker is registered. It leads nothing until the
        controller knows of the registration: an older image may have it as leader, in an epoch in which it had records
        that were lost in a crash.
        """
        self._resign()
        self._store = store
        self._task = asyncio.create_task(self._run(store), name="membership of the cluster")

    def begin_leaving(self) -> None:
        """Stop registering again. This broker is about to refuse connections, for which the controller may fence it at
        once.
        """
        self._is_leaving = True

    async def stop(self) -> None:
        """Leave the cluster: other brokers may take over its partitions. Safe to call twice."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        store, self._store = self._store, None
        if store is not None:
            with contextlib.suppress(StoreError):
                await store.close()

    @property
    def store(self) -> ClusterStore | None:
        """The current session; None once this broker has left the cluster."""
        return self._store

    @property
    def is_current_controller(self) -> bool:
        """Whether this broker is the controller, and certain that its session has not expired."""
        return self.own.shell is not None and self._store is not None and time.monotonic() < self._store.safe_until

    def in_touch(self) -> bool:
        """Whether this broker would know if another one had taken over from it: its session cannot have expired, and it
        has heard from the controller recently. A process that was paused is not in touch, whatever it heard last.
        """
        now = time.monotonic()
        if self._store is None or now >= self._store.safe_until:
            return False
        return self.own.shell is not None or (self._remote is not None and now - self._remote.heard_at <= SILENT_S)

    # -- sessions ------------------------------------------------------------------------------------------------------

    async def _run(self, store: ClusterStore) -> None:
        while True:
            try:
                await self._be_member(store)
            except Exception:
                # The edge of the task: if it ended, this broker would not notice that its registration is gone.
                log.exception("could not watch the registration, registering again")
                await asyncio.sleep(RETRY_S)
            if self._is_leaving:
                self._leaderships.resign()
                return
            log.error("this broker is no longer registered and leads nothing until it registers again")
            self._resign()
            with contextlib.suppress(StoreError):
                await store.close()
            store = self._store = await self._joined_again()
            log.info("this broker is registered again", node=self._broker_id)

    def _resign(self) -> None:
        self._leaderships.resign()
        self._has_resigned = True

    async def _be_member(self, store: ClusterStore) -> None:
        """Return when the session is over, or the registration is gone."""
        tasks = [
            asyncio.create_task(self._follow_or_control(store), name="controller or follower"),
            asyncio.create_task(self._resume(), name="leadership resumes"),
        ]
        try:
            await self._until_unregistered(store)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _resume(self) -> None:
        """Lead and follow again once the controller knows of the new registration: its earlier decisions may be out of
        date.
        """
        if not self._has_resigned:
            return
        while True:
            image, version = self._received
            me = None if image is None else image.brokers.get(self._broker_id)
            if me is not None and me.epoch == self._registration.epoch:
                if await self._images.followed(version, within_s=LONGEST_RETRY_S):
                    break
            else:
                self._arrived.clear()
                await self._arrived.wait()
        while self._has_resigned:
            try:
                await self._leaderships.resume()
                self._has_resigned = False
            except Exception:
                # The edge of the task: a registered broker must not stay without leading anything.
                log.exception("could not resume leading and following, retrying")
                await asyncio.sleep(LONGEST_RETRY_S)
        log.info("the controller has registered this broker, which can now lead and follow", node=self._broker_id)

    async def _until_unregistered(self, store: ClusterStore) -> None:
        changed = asyncio.Event()
        while not store.is_lost:
            changed.clear()
            try:
                if await store.get(self._registration.path, lambda path: changed.set()) is None:
                    return
            except StoreError:
                await asyncio.sleep(RETRY_S)
            else:
                await changed.wait()

    async def _joined_again(self) -> ClusterStore:
        delay_s = RETRY_S
        while True:
            try:
                return await self._join()
            except (StoreError, Refused) as problem:
                log.warning("this broker cannot join its cluster yet", reason=str(problem))
            except Exception:  # the edge of the task, as above
                log.exception("could not join the cluster, retrying")
            await asyncio.sleep(delay_s)
            delay_s = min(2 * delay_s, LONGEST_RETRY_S)

    # -- the controller ------------------------------------------------------------------------------------------------

    async def _follow_or_control(self, store: ClusterStore) -> None:
        while not store.is_lost:
            try:
                await self._follow_or_control_once(store)
            except (StoreError, Refused) as problem:
                log.warning("looking for the controller again", reason=str(problem))
                await asyncio.sleep(LONGEST_RETRY_S if isinstance(problem, AccessDenied) else RETRY_S)
            except Exception:
                # The edge of the task: a broker must not stay without a controller.
                log.exception("following the controller failed; retrying")
                await asyncio.sleep(LONGEST_RETRY_S)

    async def _follow_or_control_once(self, store: ClusterStore) -> None:
        """Return when the seat has changed, or should have."""
        changed = asyncio.Event()
        # The fence is read before the seat: if the seat changes in between, its new owner changes the fence's version,
        # too.
        fence = await store.get(store_paths.FENCE)
        seat = await store.get(store_paths.CONTROLLER_SEAT, lambda path: changed.set())
        if seat is None and fence is not None and not controller_nodes.may_claim(fence.value, self._broker_id):
            with contextlib.suppress(TimeoutError):  # the seat stayed vacant: that broker is not up
                async with asyncio.timeout(SUCCESSOR_WITHIN_S):
                    await changed.wait()
                    return
        if seat is None:
            with contextlib.suppress(NoLongerController):  # another broker was faster
                await self.own.control(store, self._endpoint, self._receive)
        elif fence is not None and seat.is_mine:
            await vacate_seat(store, fence.version)  # it was taken by an earlier controller of this broker
        else:
            await self._follow(store, seat, changed)

    async def _follow(self, store: ClusterStore, seat: Node, changed: asyncio.Event) -> None:
        controller_id, address = controller_nodes.decode_seat(seat.value)
        assert address is not None, "controllers of a cluster have an address"
        heard_at = -math.inf if self._remote is None else self._remote.heard_at  # from an earlier controller
        remote = self._remote = RemoteController(
            controller_id,
            address,
            me=self._broker_id,
            on_update=self._receive,
            heard_at=heard_at,
            connect=self._connect,
        )
        following = asyncio.create_task(remote.follow(*self._received, lambda: self._channel.connect(remote)))
        waiting = asyncio.create_task(changed.wait())
        try:
            await asyncio.wait((following, waiting), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._channel.disconnect()
            for task in (following, waiting):
                task.cancel()
            outcome, _ = await asyncio.gather(following, waiting, return_exceptions=True)
        if isinstance(outcome, LostController):
            log.warning("the controller is lost", reason=str(outcome))
            await self._vacate_if_dead(store, seat)
        elif isinstance(outcome, Exception):
            raise outcome

    async def _vacate_if_dead(self, store: ClusterStore, seat: Node) -> None:
        """Vacate the seat of a controller whose process has ended. The fence is read before the seat: if the seat
        changes after that, so does the fence's version, and vacating fails.
        """
        controller_id, address = controller_nodes.decode_seat(seat.value)
        fence = await store.get(store_paths.FENCE)
        now = await store.get(store_paths.CONTROLLER_SEAT)
        if fence is None or now is None or now.created != seat.created or address is None:
            return
        if await has_ended(*address):
            log.warning(
                "the controller's process has ended; its controller registration was removed", controller=controller_id
            )
            await vacate_seat(store, fence.version)
        else:
            await asyncio.sleep(RETRY_S)

    def _receive(self, update: ImageUpdate) -> None:
        self._received = update.image, update.version
        self._arrived.set()
        self._images.receive(update)
