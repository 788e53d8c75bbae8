"""The metrics of a broker's state: logs, the controller, waiting requests, the event loop and the process."""

from collections.abc import Callable, Iterable
from typing import Final

from kaspar.base import compiled
from kaspar.base.exposition import Family, Kind, Sample, labels, summary_samples
from kaspar.base.metrics import Histogram
from kaspar.broker.metrics import process
from kaspar.broker.metrics.families import BrokerFamily, Scrape, many, one, own, prometheus_name
from kaspar.broker.metrics.view import ControllerView, FetchSessionsView, LogView, PurgatoryView
from kaspar.controller.metrics import ControllerMetrics

_PARTITION: Final = ("topic", "partition")

# -- logs ------------------------------------------------------------------------------------------------------------


def _log_family(kafka_name: str, text: str, read: Callable[[LogView], int]) -> BrokerFamily:
    return many(
        f"kafka.log:type=Log,name={kafka_name},topic=*,partition=*",
        text,
        _PARTITION,
        lambda scrape: ((label_text, read(log)) for label_text, log in scrape.logs),
    )


LOGS: Final[tuple[BrokerFamily, ...]] = (
    _log_family("Size", "The size of the partition's segments in bytes.", lambda log: log.size),
    _log_family("LogStartOffset", "The first offset that can be read.", lambda log: log.log_start_offset),
    _log_family("LogEndOffset", "The offset that the next record will get.", lambda log: log.log_end_offset),
    _log_family("NumLogSegments", "How many segments the partition has.", lambda log: log.segment_count),
    _log_family(
        "RetentionSizeInPercent",
        "The partition's size in percent of retention.bytes; 0 where that is not limited.",
        lambda log: log.retention_size_percent,
    ),
    Family(
        "kafka_log_logflushstats_logflushrateandtimems",
        Kind.SUMMARY,
        "The time to flush logs to disk, in ms. Quantiles are of the last one to two minutes.",
        lambda scrape: summary_samples(scrape.metrics.log_flush_time.distribution(), factor=1000),
        kafka_name="kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs",
    ),
    one(
        "kafka.log:type=LogManager,name=OfflineLogDirectoryCount",
        "Log directories that failed and are no longer used.",
        lambda scrape: sum(not directory.online for directory in scrape.broker.log_dirs()),
    ),
    many(
        "kafka.log:type=LogManager,name=LogDirectoryOffline,logDirectory=*",
        "1 for a log directory that failed, 0 for one that works.",
        ("logDirectory",),
        lambda scrape: [
            (labels(logDirectory=directory.path), int(not directory.online)) for directory in scrape.broker.log_dirs()
        ],
    ),
)

# -- the controller --------------------------------------------------------------------------------------------------


def _controller_family(kafka_name: str, text: str, read: Callable[[ControllerView], int]) -> BrokerFamily:
    return one(
        f"kafka.controller:type=KafkaController,name={kafka_name}",
        f"{text} 0 where another broker is the controller, or it cannot reach the metadata store.",
        lambda scrape: read(scrape.controller) if scrape.controller is not None else 0,
    )


def _event_family(of_type: str, kafka_name: str, text: str, read: Callable[[ControllerMetrics], float]) -> BrokerFamily:
    """A metric that this broker's controller has recorded while it was active."""
    return one(
        f"kafka.controller:type={of_type},name={kafka_name}", text, lambda scrape: read(scrape.metrics.controller)
    )


def _event_times(kafka_name: str, text: str, read: Callable[[ControllerMetrics], Histogram]) -> BrokerFamily:
    mbean = f"kafka.controller:type=ControllerEventManager,name={kafka_name}"
    return Family(
        prometheus_name(mbean)[0],
        Kind.SUMMARY,
        f"{text} Quantiles are of the last one to two minutes.",
        lambda scrape: summary_samples(read(scrape.metrics.controller).distribution(), factor=1000),
        kafka_name=mbean,
    )


CONTROLLER: Final[tuple[BrokerFamily, ...]] = (
    one(
        "kafka.controller:type=KafkaController,name=ActiveControllerCount",
        "1 where this broker is the controller and reaches the metadata store.",
        lambda scrape: int(scrape.controller is not None),
    ),
    _controller_family(
        "ActiveBrokerCount", "Brokers in the cluster.", lambda controller: controller.active_broker_count
    ),
    _controller_family(
        "FencedBrokerCount",
        "Brokers that have replicas and are down. Always 0 with one broker.",
        lambda controller: controller.fenced_broker_count,
    ),
    _controller_family("GlobalTopicCount", "Topics in the cluster.", lambda controller: controller.topic_count),
    _controller_family(
        "GlobalPartitionCount", "Partitions in the cluster.", lambda controller: controller.partition_count
    ),
    _controller_family(
        "OfflinePartitionsCount",
        "Partitions without a leader, including those on failed log directories.",
        lambda controller: controller.offline_partition_count,
    ),
    _controller_family(
        "PreferredReplicaImbalanceCount",
        "Partitions that are not led by their first replica, including those without a leader.",
        lambda controller: controller.preferred_replica_imbalance_count,
    ),
    _controller_family(
        "ControlledShutdownBrokerCount",
        "Brokers in controlled shutdown. Always 0 with one broker.",
        lambda controller: controller.controlled_shutdown_broker_count,
    ),
    one(
        "kafka.controller:type=KafkaController,name=NewActiveControllersCount",
        "Controller changes that this broker has seen.",
        lambda scrape: scrape.metrics.new_active_controllers.value,
    ),
    _event_family("KafkaController", "EventQueueOperationsStartedCount", "Events.", lambda own: own.events_started),
    _event_family(
        "KafkaController",
        "MetadataErrorCount",
        "Events that failed. Always 0 unless the controller has a bug.",
        lambda own: own.errors,
    ),
    _event_times("EventQueueTimeMs", "How long events waited, in ms.", lambda own: own.queue_time),
    _event_times(
        "EventQueueProcessingTimeMs",
        "How long events took, including their transactions with the metadata store, in ms.",
        lambda own: own.processing_time,
    ),
    _event_family(
        "ControllerStats",
        "UncleanLeaderElectionsPerSec",
        "Leaders elected that may lack committed records. Always 0 with one broker.",
        lambda own: own.unclean_elections,
    ),
    _event_family(
        "ControllerStats",
        "ElectionFromEligibleLeaderReplicasPerSec",
        "Leaders elected from the eligible leader replicas (KIP-966). Always 0 with one broker.",
        lambda own: own.eligible_elections,
    ),
)

