"""Consumer, share and streams groups and the topics they keep their state in."""

from kaspar.config.checks import at_least, between, list_of, one_of_in_any_case
from kaspar.config.declaration import Importance, Scope, Settings, setting
from kaspar.config.kinds import INT, LIST, LONG, MAX_INT, SHORT, STRING
from kaspar.config.topic import HOUR_MS, KIB, MIB, MINUTE_MS


class GroupSettings(Settings, not_honoured="Groups are not served yet."):
    group_initial_rebalance_delay_ms: int = setting(
        INT, 3000, doc="How long a new group waits for more members before its first rebalance."
    )
    group_min_session_timeout_ms: int = setting(INT, 6000, doc="The shortest session timeout a member may ask for.")
    group_max_session_timeout_ms: int = setting(
        INT, 30 * MINUTE_MS, doc="The longest session timeout a member may ask for."
    )
    group_max_size: int = setting(INT, MAX_INT, at_least(1), doc="How many members a group may have.")
    group_coordinator_rebalance_protocols: tuple[str, ...] = setting(
        LIST,
        (
            "classic",
            "consumer",
            "streams",
        ),
        list_of("consumer", "classic", "share", "streams"),
        doc="The group protocols that are served.",
    )
    group_coordinator_threads: int = setting(
        INT, 4, at_least(1), importance=Importance.HIGH, doc="How many threads run group coordinators."
    )
    group_coordinator_background_threads: int = setting(
        INT, 2, at_least(1), importance=Importance.HIGH, doc="How many threads compute assignments."
    )
    group_coordinator_append_linger_ms: int = setting(
        INT, -1, at_least(-1), doc="How long the coordinator gathers writes. -1 adapts to the load."
    )
    group_coordinator_cached_buffer_max_bytes: int = setting(
        INT,
        1 * MIB + 12,
        at_least(512 * KIB),
        scope=Scope.CLUSTER_WIDE,
        doc="The largest write buffer a coordinator keeps for reuse.",
    )
    group_consumer_assignors: tuple[str, ...] = setting(
        LIST,
        (
            "uniform",
            "range",
        ),
        doc="The assignors of consumer groups, the first being the default.",
    )
    group_consumer_assignment_interval_ms: int = setting(
        INT,
        1000,
        at_least(0),
        scope=Scope.CLUSTER_WIDE,
        doc="The least time between two assignments of a consumer group.",
    )
    group_consumer_min_assignment_interval_ms: int = setting(
        INT, 0, at_least(0), doc="The lowest value a group may set for that."
    )
    group_consumer_max_assignment_interval_ms: int = setting(
        INT, 15_000, at_least(0), doc="The highest value a group may set for that."
    )
    group_consumer_heartbeat_interval_ms: int = setting(
        INT, 5000, at_least(1), doc="How often members of a consumer group send heartbeats."
    )
    group_consumer_min_heartbeat_interval_ms: int = setting(
        INT, 5000, at_least(1), doc="The lowest value a group may set for that."
    )
    group_consumer_max_heartbeat_interval_ms: int = setting(
        INT, 15_000, at_least(1), doc="The highest value a group may set for that."
    )
    group_consumer_session_timeout_ms: int = setting(
        INT, 45_000, at_least(1), doc="A member of a consumer group silent for this long is removed."
    )
    group_consumer_min_session_timeout_ms: int = setting(
        INT, 45_000, at_least(1), doc="The lowest value a group may set for that."
    )
    group_consumer_max_session_timeout_ms: int = setting(
        INT, MINUTE_MS, at_least(1), doc="The highest value a group may set for that."
    )
    group_consumer_max_size: int = setting(INT, MAX_INT, at_least(1), doc="How many members a consumer group may have.")
    group_consumer_migration_policy: str = setting(
        STRING,
        "bidirectional",
        one_of_in_any_case("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"),
        doc="Which way groups may change between the classic and the consumer protocol.",
    )
    group_share_assignors: tuple[str, ...] = setting(LIST, ("simple",), doc="The assignors of share groups.")
    group_share_assignment_interval_ms: int = setting(
        INT, 1000, at_least(0), scope=Scope.CLUSTER_WIDE, doc="The least time between two assignments of a share group."
    )
    group_share_min_assignment_interval_ms: int = setting(
        INT, 0, at_least(0), doc="The lowest value a group may set for that."
    )
    group_share_max_assignment_interval_ms: int = setting(
        INT, 15_000, at_least(0), doc="The highest value a group may set for that."
    )
    group_share_delivery_count_limit: int = setting(
        INT, 5, between(2, 10), doc="How often a record is delivered to a share group before it is given up."
    )
    group_share_min_delivery_count_limit: int = setting(
        INT, 2, between(2, 5), doc="The lowest value a group may set for that."
    )
    group_share_max_delivery_count_limit: int = setting(
        INT, 10, between(5, 25), doc="The highest value a group may set for that."
    )
    group_share_heartbeat_interval_ms: int = setting(
        INT, 5000, at_least(1), doc="How often members of a share group send heartbeats."
    )
    group_share_min_heartbeat_interval_ms: int = setting(
        INT, 5000, at_least(1), doc="The lowest value a group may set for that."
    )
    group_share_max_heartbeat_interval_ms: int = setting(
        INT, 15_000, at_least(1), doc="The highest value a group may set for that."
    )
    group_share_partition_max_record_locks: int = setting(
        INT, 2000, between(100, 10_000), doc="How many records of a partition may be in delivery to a share group."
    )
    group_share_min_partition_max_record_locks: int = setting(
        INT, 100, between(100, 2000), doc="The lowest value a group may set for that."
    )
    group_share_max_partition_max_record_locks: int = setting(
        INT, 4000, between(2000, 10_000), doc="The highest value a group may set for that."
    )
    group_share_record_lock_duration_ms: int = setting(
        INT, 30_000, between(1000, HOUR_MS), doc="How long a delivered record stays locked for its consumer."
    )
    group_share_min_record_lock_duration_ms: int = setting(
        INT, 15_000, between(1000, 30_000), doc="The lowest value a group may set for that."
    )
    group_share_max_record_lock_duration_ms: int = setting(
        INT, MINUTE_MS, between(30_000, HOUR_MS), doc="The highest value a group may set for that."
    )
    group_share_session_timeout_ms: int = setting(
        INT, 45_000, at_least(1), doc="A member of a share group silent for this long is removed."
    )
    group_share_min_session_timeout_ms: int = setting(
        INT, 45_000, at_least(1), doc="The lowest value a group may set for that."
    )
    group_share_max_session_timeout_ms: int = setting(
        INT, MINUTE_MS, at_least(1), doc="The highest value a group may set for that."
    )
    group_share_max_share_sessions: int = setting(INT, 2000, at_least(1), doc="How many share sessions a broker keeps.")
    group_share_max_size: int = setting(INT, 200, between(1, 1000), doc="How many members a share group may have.")
    group_streams_assignment_interval_ms: int = setting(
        INT,
        1000,
        at_least(0),
        scope=Scope.CLUSTER_WIDE,
        doc="The least time between two assignments of a streams group.",
    )
    group_streams_min_assignment_interval_ms: int = setting(
        INT, 0, at_least(0), doc="The lowest value a group may set for that."
    )
    group_streams_max_assignment_interval_ms: int = setting(
        INT, 15_000, at_least(0), doc="The highest value a group may set for that."
    )
    group_streams_heartbeat_interval_ms: int = setting(
        INT, 5000, at_least(1), doc="How often members of a streams group send heartbeats."
    )
    group_streams_min_heartbeat_interval_ms: int = setting(
        INT, 5000, at_least(1), doc="The lowest value a group may set for that."
    )
    group_streams_max_heartbeat_interval_ms: int = setting(
        INT, 15_000, at_least(1), doc="The highest value a group may set for that."
    )
    group_streams_session_timeout_ms: int = setting(
        INT, 45_000, at_least(1), doc="A member of a streams group silent for this long is removed."
    )
    group_streams_min_session_timeout_ms: int = setting(
        INT, 45_000, at_least(1), doc="The lowest value a group may set for that."
    )
    group_streams_max_session_timeout_ms: int = setting(
        INT, MINUTE_MS, at_least(1), doc="The highest value a group may set for that."
    )
    group_streams_initial_rebalance_delay_ms: int = setting(
        INT, 3000, at_least(0), doc="How long a new streams group waits for more members."
    )
    group_streams_max_size: int = setting(INT, MAX_INT, at_least(1), doc="How many members a streams group may have.")
    group_streams_num_standby_replicas: int = setting(
        INT, 0, at_least(0), doc="How many standby replicas each task gets."
    )
    group_streams_max_standby_replicas: int = setting(
        INT, 2, at_least(0), doc="The highest value a group may set for that."
    )
    offset_metadata_max_bytes: int = setting(
        INT, 4096, importance=Importance.HIGH, doc="The longest metadata text a committed offset may carry."
    )
    offsets_commit_timeout_ms: int = setting(
        INT,
        5000,
        at_least(1),
        importance=Importance.HIGH,
        doc="How long a commit waits for the replicas of the offsets topic.",
    )
    offsets_load_buffer_size: int = setting(
        INT,
        5 * MIB,
        at_least(1),
        importance=Importance.HIGH,
        doc="How many bytes are read at once when offsets are loaded.",
    )
    offsets_retention_check_interval_ms: int = setting(
        LONG, 10 * MINUTE_MS, at_least(1), importance=Importance.HIGH, doc="How often expired offsets are looked for."
    )
    offsets_retention_minutes: int = setting(
        INT, 10_080, at_least(1), importance=Importance.HIGH, doc="How long the offsets of an empty group are kept."
    )
    offsets_topic_compression_codec: int = setting(
        INT,
        0,
        importance=Importance.HIGH,
        doc="The codec of the offsets topic, by number: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
    )
    offsets_topic_num_partitions: int = setting(
        INT, 50, at_least(1), importance=Importance.HIGH, doc="How many partitions the offsets topic has."
    )
    offsets_topic_replication_factor: int = setting(
        SHORT, 3, at_least(1), importance=Importance.HIGH, doc="How many replicas the offsets topic has."
    )
    offsets_topic_segment_bytes: int = setting(
        INT, 100 * MIB, at_least(1), importance=Importance.HIGH, doc="The segment size of the offsets topic."
    )
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
