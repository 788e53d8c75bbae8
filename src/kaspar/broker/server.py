"""The broker: what it is made of, how it starts and stops, and the small services its handlers share."""

import asyncio
import contextlib
import socket
import sys
import time
import uuid
from collections.abc import Callable, Collection, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from kaspar import __version__
from kaspar.base.clock import Clock, SystemClock
from kaspar.base.errors import ErrorCode, KasparError, Refused, StorageFailure
from kaspar.base.ids import BrokerId
from kaspar.base.log import get_log
from kaspar.broker.appends import AppendQueues
from kaspar.broker.auto_creation import AutoCreation
from kaspar.broker.cleaning import Cleaning
from kaspar.broker.coordination.coordinators import Coordinators
from kaspar.broker.fetch_sessions import FetchSessions
from kaspar.broker.handlers.metadata import EncodedTopics
from kaspar.broker.hosting import Hosting
from kaspar.broker.http import HttpServer
from kaspar.broker.large_requests import LargeRequests
from kaspar.broker.listener import ConnectionLimits, Listener
from kaspar.broker.log_places import LogPlaces, claim_directories, expected_logs
from kaspar.broker.metrics import BrokerMetrics, BrokerState
from kaspar.broker.partitions import Partitions
from kaspar.broker.producer_ids import ProducerIds
from kaspar.broker.requests import Requests
from kaspar.broker.stalls import LoopMonitor
from kaspar.broker.syncing import Syncing
from kaspar.broker.timers import Timers
from kaspar.broker.upkeep import Upkeep
from kaspar.broker.view import RunningBroker
from kaspar.config import BrokerConfig, BrokerSettings
from kaspar.coordination import Now
from kaspar.metadata import (
    AdvertisedEndpoint,
    BrokerRegistration,
    ClusterImage,
    Controller,
    ControllerShell,
    SqliteMetadata,
    Store,
    register_broker,
)
from kaspar.metadata.directories import store_folder
from kaspar.metadata.events import (
    AllocateProducerIds,
    AlterConfigs,
    ConfigChange,
    Outcome,
    ProducerIdBlock,
    ResourceOutcome,
)
from kaspar.metadata.loading import load_image, prepare_store
from kaspar.metadata.store import StoreError
from kaspar.metadata.topic_names import is_internal
from kaspar.storage import Loaded, LogManager

if TYPE_CHECKING:
    from kaspar.broker.coordination.groups import Groups
    from kaspar.broker.coordination.transactions import Transactions

log = get_log(__name__)

P = ParamSpec("P")
T = TypeVar("T")

_new = tuple.__new__  # a named tuple's own constructor takes three times as long

BLOCKING_THREADS: Final = 8
SYNC_THREADS: Final = 4
SAY_PROGRESS_EVERY_S: Final = 1.0
LAST_REPORT_S: Final = 5.0


