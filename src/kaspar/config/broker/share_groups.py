"""Share groups, which are not served yet, and the topic in which they keep their state."""

from kaspar.config.checks import at_least, between
from kaspar.config.declaration import Importance, Scope, Settings, setting
from kaspar.config.kinds import INT, LIST, SHORT
from kaspar.config.reasons import NO_SHARE_GROUPS
from kaspar.config.units import HOUR_MS, KIB, MIB, MINUTE_MS


class ShareGroupSettings(Settings, not_honoured=NO_SHARE_GROUPS):
    group_share_assignors: tuple[str, ...] = setting(LIST, ("simple",), doc="The assignors of share groups.")
    group_share_assignment_interval_ms: int = setting(
        INT, 1000, at_least(0), scope=Scope.CLUSTER_WIDE, doc="The least time between two assignments of a share group."
    )
    group_share_min_assignment_interval_ms: int = setting(
        INT, 0, at_least(0), doc="The lowest `share.assignment.interval.ms` that a group may set."
    )
    group_share_max_assignment_interval_ms: int = setting(
        INT, 15_000, at_least(0), doc="The highest `share.assignment.interval.ms` that a group may set."
    )
    group_share_delivery_count_limit: int = setting(
        INT, 5, between(2, 10), doc="The maximum number of times that a record is delivered to a share group."
    )
    group_share_min_delivery_count_limit: int = setting(
        INT, 2, between(2, 5), doc="The lowest `share.delivery.count.limit` that a group may set."
    )
    group_share_max_delivery_count_limit: int = setting(
        INT, 10, between(5, 25), doc="The highest `share.delivery.count.limit` that a group may set."
    )
    group_share_heartbeat_interval_ms: int = setting(
        INT, 5000, at_least(1), doc="How often members of a share group send heartbeats."
    )
    group_share_min_heartbeat_interval_ms: int = setting(
        INT, 5000, at_least(1), doc="The lowest `share.heartbeat.interval.ms` that a group may set."
    )
    group_share_max_heartbeat_interval_ms: int = setting(
        INT, 15_000, at_least(1), doc="The highest `share.heartbeat.interval.ms` that a group may set."
    )
    group_share_partition_max_record_locks: int = setting(
        INT, 2000, between(100, 10_000), doc="How many records of a partition may be in delivery to a share group."
    )
    group_share_min_partition_max_record_locks: int = setting(
        INT, 100, between(100, 2000), doc="The lowest `share.partition.max.record.locks` that a group may set."
    )
    group_share_max_partition_max_record_locks: int = setting(
        INT, 4000, between(2000, 10_000), doc="The highest `share.partition.max.record.locks` that a group may set."
    )
    group_share_record_lock_duration_ms: int = setting(
        INT, 30_000, between(1000, HOUR_MS), doc="How long a delivered record stays locked for its consumer."
    )
    group_share_min_record_lock_duration_ms: int = setting(
        INT, 15_000, between(1000, 30_000), doc="The lowest `share.record.lock.duration.ms` that a group may set."
    )
    group_share_max_record_lock_duration_ms: int = setting(
        INT,
        MINUTE_MS,
        between(30_000, HOUR_MS),
        doc="The highest `share.record.lock.duration.ms` that a group may set.",
    )
    group_share_session_timeout_ms: int = setting(
        INT, 45_000, at_least(1), doc="A member of a share group silent for this long is removed."
    )
    group_share_min_session_timeout_ms: int = setting(
        INT, 45_000, at_least(1), doc="The lowest `share.session.timeout.ms` that a group may set."
    )
    group_share_max_session_timeout_ms: int = setting(
        INT, MINUTE_MS, at_least(1), doc="The highest `share.session.timeout.ms` that a group may set."
    )
    group_share_max_share_sessions: int = setting(INT, 2000, at_least(1), doc="How many share sessions a broker keeps.")
    group_share_max_size: int = setting(INT, 200, between(1, 1000), doc="How many members a share group may have.")
    share_coordinator_append_linger_ms: int = setting(
        INT, -1, at_least(-1), doc="How long the share coordinator gathers writes. -1 adapts to the load."
    )
    share_coordinator_cached_buffer_max_bytes: int = setting(
        INT,
        1 * MIB + 12,
        at_least(512 * KIB),
        scope=Scope.CLUSTER_WIDE,
        doc="The largest write buffer the share coordinator keeps for reuse.",
    )
    share_coordinator_load_buffer_size: int = setting(
        INT,
        5 * MIB,
        at_least(1),
        importance=Importance.HIGH,
        doc="How many bytes are read at once when share state is loaded.",
    )
    share_coordinator_snapshot_update_records_per_snapshot: int = setting(
        INT, 500, between(0, 500), doc="How many updates lie between two snapshots of share state."
    )
    share_coordinator_state_topic_compression_codec: int = setting(
        INT, 0, importance=Importance.HIGH, doc="The codec of the share state topic, by number."
    )
    share_coordinator_state_topic_min_isr: int = setting(
        SHORT, 2, at_least(1), importance=Importance.HIGH, doc="The `min.insync.replicas` of the share state topic."
    )
    share_coordinator_state_topic_num_partitions: int = setting(
        INT, 50, at_least(1), importance=Importance.HIGH, doc="How many partitions the share state topic has."
    )
    share_coordinator_state_topic_replication_factor: int = setting(
        SHORT, 3, at_least(1), importance=Importance.HIGH, doc="How many replicas the share state topic has."
    )
    share_coordinator_state_topic_segment_bytes: int = setting(
        INT, 100 * MIB, at_least(1), importance=Importance.HIGH, doc="The segment size of the share state topic."
    )
    share_coordinator_threads: int = setting(INT, 1, at_least(1), doc="How many threads run share coordinators.")
    share_coordinator_write_timeout_ms: int = setting(
        INT, 5000, at_least(1), importance=Importance.HIGH, doc="How long a write of share state may take."
    )
    share_fetch_purgatory_purge_interval_requests: int = setting(
        INT, 1000, doc="After how many requests finished share fetches are removed from the purgatory."
    )
