"""The broker: what it is made of, and how it starts and stops.

Each part is given the services and the other parts that it uses; none is given the broker. Handlers of APIs are put
together in wiring.py.
"""

import asyncio
import contextlib
import functools
import sys
import time
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from kaspar import __version__
from kaspar.base.clock import Clock, SystemClock
from kaspar.base.errors import KasparError
from kaspar.base.ids import BrokerId
from kaspar.base.log import get_log
from kaspar.base.stalls import LoopMonitor
from kaspar.broker.auto_creation import AutoCreation
from kaspar.broker.cleaning.log_cleaner import Cleaning
from kaspar.broker.coordination.coordinators import Coordinators
from kaspar.broker.coordination.producer_ids import ProducerIds
from kaspar.broker.coordination.services import CoordinatorServices
from kaspar.broker.coordination.timers import Timers
from kaspar.broker.coordination.transaction_routing import TransactionRouting
from kaspar.broker.dynamic_settings import DynamicSettings
from kaspar.broker.fetch.sessions import FetchSessions
from kaspar.broker.hosting import Hosting
from kaspar.broker.http import HttpServer, is_loopback, page_security
from kaspar.broker.listeners import Listeners
from kaspar.broker.log_dir_moves import LogDirMoves
from kaspar.broker.log_loading import LogLoading
from kaspar.broker.log_places import LogPlaces, claim_directories, expected_logs, has_replicas
from kaspar.broker.lost_brokers import LostBrokers
from kaspar.broker.metrics import BrokerMetrics, BrokerState
from kaspar.broker.partitions import Partitions
from kaspar.broker.produce.appender import Appender
from kaspar.broker.produce.backlog import Backlog
from kaspar.broker.produce.markers import LeaderMarkers
from kaspar.broker.produce.verification import TransactionVerifier
from kaspar.broker.registration import Registration
from kaspar.broker.replication.replicas import Replicas
from kaspar.broker.request_quotas import RequestQuotas
from kaspar.broker.security.between_brokers import BetweenBrokers
from kaspar.broker.security.credentials import Credentials
from kaspar.broker.services import CurrentSettings, Failures, Tasks, Threads, now_of
from kaspar.broker.syncing import Syncing
from kaspar.broker.upkeep import Upkeep
from kaspar.broker.view import RunningBroker
from kaspar.broker.wiring import request_pipeline
from kaspar.config import BrokerConfig, BrokerSettings
from kaspar.config.authorizer import authorizer_config
from kaspar.controller import Controller, ControllerShell
from kaspar.controller.channel import Channel
from kaspar.controller.events import AllocateProducerIds
from kaspar.controller.fence import retried
from kaspar.metadata import ClusterImage, SqliteMetadata, SqliteStore, Store
from kaspar.metadata.directories import store_folder
from kaspar.metadata.images import FollowedImage, ImageChange
from kaspar.metadata.loading import load_image, prepare_store
from kaspar.metadata.stored_topics import StoredTopics
from kaspar.network.connection import RequestHandler
from kaspar.network.large_requests import LargeRequests
from kaspar.network.listener import Listener
from kaspar.network.request_log import LoggedRequests, logs_requests
from kaspar.network.timed_requests import TimedRequests
from kaspar.storage import LogManager

if TYPE_CHECKING:  # and loaded where they are needed: a broker without a cluster starts faster
    from kaspar.broker.authorization.access import Access
    from kaspar.broker.cluster.membership import Membership
    from kaspar.broker.coordination.groups import Groups
    from kaspar.broker.coordination.transactions import Transactions
    from kaspar.broker.telemetry.telemetry import Telemetry
    from kaspar.metadata.zookeeper import ZooKeeperMetadata, ZooKeeperStore

log = get_log(__name__)


LAST_REPORT_S: Final = 5.0
"""How long the last report to the controller may take when the broker stops."""
STORE_RETRY_S: Final = 0.05
_STOPPING: Final = (BrokerState.NOT_RUNNING, BrokerState.PENDING_CONTROLLED_SHUTDOWN, BrokerState.SHUTTING_DOWN)


