"""The log on disk: its directories, the defaults of topics, flushing, retention and the cleaner."""

from kaspar.config.checks import at_least
from kaspar.config.declaration import Importance, Scope, Settings, setting, topic_default
from kaspar.config.kinds import BOOLEAN, DOUBLE, INT, LIST, LONG, MAX_DOUBLE, MAX_LONG, STRING
from kaspar.config.reasons import NO_FAILURE_TIMEOUT
from kaspar.config.topic import LogConfig
from kaspar.config.units import DAY_MS, KIB, MIB, MINUTE_MS

TOPIC = LogConfig.declared


class LogSettings(Settings):
    log_dir: tuple[str, ...] = setting(
        LIST, ("/tmp/kafka-logs",), importance=Importance.HIGH, doc="The log directory, if `log.dirs` is not given."
    )
    log_dirs: tuple[str, ...] = setting(
        LIST,
        (),
        importance=Importance.HIGH,
        shows_no_default=True,
        doc="The log directories, comma-separated. A new partition goes to the one with the fewest.",
    )
    cordoned_log_dirs: tuple[str, ...] = setting(
        LIST, (), scope=Scope.PER_BROKER, doc="Log directories that get no new partitions, or `*` for all of them."
    )
    log_dir_failure_timeout_ms: int = setting(
        LONG,
        30_000,
        at_least(1),
        importance=Importance.LOW,
        not_honoured=NO_FAILURE_TIMEOUT,
        doc="How long a broker may fail to report an offline log directory to the controller before it stops.",
    )
    metadata_log_dir: str | None = setting(
        STRING,
        None,
        importance=Importance.HIGH,
        doc="The directory of the metadata store; by default the log directory that has it, or the first one.",
    )
    log_segment_bytes: int = topic_default(TOPIC["segment.bytes"], Importance.HIGH)
    log_roll_ms: int | None = setting(
        LONG,
        None,
        importance=Importance.HIGH,
        scope=Scope.CLUSTER_WIDE,
        doc="The age in milliseconds at which a segment is rolled, for topics that do not set `segment.ms`. "
        "Takes precedence over `log.roll.hours`.",
    )
    log_roll_hours: int = setting(
        INT,
        168,
        at_least(1),
        importance=Importance.HIGH,
        doc="The age in hours at which a segment is rolled, where `log.roll.ms` is not given.",
    )
    log_roll_jitter_ms: int | None = setting(
        LONG,
        None,
        importance=Importance.HIGH,
        scope=Scope.CLUSTER_WIDE,
        doc="Up to how many milliseconds earlier a segment is rolled, at random. Takes precedence over "
        "`log.roll.jitter.hours`.",
    )
    log_roll_jitter_hours: int = setting(
        INT,
        0,
        at_least(0),
        importance=Importance.HIGH,
        doc="Up to how many hours earlier a segment is rolled, where `log.roll.jitter.ms` is not given.",
    )
    log_retention_ms: int | None = setting(
        LONG,
        None,
        importance=Importance.HIGH,
        scope=Scope.CLUSTER_WIDE,
        doc="The age in milliseconds at which segments are deleted, for topics that do not set `retention.ms`. "
        "-1 sets no limit. Takes precedence over the minutes and hours.",
    )
    log_retention_minutes: int | None = setting(
        INT,
        None,
        importance=Importance.HIGH,
        doc="The age in minutes at which segments are deleted, where `log.retention.ms` is not given.",
    )
    log_retention_hours: int = setting(
        INT,
        168,
        importance=Importance.HIGH,
        doc="The age in hours at which segments are deleted, where neither milliseconds nor minutes are given.",
    )
    log_retention_bytes: int = topic_default(TOPIC["retention.bytes"], Importance.HIGH)
    log_retention_check_interval_ms: int = setting(
        LONG, 5 * MINUTE_MS, at_least(1), doc="How often the broker checks for segments that retention may delete."
    )
    log_cleanup_policy: tuple[str, ...] = topic_default(TOPIC["cleanup.policy"])
    log_index_size_max_bytes: int = topic_default(TOPIC["segment.index.bytes"])
    log_index_interval_bytes: int = topic_default(TOPIC["index.interval.bytes"])
    log_flush_interval_messages: int = topic_default(TOPIC["flush.messages"], Importance.HIGH)
    log_flush_interval_ms: int | None = setting(
        LONG,
        None,
        importance=Importance.HIGH,
        scope=Scope.CLUSTER_WIDE,
        doc="How long a record may be unsynced, for topics that do not set `flush.ms`. If it is not given, "
        "`log.flush.scheduler.interval.ms` applies.",
    )
    log_flush_scheduler_interval_ms: int = setting(
        LONG, MAX_LONG, importance=Importance.HIGH, doc="How often the broker checks for logs that must be synced."
    )
    log_flush_offset_checkpoint_interval_ms: int = setting(
        INT,
        MINUTE_MS,
        at_least(0),
        importance=Importance.HIGH,
        doc="How often the recovery points are written to their checkpoint file.",
    )
    log_flush_start_offset_checkpoint_interval_ms: int = setting(
        INT,
        MINUTE_MS,
        at_least(0),
        importance=Importance.HIGH,
        not_honoured="The log start offsets are written together with the recovery points.",
        doc="How often the log start offsets are written to their checkpoint file.",
    )
    log_segment_delete_delay_ms: int = topic_default(TOPIC["file.delete.delay.ms"], Importance.HIGH)
    log_preallocate: bool = topic_default(TOPIC["preallocate"])
    log_message_timestamp_type: str = topic_default(TOPIC["message.timestamp.type"])
    log_message_timestamp_before_max_ms: int = topic_default(TOPIC["message.timestamp.before.max.ms"])
    log_message_timestamp_after_max_ms: int = topic_default(TOPIC["message.timestamp.after.max.ms"])
    log_local_retention_ms: int = topic_default(TOPIC["local.retention.ms"])
    log_local_retention_bytes: int = topic_default(TOPIC["local.retention.bytes"])
    message_max_bytes: int = topic_default(TOPIC["max.message.bytes"], Importance.HIGH)
    compression_type: str = topic_default(TOPIC["compression.type"], Importance.HIGH)
    compression_gzip_level: int = topic_default(TOPIC["compression.gzip.level"])
    compression_lz4_level: int = topic_default(TOPIC["compression.lz4.level"])
    compression_zstd_level: int = topic_default(TOPIC["compression.zstd.level"])
    min_insync_replicas: int = topic_default(TOPIC["min.insync.replicas"], Importance.HIGH)
    unclean_leader_election_enable: bool = topic_default(TOPIC["unclean.leader.election.enable"], Importance.HIGH)
    num_recovery_threads_per_data_dir: int = setting(
        INT,
        2,
        at_least(1),
        importance=Importance.HIGH,
        scope=Scope.CLUSTER_WIDE,
        doc="How many threads per log directory load logs at start and sync them at stop.",
    )
    producer_id_expiration_ms: int = setting(
        INT,
        DAY_MS,
        at_least(1),
        importance=Importance.LOW,
        scope=Scope.CLUSTER_WIDE,
        doc="How long partitions remember an idle idempotent producer.",
    )
    log_cleaner_enable: bool = setting(
        BOOLEAN, True, doc="Whether the log cleaner runs. Without it, compacted topics only grow."
    )
    log_cleaner_threads: int = setting(
        INT, 1, at_least(0), scope=Scope.CLUSTER_WIDE, doc="How many threads clean logs."
    )
    log_cleaner_io_max_bytes_per_second: float = setting(
        DOUBLE,
        MAX_DOUBLE,
        scope=Scope.CLUSTER_WIDE,
        doc="How many bytes per second the cleaner may read and write, for all its threads together.",
    )
    log_cleaner_dedupe_buffer_size: int = setting(
        LONG,
        128 * MIB,
        scope=Scope.CLUSTER_WIDE,
        doc="The memory for the map of keys, for all cleaner threads together. It is allocated only while logs are "
        "cleaned.",
    )
    log_cleaner_io_buffer_size: int = setting(
        INT,
        512 * KIB,
        at_least(0),
        scope=Scope.CLUSTER_WIDE,
        doc="The memory for reads and writes, for all cleaner threads together.",
    )
    log_cleaner_io_buffer_load_factor: float = setting(
        DOUBLE,
        0.9,
        scope=Scope.CLUSTER_WIDE,
        doc="How full the map of keys may get.",
    )
    log_cleaner_backoff_ms: int = setting(
        LONG,
        15_000,
        at_least(0),
        scope=Scope.CLUSTER_WIDE,
        doc="How long the cleaner sleeps when no log needs cleaning.",
    )
    log_cleaner_min_cleanable_ratio: float = topic_default(TOPIC["min.cleanable.dirty.ratio"])
    log_cleaner_delete_retention_ms: int = topic_default(TOPIC["delete.retention.ms"])
    log_cleaner_min_compaction_lag_ms: int = topic_default(TOPIC["min.compaction.lag.ms"])
    log_cleaner_max_compaction_lag_ms: int = topic_default(TOPIC["max.compaction.lag.ms"])
