"""Quotas, and metrics of Kafka's own reporters."""

from kaspar.config.checks import at_least
from kaspar.config.declaration import Importance, Scope, Settings, setting
from kaspar.config.kinds import CLASS, INT, LIST, LONG, MAX_LONG, STRING
from kaspar.config.reasons import NO_PLUGINS, NO_REPORTERS
from kaspar.config.units import MIB


class QuotaAndMetricSettings(Settings):
    quota_window_num: int = setting(
        INT,
        11,
        at_least(1),
        importance=Importance.LOW,
        doc="How many samples a client quota is measured over.",
    )
    quota_window_size_seconds: int = setting(
        INT, 1, at_least(1), importance=Importance.LOW, doc="How long each sample is."
    )
    replication_quota_window_num: int = setting(
        INT,
        11,
        at_least(1),
        importance=Importance.LOW,
        doc="How many samples a replication quota is measured over.",
    )
    replication_quota_window_size_seconds: int = setting(
        INT, 1, at_least(1), importance=Importance.LOW, doc="How long each sample is."
    )
    leader_replication_throttled_rate: int = setting(
        LONG,
        MAX_LONG,
        at_least(0),
        scope=Scope.CLUSTER_WIDE,
        internal=True,
        doc="How many bytes per second of throttled replicas a leader sends. Kafka knows it as a dynamic setting only.",
    )
    follower_replication_throttled_rate: int = setting(
        LONG,
        MAX_LONG,
        at_least(0),
        scope=Scope.CLUSTER_WIDE,
        internal=True,
        doc="How many bytes per second of throttled replicas a follower fetches. Kafka knows it as a dynamic setting "
        "only.",
    )
    replica_alter_log_dirs_io_max_bytes_per_second: int = setting(
        LONG,
        MAX_LONG,
        at_least(0),
        scope=Scope.CLUSTER_WIDE,
        internal=True,
        doc="How many bytes per second are copied from one log directory of a broker to another. Kafka knows it as a "
        "dynamic setting only.",
    )
    alter_log_dirs_replication_quota_window_num: int = setting(
        INT,
        11,
        at_least(1),
        importance=Importance.LOW,
        doc="How many samples the quota of moves between log directories is measured over.",
    )
    alter_log_dirs_replication_quota_window_size_seconds: int = setting(
        INT, 1, at_least(1), importance=Importance.LOW, doc="How long each sample is."
    )
    controller_quota_window_num: int = setting(
        INT,
        11,
        at_least(1),
        importance=Importance.LOW,
        doc="How many samples the quota of topic changes is measured over.",
    )
    controller_quota_window_size_seconds: int = setting(
        INT, 1, at_least(1), importance=Importance.LOW, doc="How long each sample is."
    )
    client_quota_callback_class: str | None = setting(
        CLASS, None, importance=Importance.LOW, not_honoured=NO_PLUGINS, doc="A class that computes client quotas."
    )
    metric_reporters: tuple[str, ...] = setting(
        LIST,
        ("org.apache.kafka.common.metrics.JmxReporter",),
        importance=Importance.LOW,
        scope=Scope.CLUSTER_WIDE,
        not_honoured=NO_REPORTERS,
        doc="Classes that report metrics.",
    )
    metrics_num_samples: int = setting(
        INT,
        2,
        at_least(1),
        importance=Importance.LOW,
        not_honoured=NO_REPORTERS,
        doc="How many samples a metric is computed over.",
    )
    metrics_sample_window_ms: int = setting(
        LONG, 30_000, at_least(1), importance=Importance.LOW, not_honoured=NO_REPORTERS, doc="How long each sample is."
    )
    metrics_recording_level: str = setting(
        STRING, "INFO", importance=Importance.LOW, not_honoured=NO_REPORTERS, doc="Which metrics are recorded."
    )
    kafka_metrics_reporters: tuple[str, ...] = setting(
        LIST, (), importance=Importance.LOW, not_honoured=NO_REPORTERS, doc="Classes that report the older metrics."
    )
    kafka_metrics_polling_interval_secs: int = setting(
        INT, 10, at_least(1), importance=Importance.LOW, not_honoured=NO_REPORTERS, doc="How often those are polled."
    )
    telemetry_max_bytes: int = setting(
        INT,
        1 * MIB,
        at_least(1),
        importance=Importance.LOW,
        doc="The largest telemetry message a client may push, as it is sent and as it is decompressed.",
    )