# -- fetch sessions and requests that wait ---------------------------------------------------------------------------


def _session_family(kafka_name: str, text: str, read: Callable[[FetchSessionsView], int]) -> BrokerFamily:
    return one(
        f"kafka.server:type=FetchSessionCache,name={kafka_name}",
        text,
        lambda scrape: read(scrape.broker.fetch_sessions()),
    )


def _purgatory_family(kafka_name: str, text: str, read: Callable[[PurgatoryView], int]) -> BrokerFamily:
    return many(
        f"kafka.server:type=DelayedOperationPurgatory,name={kafka_name},delayedOperation=*",
        text,
        ("delayedOperation",),
        lambda scrape: [
            (labels(delayedOperation=purgatory.name), read(purgatory)) for purgatory in scrape.broker.purgatories()
        ],
    )


WAITING: Final = (
    _session_family(
        "NumIncrementalFetchSessions",
        "Cached incremental fetch sessions.",
        lambda sessions: sessions.session_count,
    ),
    _session_family(
        "NumIncrementalFetchPartitionsCached",
        "Partitions in all fetch sessions.",
        lambda sessions: sessions.cached_partition_count,
    ),
    _session_family(
        "IncrementalFetchSessionEvictionsPerSec",
        "Fetch sessions dropped to make room for others.",
        lambda sessions: sessions.evictions,
    ),
    _purgatory_family(
        "PurgatorySize",
        "Partitions that waiting requests watch, each counted once for each request.",
        lambda purgatory: purgatory.watched,
    ),
    _purgatory_family("NumDelayedOperations", "Waiting requests.", lambda purgatory: purgatory.delayed),
)

# -- the broker, its loop and its process ----------------------------------------------------------------------------


def _info(scrape: Scrape) -> Iterable[Sample]:
    core = "compiled" if set(compiled.forms().values()) <= {"compiled", "not loaded"} else "interpreted"
    return [(labels(version=scrape.metrics.version, core=core), 1)]


BROKER: Final[tuple[BrokerFamily, ...]] = (
    one(
        "kafka.server:type=KafkaServer,name=BrokerState",
        "0 not running, 1 starting, 2 recovering logs, 3 running, 6 waiting to stop, 7 stopping.",
        lambda scrape: int(scrape.broker.state()),
    ),
    one(
        "kafka.server:type=KafkaServer,name=linux-disk-read-bytes",
        "Bytes that the process has read from disks.",
        lambda _: process.disk_bytes("read_bytes"),
    ),
    one(
        "kafka.server:type=KafkaServer,name=linux-disk-write-bytes",
        "Bytes that the process has written to disks.",
        lambda _: process.disk_bytes("write_bytes"),
    ),
    Family(
        "kaspar_info",
        Kind.GAUGE,
        "Always 1: the labels name Kaspar's version and the form of its core, compiled or interpreted.",
        _info,
        ("version", "core"),
    ),
    own(
        "kaspar_start_time_seconds",
        Kind.GAUGE,
        "When the broker started, in seconds since 1970.",
        lambda scrape: scrape.metrics.start_time_ms / 1000,
    ),
    own(
        "kaspar_loop_longest_stall_seconds",
        Kind.GAUGE,
        "The longest stall of the event loop since the start.",
        lambda scrape: scrape.metrics.stalls.longest,
    ),
    own(
        "kaspar_loop_longest_recent_stall_seconds",
        Kind.GAUGE,
        "The longest stall of the event loop in the last one to two minutes.",
        lambda scrape: scrape.metrics.stalls.longest_recent(),
    ),
    Family(
        "kaspar_loop_stalls_total",
        Kind.COUNTER,
        "Stalls of the event loop that exceeded this many milliseconds.",
        lambda scrape: [(labels(over_ms=bound), count) for bound, count in scrape.metrics.stalls.over().items()],
        ("over_ms",),
    ),
    own(
        "kaspar_loop_silent_seconds",
        Kind.GAUGE,
        "Time since the event loop last ran its timer, which is due every tenth of a second.",
        lambda scrape: scrape.metrics.stalls.silent_seconds(),
    ),
    own("process_cpu_seconds_total", Kind.COUNTER, "CPU time of the process.", lambda _: process.cpu_seconds()),
    own(
        "process_resident_memory_bytes", Kind.GAUGE, "Memory of the process.", lambda _: process.resident_memory_bytes()
    ),
    own(
        "process_virtual_memory_bytes",
        Kind.GAUGE,
        "Address space of the process.",
        lambda _: process.virtual_memory_bytes(),
    ),
    own("process_open_fds", Kind.GAUGE, "Open files and sockets.", lambda _: process.open_files()),
    own(
        "process_max_fds",
        Kind.GAUGE,
        "The maximum number of open files and sockets.",
        lambda _: process.max_open_files(),
    ),
    own(
        "process_start_time_seconds",
        Kind.GAUGE,
        "When the process started, in seconds since 1970.",
        lambda _: process.start_time_seconds(),
    ),
)