class Broker:
    """One broker. All of it belongs to its event loop's thread, but for what says otherwise."""

    def __init__(self, settings: BrokerSettings, *, clock: Clock | None = None) -> None:
        self.settings = settings
        self.clock = clock or SystemClock()
        self.broker_id = BrokerId(settings.config.node_id)
        self.state = BrokerState.NOT_RUNNING
        self.metrics = BrokerMetrics(version=__version__, start_time_ms=self.clock.now_ms())
        self.partitions = Partitions()
        self.encoded_topics = EncodedTopics()
        self.fetch_sessions = FetchSessions(self.config.max_incremental_fetch_session_cache_slots)
        self.listeners: list[Listener] = []
        self.logs = LogManager(self.config, self.clock)
        self.producer_ids = ProducerIds(self._allocate_producer_ids)
        self.failure: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        self._loop = asyncio.get_running_loop()
        self._blocking = ThreadPoolExecutor(BLOCKING_THREADS, thread_name_prefix="kaspar-io")
        self._sync_threads = ThreadPoolExecutor(SYNC_THREADS, thread_name_prefix="kaspar-sync")
        # One for all coordinators: they would only take the interpreter from each other, and from the event loop.
        self._loading_thread = ThreadPoolExecutor(1, thread_name_prefix="kaspar-load")
        self.appends = AppendQueues(self._blocking, self.clock, overload=self._overload)
        self.syncing = Syncing(
            self._sync_threads,
            synced=self.metrics.log_flush_time.record,
            failed=self.log_directory_failed,
            met_a_bug=self.request_failed,
        )
        self.timers = Timers(self.clock, met_a_bug=self._timer_met_a_bug)
        self.large_requests = LargeRequests(self)
        self.requests = Requests(self)
        self.places = LogPlaces(self)
        self.hosting = Hosting(self)
        self.coordinators = Coordinators(self)
        self.auto_creation = AutoCreation(self)
        self.cleaning = Cleaning(self)
        self._limits = ConnectionLimits(
            max_connections=self.config.max_connections,
            max_per_ip=self.config.max_connections_per_ip,
            per_ip_overrides=self.config.max_connections_by_address,
        )
        self._tasks: set[asyncio.Task[Any]] = set()
        self._monitor = LoopMonitor(self.metrics.stalls, on_window=self.metrics.rotate)
        self._metadata: SqliteMetadata | None = None
        self._controller: ControllerShell | None = None
        self._registration: BrokerRegistration | None = None
        self._http: HttpServer | None = None
        self._clean_start = True
        self._start_cancelled = False
        self._next_progress = 0.0

    @property
    def config(self) -> BrokerConfig:
        return self.settings.config

    @property
    def controller(self) -> ControllerShell:
        assert self._controller is not None, "the broker has not started"
        return self._controller

    @property
    def image(self) -> ClusterImage:
        return self.controller.image

    @property
    def groups(self) -> "Groups":
        """The group coordinator."""
        return self.coordinators.groups

    @property
    def transactions(self) -> "Transactions":
        """The transaction coordinator."""
        return self.coordinators.transactions

    @property
    def port(self) -> int:
        """The port of the first listener."""
        return self.listeners[0].port

    # -- starting ----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Return when clients are served. Raises KasparError with a sentence where that cannot be."""
        if sys.flags.optimize:
            raise KasparError(
                "Python runs with -O or PYTHONOPTIMIZE, which removes the assertions that stop a broker before it "
                "harms its data: start it without"
            )
        started = time.perf_counter()
        self.state = BrokerState.STARTING
        self._monitor.start()
        self._bind()
        store = await self._open_metadata(await self.run_blocking(self.logs.look))
        image = await load_image(store)
        trusted = not image.topics and not image.deleted_topics
        self.places.away = await claim_directories(store, image, self.logs, self.broker_id, trusted=trusted)
        self._apply_dynamic_settings(image)
        self.state = BrokerState.RECOVERY
        await self._load_logs(image)
        await self.coordinators.load_needed_code(image)
        self._registration = await register_broker(store, self._own_registration())
        self._controller = ControllerShell(
            store,
            Controller(self.settings),
            cluster_id=image.cluster_id,
            reconnect=self._reconnect,
            met_a_bug=self.request_failed,
        )
        image = await self._controller.start()
        self._apply_dynamic_settings(image)
        await self.hosting.follow(image, tuple(image.topics))
        self._controller.add_listener(self._image_changed)
        for listener in self.listeners:
            listener.start()
        self._start_http()
        Upkeep(self).start()
        self.spawn(self._follow_controller(self._controller), name="watch over the controller")
        self.cleaning.start()
        self.state = BrokerState.RUNNING
        log.info(
            "the broker is ready",
            node=self.broker_id,
            listeners=",".join(f"{each.listener}://{each.host}:{each.port}" for each in self._advertised()),
            partitions=len(self.partitions),
            cluster=image.cluster_id,
            seconds=round(time.perf_counter() - started, 3),
        )

    def _bind(self) -> None:
        """Before anything else is touched: a port that is taken must not cost a recovery first."""
        for endpoint in self.config.endpoints:
            self.listeners.append(
                Listener(
                    endpoint.listener,
                    endpoint.host,
                    endpoint.port,
                    requests=self.requests,
                    limits=self._limits,
                    max_request_bytes=self.config.socket_request_max_bytes,
                    max_idle_ms=self.config.connections_max_idle_ms,
                    send_buffer_bytes=self.config.socket_send_buffer_bytes,
                    receive_buffer_bytes=self.config.socket_receive_buffer_bytes,
                    backlog=self.config.socket_listen_backlog_size,
                    slot_freed=self._accept_again,
                    failed=self.request_failed,
                    stalled=self.metrics.stalls.worked,
                    run_blocking=self.run_blocking,
                    malformed_requests=self.metrics.malformed_requests,
                )
            )
        self.appends.limit_bytes = self.config.queued_max_request_bytes
        self.appends.limit_count = self.config.queued_max_requests
        address = self.config.metrics_address
        if address is not None:
            self._http = HttpServer(self.metrics, RunningBroker(self), host=address[0], port=address[1])

    async def _open_metadata(self, cluster_id: str | None) -> Store:
        config = self.config
        folder = store_folder(config.metadata_log_dir, config.log_dirs, self.logs.formatted_directories)
        self._metadata = await SqliteMetadata.open(folder)
        store = self._metadata.connect()
        await prepare_store(store, cluster_id)
        return store

    async def _reconnect(self) -> Store:
        """Another session with the metadata store, in which this broker is registered. It has closed no log since it
        started, so it has lost none of their ends.
        """
        assert self._metadata is not None, "the metadata store is opened before the controller starts"
        store = self._metadata.connect()
        try:
            self._registration = await register_broker(store, replace(self._own_registration(), clean_start=True))
        except BaseException:
            with contextlib.suppress(StoreError):
                await store.close()
            raise
        return store

    async def _follow_controller(self, controller: ControllerShell) -> None:
        """A broker runs its own controller today: without it, it would serve an image that nobody keeps current."""
        await controller.ended.wait()
        if self.state is BrokerState.RUNNING and not self.failure.done():
            self.failure.set_result(KasparError("another controller has taken over the metadata store"))

    async def _load_logs(self, image: ClusterImage) -> None:
        """In threads. Who cancels the start waits for them: the next broker must not meet them in the same files."""
        loading = asyncio.ensure_future(
            self.run_blocking(
                self.logs.load,
                lambda topic: self.hosting.config_of(topic, image),
                self._say_progress,
                expected_logs(image, self.broker_id),
            )
        )
        try:
            await asyncio.shield(loading)
        except asyncio.CancelledError:
            self._start_cancelled = True
            await asyncio.gather(loading, return_exceptions=True)
            raise

    def _say_progress(self, loaded: Loaded) -> None:
        """Called by the threads that load logs."""
        if self._start_cancelled:
            raise KasparError("the broker was told to stop while it loaded its logs")
        self._clean_start = self._clean_start and loaded.clean
        now = time.monotonic()
        if not loaded.clean and now >= self._next_progress:
            self._next_progress = now + SAY_PROGRESS_EVERY_S
            log.info(
                "recovering logs after an unclean stop",
                directory=loaded.directory,
                partitions=f"{loaded.partitions_done}/{loaded.partitions}",
                checked_mb=loaded.bytes_checked // 1_000_000,
            )

    def _own_registration(self) -> BrokerRegistration:
        return BrokerRegistration(
            self.broker_id,
            epoch=-1,
            endpoints=tuple(self._advertised()),
            rack=self.config.broker_rack,
            clean_start=self._clean_start,
            log_dirs=tuple(self.logs.directory_ids),
        )

    def _advertised(self) -> Iterator[AdvertisedEndpoint]:
        """What clients are told: an empty host or port is filled in with what the listener really has."""
        ports = {listener.name: listener.port for listener in self.listeners}
        for endpoint in self.config.advertised_endpoints:
            host = endpoint.host if endpoint.host not in ("", "0.0.0.0", "::") else _own_host()
            port = endpoint.port or ports[endpoint.listener]
            yield AdvertisedEndpoint(endpoint.listener, host, port, endpoint.security_protocol)

    def _start_http(self) -> None:
        address = self.config.metrics_address
        if self._http is not None and address is not None:
            self._http.start()
            log.info("metrics are served", address=f"{address[0]}:{self._http.port}")

    # -- stopping ----------------------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Finish what is under way, close the logs in order, and let go of everything. Safe to call twice."""
        if self.state in (BrokerState.NOT_RUNNING, BrokerState.SHUTTING_DOWN):
            return
        log.info("the broker is stopping", node=self.broker_id)
        was_running = self.state is BrokerState.RUNNING
        self.state = BrokerState.SHUTTING_DOWN
        for listener in self.listeners:
            await listener.stop_accepting()
        await self.cleaning.stop()
        await self.large_requests.begin_no_more()
        await self.appends.finish()
        await self.syncing.finish()  # what waits for its sync is answered as any other
        self.requests.release_waiting()
        await self.coordinators.stop()
        await self.requests.finish()
        await self.large_requests.finish()
        await asyncio.gather(*(listener.close_connections() for listener in self.listeners))
        if was_running and not self.failure.done():
            with contextlib.suppress(Exception):  # the next start finds it out as well; what is a bug was told
                await asyncio.wait_for(self.places.finish(), LAST_REPORT_S)
        await self._cancel_tasks()
        await self.syncing.finish()
        if self._controller is not None:
            await self._controller.stop()
        await self.run_blocking(self._close_logs, was_running and not self.failure.done())
        if self._metadata is not None:
            await self._metadata.close()
        if self._http is not None:
            await asyncio.to_thread(self._http.stop)
        self.timers.stop()
        self._monitor.stop()
        self._blocking.shutdown(wait=False)
        self._loading_thread.shutdown(wait=False)
        self._sync_threads.shutdown(wait=False)
        self.state = BrokerState.NOT_RUNNING
        log.info("the broker has stopped", node=self.broker_id)

    def _close_logs(self, cleanly: bool) -> None:
        """After a broken invariant nothing is written any more: the next start checks what is on disk."""
        if cleanly:
            self.logs.close(self._registration.epoch if self._registration is not None else -1)
        else:
            self.logs.abandon()

    async def _cancel_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    # -- the cluster's image -----------------------------------------------------------------------------------------

    async def _image_changed(self, old: ClusterImage, new: ClusterImage, changed_topics: frozenset[str]) -> None:
        if new.broker_configs is not old.broker_configs:
            self._apply_dynamic_settings(new)
        await self.hosting.follow(new, changed_topics)
        self.coordinators.image_changed(old, new, changed_topics)

    def leadership_changed(self, topics: Collection[str]) -> None:
        """Partitions of these topics came to this broker, left it, or have another leader."""
        self.coordinators.leadership_changed(topics)
        self.cleaning.topics_changed(topics)

    def _apply_dynamic_settings(self, image: ClusterImage) -> None:
        self.settings = self.settings.with_dynamic(
            default=image.cluster_broker_config, broker=image.broker_config(self.broker_id)
        )
        self._limits.max_connections = self.config.max_connections
        self._limits.max_per_ip = self.config.max_connections_per_ip
        self._limits.per_ip_overrides = self.config.max_connections_by_address
        self.fetch_sessions.slots = self.config.max_incremental_fetch_session_cache_slots
        self._accept_again()
        self.logs.reconfigure(self.config)
        self.hosting.reconfigure(image)
        self.cleaning.reconfigure()

    def endpoints_for(self, listener: str) -> Iterator[tuple[BrokerRegistration, AdvertisedEndpoint]]:
        """The brokers as a client of that listener reaches them."""
        for registration in self.image.brokers.values():
            for endpoint in registration.endpoints:
                if endpoint.listener == listener:
                    yield registration, endpoint

    def current_leader(self, topic: str | uuid.UUID, index: int) -> tuple[int, int]:
        image = self.image
        found = image.topics.get(topic) if isinstance(topic, str) else image.topic_by_id(topic)
        if found is None or not 0 <= index < len(found.partitions):
            return -1, -1
        partition = found.partitions[index]
        return partition.leader, partition.leader_epoch

    async def alter_configs(
        self, changes: tuple[ConfigChange, ...], *, validate_only: bool
    ) -> tuple[ResourceOutcome, ...]:
        """What became of each change, also where the metadata store takes none of them."""
        try:
            return await self.controller.submit(AlterConfigs(changes, validate_only))
        except Refused as refusal:
            return tuple(ResourceOutcome(change.resource, Outcome.of(refusal)) for change in changes)

    async def _allocate_producer_ids(self) -> ProducerIdBlock:
        return await self.controller.submit(AllocateProducerIds(self.broker_id))

    # -- services ----------------------------------------------------------------------------------------------------

    def now(self) -> Now:
        return _new(Now, self.logs.patient_clock.moment())

    async def run_blocking(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run what may wait for a disk in a thread."""
        return await self._loop.run_in_executor(self._blocking, work, *arguments)

    async def run_loading(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run what takes seconds of the interpreter's time, in the one thread there is for that."""
        return await self._loop.run_in_executor(self._loading_thread, work, *arguments)

    def from_thread(self, work: Callable[..., object], *arguments: Any) -> None:
        """Called by other threads: have the event loop do something."""
        self._loop.call_soon_threadsafe(work, *arguments)

    def spawn(self, work: Coroutine[Any, Any, None], *, name: str) -> None:
        """A task that the broker owns: its failure is logged, and it ends with the broker."""
        task = self._loop.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)

    def _task_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            log.error("a task failed", task=task.get_name(), problem=repr(problem))
            if isinstance(problem, Exception):
                self.request_failed(problem)

    def request_failed(self, problem: Exception) -> None:
        """A bug was met. A broken invariant stops the broker: it must not go on with what it no longer understands."""
        if isinstance(problem, AssertionError) and not self.failure.done():
            self.failure.set_result(problem)

    def _timer_met_a_bug(self, problem: Exception) -> None:
        log.exception("a timer met a bug")
        self.request_failed(problem)

    def log_directory_failed(self, failure: StorageFailure) -> None:
        """Go on without that directory; without any, stop."""
        given_up = self.logs.take_offline(failure.directory, str(failure))
        for one in given_up:
            partition = self.partitions.get(one.topic_partition)
            if partition is not None:
                partition.retire()
        self.leadership_changed({one.topic_partition.topic for one in given_up})
        if all(directory.offline is not None for directory in self.logs.directories) and not self.failure.done():
            self.failure.set_result(failure)

    def refuse_internal_topic(self, topic: str) -> None:
        if is_internal(topic):
            raise Refused(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is an internal topic, which the broker alone changes"
            )

    def _accept_again(self) -> None:
        for listener in self.listeners:
            listener.resume_accepting()

    def _overload(self, overloaded: bool) -> None:
        for listener in self.listeners:
            listener.overload(overloaded)
        if not overloaded:
            for listener in self.listeners:
                listener.resume_requests()


def _own_host() -> str:
    """The name of this machine if it can be found under it, otherwise localhost."""
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return "localhost"
    return name
