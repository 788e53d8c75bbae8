"""Starts and stops the broker. Its parts are in parts.py."""

import asyncio
import contextlib
import functools
import sys
import time
from typing import TYPE_CHECKING, Final

from kaspar.base.clock import Clock
from kaspar.base.errors import KasparError
from kaspar.base.log import get_log
from kaspar.base.stalls import LoopMonitor
from kaspar.broker.http import HttpServer, is_loopback, page_security
from kaspar.broker.log_loading import LogLoading
from kaspar.broker.log_places import claim_directories, expected_logs, has_replicas
from kaspar.broker.metrics import BrokerState
from kaspar.broker.parts import Parts
from kaspar.broker.view import RunningBroker
from kaspar.broker.wiring import request_pipeline
from kaspar.config import BrokerConfig, BrokerSettings
from kaspar.controller import Controller, ControllerShell
from kaspar.controller.fence import retried
from kaspar.metadata import SqliteMetadata, SqliteStore, Store
from kaspar.metadata.directories import store_folder
from kaspar.metadata.loading import load_image, prepare_store

if TYPE_CHECKING:  # loaded where they are needed, because a broker without a cluster starts faster
    from kaspar.metadata.zookeeper import ZooKeeperMetadata, ZooKeeperStore

log = get_log(__name__)


LAST_REPORT_S: Final = 5.0
"""How long the last report to the controller may take when the broker stops."""
STORE_RETRY_S: Final = 0.05
_STOPPING: Final = (BrokerState.NOT_RUNNING, BrokerState.PENDING_CONTROLLED_SHUTDOWN, BrokerState.SHUTTING_DOWN)


class Broker(Parts):
    """One broker. It belongs to its event loop's thread, except where a part says otherwise."""

    def __init__(self, settings: BrokerSettings, *, clock: Clock | None = None) -> None:
        super().__init__(settings, clock=clock)
        self.pipeline = request_pipeline(self)
        self.request_path.lead_to(self.pipeline)
        self._monitor = LoopMonitor(self.metrics.stalls, on_window=self.metrics.rotate)
        self._metadata: SqliteMetadata | ZooKeeperMetadata | None = None
        self._http: HttpServer | None = None

    # -- starting ----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start, and return when clients are served. Raises KasparError with a message if that is not possible."""
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
        self.request_path.choose()
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
            # Logged first, because a broker whose ensemble does not respond is silent until it gives up.
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
        """How long a dead process may stay registered. Twice the timeout, because ZooKeeper counts in ticks."""
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
        """Start the controller here: this broker is the only one."""
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
        """Stop the broker when its controller has ended, because nobody would keep its image current."""
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
            with contextlib.suppress(Exception):  # a bug has been logged already
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
        """Report log directories. What is not reported now, the next start finds and reports."""
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
        """Close the logs. After a broken invariant nothing more is written: the next start checks what is on disk."""
        if cleanly:
            self.logs.close(self._registration.epoch)
        else:
            self.logs.abandon()


async def _open_zookeeper(config: BrokerConfig) -> "ZooKeeperMetadata":
    from kaspar.metadata.zookeeper import ZooKeeperMetadata

    return await ZooKeeperMetadata.configured(config)