class Broker:
    """One broker. All of it belongs to its event loop's thread, except where a part says otherwise."""

    def __init__(self, settings: BrokerSettings, *, clock: Clock | None = None) -> None:
        # Each part is given parts from above it; those that take many are built in methods of their own.
        self.broker_id = BrokerId(settings.config.node_id)
        self.state = BrokerState.NOT_RUNNING
        self.clock = clock or SystemClock()
        self.current_settings = CurrentSettings(settings)
        self.dynamic_settings = DynamicSettings(self.current_settings, self.broker_id)
        self.metrics = BrokerMetrics(version=__version__, start_time_ms=self.clock.now_ms())
        self.threads = Threads()
        self.failures = Failures()
        self.failure = self.failures.fatal
        self.tasks = Tasks(self.failures)

        # The cluster's metadata, and the partitions of this broker.
        self.images = FollowedImage(self.broker_id, on_bug=self.failures.on_bug)
        self.access = self._new_access()
        """Who may do what; None without an authorizer."""
        self.credentials = Credentials(self.images, self.current_settings, self.clock.now_ms)
        self.controller = Channel(self.images)
        self.controller_shell: ControllerShell | None = None
        """On the embedded store, where this broker is the only one."""
        self.membership: Membership | None = None
        """In a cluster."""
        self.logs = LogManager(self.config, self.clock)
        self.now = now_of(self.logs.patient_clock)
        self.partitions = Partitions()

        # Requests and what they need.
        self.quotas = RequestQuotas(self.current_settings)
        self.fetch_sessions = FetchSessions(self.config.max_incremental_fetch_session_cache_slots)
        self.producer_ids = ProducerIds(lambda: self.controller.submit(AllocateProducerIds(self.broker_id)))
        self.network = Listeners(self.current_settings, self.metrics, threads=self.threads, failures=self.failures)
        self.between_brokers = BetweenBrokers(self.current_settings, lambda: self.network.between_brokers)
        self.syncing = self._new_syncing()
        self.backlog = Backlog(overload=self.network.overload)
        self.appender = Appender(self.threads.blocking, self.clock, self.backlog, self.syncing)
        self.markers = self._new_markers()
        self.transaction_routing = self._new_transaction_routing()
        self.verifier = self._new_verifier()
        self.timers = Timers(self.clock, on_bug=self.failures.logging_bugs("a timer failed because of a bug"))
        self.coordinators = self._new_coordinators()
        self.auto_creation = AutoCreation(self.images, self.controller, self.tasks)
        self.large_requests = LargeRequests(self.threads.run_blocking)
        self.lost_brokers = LostBrokers(self.images, self.tasks)
        self.telemetry: Telemetry | None = None
        """Of clients; from the first request for it on."""

        # What follows the image and looks after the logs.
        self.cleaning = self._new_cleaning()
        self.places = self._new_places()
        self.replicas = self._new_replicas()
        self.moves = self._new_moves()
        self.hosting = self._new_hosting()
        self.upkeep = self._new_upkeep()

        self.pipeline = request_pipeline(self)
        self.timed_requests = TimedRequests(self.pipeline, self.quotas.count_time)
        self._registration = Registration(self.broker_id, self.current_settings, listeners=self.network, logs=self.logs)
        self._monitor = LoopMonitor(self.metrics.stalls, on_window=self.metrics.rotate)
        self._metadata: SqliteMetadata | ZooKeeperMetadata | None = None
        self._http: HttpServer | None = None
        self._connect_parts()

    # -- parts that take many others ---------------------------------------------------------------------------------

    def _new_access(self) -> "Access | None":
        config = authorizer_config(self.config.authorizer_class_name, self.settings.static)
        if config is None:
            return None
        from kaspar.acls.authorizer import StandardAuthorizer
        from kaspar.broker.authorization.access import Access

        everyone = config.allow_everyone_if_no_acl_found
        return Access(StandardAuthorizer(config.super_users, allow_everyone_if_no_acl_found=everyone))

    def _new_syncing(self) -> Syncing:
        return Syncing(
            self.threads.sync,
            synced=self.metrics.log_flush_time.record,
            failed=self.failures.log_directory_failed,
            on_bug=self.failures.on_bug,
        )

    def _new_verifier(self) -> TransactionVerifier:
        return TransactionVerifier(
            self.transaction_routing,
            self.current_settings,
            steady_ms=lambda: self.now().steady_ms,
            verification_time=self.metrics.verification_time,
            verification_failures=self.metrics.verification_failures,
        )

    def _new_markers(self) -> LeaderMarkers:
        return LeaderMarkers(
            self.partitions,
            self.appender,
            self.failures,
            self.clock,
            self.current_settings,
            replay=lambda *marker, committed: self.groups.runtime.marker_written(*marker, committed=committed),
        )

    def _new_transaction_routing(self) -> TransactionRouting:
        return TransactionRouting(
            self.broker_id,
            self.images,
            self.current_settings,
            verify_here=lambda *question, add: self.transactions.verify(*question, add=add),
            give_here=self.markers.write,
            listener=lambda: self.network.between_brokers.listener,
            tasks=self.tasks,
            clock=self.clock,
            connect=self.between_brokers.connect,
        )

    def _new_coordinators(self) -> Coordinators:
        return Coordinators(
            CoordinatorServices(
                images=self.images,
                partitions=self.partitions,
                settings=self.current_settings,
                controller=self.controller,
                threads=self.threads,
                tasks=self.tasks,
                failures=self.failures,
                timers=self.timers,
                appender=self.appender,
                metrics=self.metrics.topics,
                clock=self.clock,
                now=self.now,
                in_touch=self._in_touch,
                is_deleted=StoredTopics(self._current_store).lacks,
                is_clustered=self.config.zookeeper_connect is not None,
            ),
            next_producer_id=self.producer_ids.take,
            write_marker=self.transaction_routing.give,
        )

    def _new_cleaning(self) -> Cleaning:
        return Cleaning(
            self.current_settings,
            partitions=self.partitions,
            logs=self.logs,
            clock=self.clock,
            threads=self.threads,
            tasks=self.tasks,
            failures=self.failures,
        )

    def _new_places(self) -> LogPlaces:
        return LogPlaces(
            self.broker_id,
            self.logs,
            controller=self.controller,
            broker_epoch=lambda: self._registration.epoch,
            tasks=self.tasks,
            is_starting=lambda: self.state is not BrokerState.RUNNING,
        )

    def _new_replicas(self) -> Replicas:
        return Replicas(
            self.broker_id,
            self.current_settings,
            images=self.images,
            controller=self.controller,
            broker_epoch=lambda: self._registration.epoch,
            partitions=self.partitions,
            logs=self.logs,
            clock=self.clock,
            connection_lost=self.lost_brokers.connection_lost,
            ask_to_sync=self.syncing.ask,
            threads=self.threads,
            tasks=self.tasks,
            failures=self.failures,
            connect=self.between_brokers.connect,
        )

    def _new_moves(self) -> LogDirMoves:
        return LogDirMoves(
            self.current_settings,
            images=self.images,
            partitions=self.partitions,
            logs=self.logs,
            fetchers=self.replicas.fetchers,
            cleaning=self.cleaning,
            syncing=self.syncing,
            clock=self.clock,
            threads=self.threads,
            tasks=self.tasks,
            failures=self.failures,
            moved=lambda partition: self.places.moved(partition.log, partition.topic_id),
        )

    def _new_hosting(self) -> Hosting:
        return Hosting(
            self.broker_id,
            self.current_settings,
            images=self.images,
            controller=self.controller,
            partitions=self.partitions,
            logs=self.logs,
            places=self.places,
            replicas=self.replicas,
            moves=self.moves,
            topic_metrics=self.metrics.topics,
            syncing=self.syncing,
            cleaning=self.cleaning,
            threads=self.threads,
            tasks=self.tasks,
            failures=self.failures,
            leadership_changed=self._leadership_changed,
        )

    def _new_upkeep(self) -> Upkeep:
        return Upkeep(
            self.current_settings,
            partitions=self.partitions,
            logs=self.logs,
            clock=self.clock,
            syncing=self.syncing,
            cleaning=self.cleaning,
            hosting=self.hosting,
            threads=self.threads,
            tasks=self.tasks,
            failures=self.failures,
        )

    def start_telemetry(self) -> "Telemetry":
        if self.telemetry is None:
            from kaspar.broker.telemetry.telemetry import Telemetry

            self.telemetry = Telemetry(
                self.images, self.current_settings, self.timers, self.metrics.client_metrics, self.threads.run_blocking
            )
        return self.telemetry

    # -- how the parts meet ------------------------------------------------------------------------------------------

    def _connect_parts(self) -> None:
        self.failures.on_log_directory = self.hosting.take_directory_offline
        self.dynamic_settings.on_change.append(self._reconfigure)
        if self.access is not None:
            self.images.add_listener("authorizer", self.access.image_changed)
        self.images.add_listener("controllers", self._note_controller)
        self.images.add_listener("departed brokers", self.lost_brokers.note_departed)
        self.images.add_listener("settings", self.dynamic_settings.follow)
        self.images.add_listener("client quotas", self._follow_quotas)
        self.quotas.on_change.append(self._quotas_changed)
        self.images.add_listener("partitions", self.hosting.follow)
        self.images.add_listener("in-sync replicas", self.replicas.image_changed)
        self.images.add_listener("coordinators", self.coordinators.image_changed)
        self.images.add_listener("connections to other brokers", self.transaction_routing.image_changed)
        self.images.add_listener("lost brokers", self.lost_brokers.image_changed)

    def _note_controller(self, change: ImageChange) -> None:
        if change.new.controller_epoch != change.old.controller_epoch:
            self.metrics.new_active_controllers.value += 1

    def _in_touch(self) -> bool:
        """Whether no other broker can have been given what this one has without its knowledge. On the embedded store
        there is no other.
        """
        membership = self.membership
        return membership is None or membership.in_touch(self.config.zookeeper_session_timeout_ms / 1000)

    def _current_store(self) -> Store | None:
        if self.membership is not None:
            return self.membership.store
        return None if self.controller_shell is None else self.controller_shell.store

    def _follow_quotas(self, change: ImageChange) -> None:
        self.quotas.follow(change)
        if change.new.client_quotas is not change.old.client_quotas:
            self.network.connection_rates.update(change.new.client_quotas)

    def _quotas_changed(self) -> None:
        """What no quota is set for costs nothing."""
        self.pipeline.use_quota(self.quotas if self.quotas.at_arrival else None)
        self.serve_requests()

    def serve_requests(self) -> None:
        """Requests come by what is on: the log of requests, quotas for their time. What is not costs nothing."""
        requests: RequestHandler = self.timed_requests if self.quotas.request_time.enabled else self.pipeline
        if logs_requests():
            requests = LoggedRequests(requests)
        self.network.serve(requests)

    def _reconfigure(self, image: ClusterImage) -> None:
        self.network.reconfigure()
        self.quotas.reconfigure()
        self.fetch_sessions.slots = self.config.max_incremental_fetch_session_cache_slots
        self.logs.reconfigure(self.config)
        self.hosting.reconfigure(image)
        self.replicas.reconfigure()
        self.moves.reconfigure()
        self.cleaning.reconfigure()  # last: by the new settings of topics, more logs may have to be compacted

    def _leadership_changed(self, topics: Collection[str]) -> None:
        self.coordinators.leadership_changed(topics)
        self.cleaning.topics_changed(topics)

    @property
    def settings(self) -> BrokerSettings:
        return self.current_settings.settings

    @property
    def config(self) -> BrokerConfig:
        return self.current_settings.config

    @property
    def image(self) -> ClusterImage:
        return self.images.current

    @property
    def listeners(self) -> list[Listener]:
        return self.network.all

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
                "Python runs with -O or PYTHONOPTIMIZE, which removes the assertions that protect the broker's "
                "data: start it without"
            )
        started = time.perf_counter()
        self.state = BrokerState.STARTING
        self._monitor.start()
        self._bind()
        metadata, store = await self._open_metadata(await self.threads.run_blocking(self.logs.look))
        image = await retried(lambda: load_image(store), STORE_RETRY_S)
        trusted = not has_replicas(image, self.broker_id)
        self.places.away = await claim_directories(store, image, self.logs, self.broker_id, trusted=trusted)
        self.dynamic_settings.apply(image)
        self.state = BrokerState.RECOVERY
        loading = LogLoading(self.logs, self.threads)
        expected = expected_logs(image, self.broker_id, self.places.away)
        await loading.load(lambda topic: self.hosting.config_of(topic, image), expected)
        await self.replicas.load()
        await self.coordinators.load_needed_code(image)
        if isinstance(metadata, SqliteMetadata):
            await self._registration.register(store, clean_start=loading.all_clean)
            await self._start_controller(metadata, store, image.cluster_id)
        else:
            await self._registration.register(store, clean_start=loading.all_clean, wait_s=self._session_s)
            assert not isinstance(store, SqliteStore)
            self._join_cluster(metadata, store)
        image = await self.images.start()
        self.serve_requests()
        self.network.start()
        self._start_http()
        self.upkeep.start()
        self.replicas.start()
        self.cleaning.start()
        self.state = BrokerState.RUNNING
        log.info(
            "the broker is ready",
            node=self.broker_id,
            listeners=",".join(f"{each.listener}://{each.host}:{each.port}" for each in self.network.advertised()),
            partitions=len(self.partitions),
            cluster=image.cluster_id,
            seconds=round(time.perf_counter() - started, 3),
        )

    def _bind(self) -> None:
        self.network.bind(self.pipeline, self.credentials, self.clock.now_ms)
        if self.config.zookeeper_connect is not None:
            self.between_brokers.check()
        self.backlog.limit_bytes = self.config.queued_max_request_bytes
        self.backlog.limit_count = self.config.queued_max_requests
        address = self.config.metrics_address
        if address is not None:
            host, port = address
            self._http = HttpServer(
                self.metrics, RunningBroker(self), host=host, port=port, security=page_security(self.config)
            )

    async def _open_metadata(
        self, cluster_id: str | None
    ) -> tuple["SqliteMetadata | ZooKeeperMetadata", "SqliteStore | ZooKeeperStore"]:
        config = self.config
        if config.zookeeper_connect is not None:
            # Otherwise a broker whose ensemble does not respond is silent until it gives up.
            log.info("connecting to ZooKeeper", ensemble=config.zookeeper_connect)
            self._metadata = await _open_zookeeper(config)
        else:
            folder = store_folder(config.metadata_log_dir, config.log_dirs, self.logs.formatted_directories)
            self._metadata = await SqliteMetadata.open(folder)
        metadata = self._metadata
        store = metadata.connect()
        if not isinstance(metadata, SqliteMetadata):
            from kaspar.metadata.moving import refuse_unmoved

            folders = {config.metadata_log_dir or config.log_dirs[0], *config.log_dirs}
            await refuse_unmoved(store, folders, cluster_id=cluster_id, connect=str(metadata.address))
        await prepare_store(store, cluster_id, min_insync_replicas=config.min_insync_replicas)
        return metadata, store

    @property
    def _session_s(self) -> float:
        """How long a dead process may be registered. Twice the time-out, because ZooKeeper counts in ticks."""
        return 2 * self.config.zookeeper_session_timeout_ms / 1000

    def _join_cluster(self, metadata: "ZooKeeperMetadata", store: "ZooKeeperStore") -> None:
        from kaspar.broker.cluster.membership import Membership
        from kaspar.broker.cluster.own_controller import OwnController

        own = OwnController(
            self.broker_id,
            self.current_settings,
            channel=self.controller,
            on_bug=self.failures.on_bug,
            metrics=self.metrics.controller,
        )
        self.membership = Membership(
            self.broker_id,
            images=self.images,
            channel=self.controller,
            own=own,
            endpoint=self.network.between_brokers,
            registration=self._registration,
            join=lambda: self._registration.register_again(metadata.connect, wait_s=self._session_s),
            leaderships=self.hosting,
            connect=self.between_brokers.connect,
        )
        self.membership.start(store)

    async def _start_controller(self, metadata: SqliteMetadata, store: Store, cluster_id: str) -> None:
        """This broker is the only one, and the controller."""
        shell = self.controller_shell = ControllerShell(
            store,
            Controller(self.settings),
            cluster_id=cluster_id,
            reconnect=functools.partial(self._registration.register_again, metadata.connect),
            on_bug=self.failures.on_bug,
            metrics=self.metrics.controller,
        )
        shell.add_follower(self.images.receive)
        self.controller.connect(shell)
        await shell.start()
        self.tasks.spawn(self._end_with(shell), name="watch over the controller")

    async def _end_with(self, controller: ControllerShell) -> None:
        """Without its own controller this broker would serve an image that nobody keeps current."""
        await controller.ended.wait()
        if self.state is BrokerState.RUNNING:
            self.failures.stop_broker(KasparError("another controller has taken over the metadata store"))

    def _start_http(self) -> None:
        address = self.config.metrics_address
        if self._http is not None and address is not None:
            self._http.start()
            if self.config.kaspar_http_authentication == "none" and not is_loopback(address[0]):
                log.warning("the HTTP pages are reachable from other machines without authentication", host=address[0])
            log.info("metrics are served", address=f"{address[0]}:{self._http.port}")

    # -- stopping ----------------------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Finish the requests under way, close the logs in order, and release everything. Safe to call twice."""
        if self.state in _STOPPING:
            return
        log.info("the broker is stopping", node=self.broker_id)
        was_running = self.state is BrokerState.RUNNING
        if was_running and self.membership is not None and self.config.controlled_shutdown_enable:
            await self._leave_cluster()
        self.state = BrokerState.SHUTTING_DOWN
        if self.membership is not None:
            self.membership.begin_leaving()
        await self.network.stop_accepting()
        await self.moves.stop()
        await self.cleaning.stop()
        await self.replicas.stop()
        await self.large_requests.begin_no_more()
        await self.appender.finish()
        await self.syncing.finish()  # requests that wait for a sync get their normal responses
        self.pipeline.release_waiting()
        await self.coordinators.stop()
        await self.pipeline.finish()
        await self.large_requests.finish()
        await self.network.close_connections()
        if was_running and not self.failure.done():
            with contextlib.suppress(Exception):  # a bug has been reported
                await self._last_report()
        await self.tasks.cancel_all()
        await self.transaction_routing.close()
        await self.syncing.finish()
        if was_running and not self.failure.done():
            await self.upkeep.finish()
        if self.controller_shell is not None:
            await self.controller_shell.stop()
        if self.membership is not None:
            await self.membership.stop()
        await self.images.stop()
        await self.threads.run_blocking(self._close_logs, was_running and not self.failure.done())
        if self._metadata is not None:
            await self._metadata.close()
        if self._http is not None:
            await asyncio.to_thread(self._http.stop)
        self.timers.stop()
        self._monitor.stop()
        self.threads.shut_down()
        self.state = BrokerState.NOT_RUNNING
        log.info("the broker has stopped", node=self.broker_id)

    async def _leave_cluster(self) -> None:
        from kaspar.broker.cluster.leaving import move_leaders_away, unless_away

        self.state = BrokerState.PENDING_CONTROLLED_SHUTDOWN
        others = [one for one in self.image.brokers if one != self.broker_id and self.image.is_active(one)]
        if others and not self.failure.done():
            moving = move_leaders_away(self.controller, self.broker_id, self._registration.epoch)
            await unless_away(moving, self._is_store_connected)

    async def _last_report(self) -> None:
        """The next start finds out as well what is not reported."""
        report = asyncio.wait_for(self.places.finish(), LAST_REPORT_S)
        if self.membership is None:
            await report
            return
        from kaspar.broker.cluster.leaving import unless_away

        await unless_away(report, self._is_store_connected)

    def _is_store_connected(self) -> bool:
        store = None if self.membership is None else self.membership.store
        return store is not None and store.is_connected

    def _close_logs(self, cleanly: bool) -> None:
        """After a broken invariant nothing is written any more: the next start checks what is on disk."""
        if cleanly:
            self.logs.close(self._registration.epoch)
        else:
            self.logs.abandon()


async def _open_zookeeper(config: BrokerConfig) -> "ZooKeeperMetadata":
    from kaspar.metadata.zookeeper import ZooKeeperMetadata

    return await ZooKeeperMetadata.configured(config)
