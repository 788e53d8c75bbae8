"""The parts of a broker, and how they are connected.

Each part is given the services and the other parts that it uses; none is given the broker. The handlers of APIs are
created in wiring.py.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from kaspar import __version__
from kaspar.base.clock import Clock, SystemClock
from kaspar.base.ids import BrokerId
from kaspar.broker.auto_creation import AutoCreation
from kaspar.broker.cleaning.log_cleaner import Cleaning
from kaspar.broker.coordination.coordinators import Coordinators
from kaspar.broker.coordination.leader_markers import LeaderMarkers
from kaspar.broker.coordination.producer_ids import ProducerIds
from kaspar.broker.coordination.services import CoordinatorServices
from kaspar.broker.coordination.transaction_routing import TransactionRouting
from kaspar.broker.dynamic_settings import DynamicSettings
from kaspar.broker.fetch.sessions import FetchSessions
from kaspar.broker.hosting import Hosting
from kaspar.broker.listeners import Listeners
from kaspar.broker.log_dir_moves import LogDirMoves
from kaspar.broker.log_places import LogPlaces
from kaspar.broker.lost_brokers import LostBrokers
from kaspar.broker.metrics import BrokerMetrics, BrokerState
from kaspar.broker.partitions import Partitions
from kaspar.broker.produce.appender import Appender
from kaspar.broker.produce.backlog import Backlog
from kaspar.broker.produce.verification import TransactionVerifier
from kaspar.broker.registration import Registration
from kaspar.broker.replication.replicas import Replicas
from kaspar.broker.request_path import RequestPath
from kaspar.broker.request_quotas import RequestQuotas
from kaspar.broker.security.between_brokers import BetweenBrokers
from kaspar.broker.security.credentials import Credentials
from kaspar.broker.services import CurrentSettings, Failures, Tasks, Threads, now_of
from kaspar.broker.syncing import Syncing
from kaspar.broker.timers import Timers
from kaspar.broker.upkeep import Upkeep
from kaspar.config import BrokerConfig, BrokerSettings
from kaspar.config.authorizer import authorizer_config
from kaspar.controller import ControllerShell
from kaspar.controller.channel import Channel
from kaspar.controller.events import AllocateProducerIds
from kaspar.metadata import ClusterImage, Store
from kaspar.metadata.images import FollowedImage, ImageChange
from kaspar.metadata.stored_topics import StoredTopics
from kaspar.network.large_requests import LargeRequests
from kaspar.network.listener import Listener
from kaspar.storage import LogManager

if TYPE_CHECKING:  # loaded where they are needed, because a broker without a cluster starts faster
    from kaspar.broker.authorization.access import Access
    from kaspar.broker.cluster.membership import Membership
    from kaspar.broker.coordination.groups import Groups
    from kaspar.broker.coordination.transactions import Transactions
    from kaspar.broker.telemetry.telemetry import Telemetry


class Parts:
    """The parts of one broker that has not been started."""

    def __init__(self, settings: BrokerSettings, *, clock: Clock | None = None) -> None:
        # Each part is given parts from above it; those that take many are built in their own methods.
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
        """The permissions of clients; None without an authorizer."""
        self.credentials = Credentials(self.images, self.current_settings, self.clock.now_ms)
        self.controller = Channel(self.images)
        self.controller_shell: ControllerShell | None = None
        """Set with the embedded store, where this broker is the only one."""
        self.membership: Membership | None = None
        """Set in a cluster."""
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
        """Metrics of clients (KIP-714); created by the first request for it."""

        # Parts that follow the image and maintain the logs.
        self.cleaning = self._new_cleaning()
        self.places = self._new_places()
        self.replicas = self._new_replicas()
        self.moves = self._new_moves()
        self.hosting = self._new_hosting()
        self.upkeep = self._new_upkeep()
        self.request_path = RequestPath(self.network, self.quotas)
        self._registration = Registration(self.broker_id, self.current_settings, listeners=self.network, logs=self.logs)
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
        self.images.add_listener("partitions", self.hosting.follow)
        self.images.add_listener("in-sync replicas", self.replicas.image_changed)
        self.images.add_listener("coordinators", self.coordinators.image_changed)
        self.images.add_listener("connections to other brokers", self.transaction_routing.image_changed)
        self.images.add_listener("lost brokers", self.lost_brokers.image_changed)

    def _note_controller(self, change: ImageChange) -> None:
        if change.new.controller_epoch != change.old.controller_epoch:
            self.metrics.new_active_controllers.value += 1

    def _in_touch(self) -> bool:
        """Whether no other broker can have taken over from this one without its knowledge. With the embedded store
        there is no other broker.
        """
        membership = self.membership
        return membership is None or membership.in_touch()

    def _current_store(self) -> Store | None:
        if self.membership is not None:
            return self.membership.store
        return None if self.controller_shell is None else self.controller_shell.store

    def _follow_quotas(self, change: ImageChange) -> None:
        self.quotas.follow(change)
        if change.new.client_quotas is not change.old.client_quotas:
            self.network.connection_rates.update(change.new.client_quotas)

    def _reconfigure(self, image: ClusterImage) -> None:
        self.network.reconfigure()
        self.quotas.reconfigure()
        self.fetch_sessions.slots = self.config.max_incremental_fetch_session_cache_slots
        self.logs.reconfigure(self.config)
        self.hosting.reconfigure(image)
        self.replicas.reconfigure()
        self.moves.reconfigure()
        self.cleaning.reconfigure()  # last, because with new topic settings more logs may have to be compacted

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
