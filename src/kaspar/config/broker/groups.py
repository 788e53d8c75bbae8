"""Groups of consumers, classic and new, and the topic in which they keep their state."""

from kaspar.config.checks import at_least, between, list_of, one_of_in_any_case
from kaspar.config.declaration import Importance, Scope, Settings, setting
from kaspar.config.kinds import INT, LIST, LONG, MAX_INT, SHORT, STRING
from kaspar.config.reasons import ONE_LOOP
from kaspar.config.units import KIB, MIB, MINUTE_MS


class GroupSettings(Settings):
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
        INT,
        4,
        at_least(1),
        importance=Importance.HIGH,
        doc="How many threads run group coordinators.",
        not_honoured=ONE_LOOP,
    )
    group_coordinator_background_threads: int = setting(
        INT,
        2,
        at_least(1),
        importance=Importance.HIGH,
        doc="How many threads compute assignments.",
        not_honoured="Long assignments are computed in threads that the broker has for whatever is slow.",
    )
    group_coordinator_append_linger_ms: int = setting(
        INT,
        -1,
        at_least(-1),
        doc="How long the coordinator gathers writes. -1 adapts to the load.",
        not_honoured="A coordinator's records are appended at once.",
    )
    group_coordinator_cached_buffer_max_bytes: int = setting(
        INT,
        1 * MIB + 12,
        at_least(512 * KIB),
        scope=Scope.CLUSTER_WIDE,
        doc="The largest write buffer a coordinator keeps for reuse.",
        not_honoured="A coordinator keeps no write buffer.",
    )
    group_consumer_assignors: tuple[str, ...] = setting(
        LIST,
        (
            "uniform",
            "range",
        ),
        list_of("uniform", "range"),
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
        INT, 0, at_least(0), doc="The lowest `consumer.assignment.interval.ms` that a group may set."
    )
    group_consumer_max_assignment_interval_ms: int = setting(
        INT, 15_000, at_least(0), doc="The highest `consumer.assignment.interval.ms` that a group may set."
    )
    group_consumer_heartbeat_interval_ms: int = setting(
        INT, 5000, at_least(1), doc="How often members of a consumer group send heartbeats."
    )
    group_consumer_min_heartbeat_interval_ms: int = setting(
        INT, 5000, at_least(1), doc="The lowest `consumer.heartbeat.interval.ms` that a group may set."
    )
    group_consumer_max_heartbeat_interval_ms: int = setting(
        INT, 15_000, at_least(1), doc="The highest `consumer.heartbeat.interval.ms` that a group may set."
    )
    group_consumer_session_timeout_ms: int = setting(
        INT, 45_000, at_least(1), doc="A member of a consumer group silent for this long is removed."
    )
    group_consumer_min_session_timeout_ms: int = setting(
        INT, 45_000, at_least(1), doc="The lowest `consumer.session.timeout.ms` that a group may set."
    )
    group_consumer_max_session_timeout_ms: int = setting(
        INT, MINUTE_MS, at_least(1), doc="The highest `consumer.session.timeout.ms` that a group may set."
    )
    group_consumer_max_size: int = setting(INT, MAX_INT, at_least(1), doc="How many members a consumer group may have.")
    group_consumer_migration_policy: str = setting(
        STRING,
        "bidirectional",
        one_of_in_any_case("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"),
        doc="Which way groups may change between the classic and the consumer protocol.",
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
        LONG,
        10 * MINUTE_MS,
        at_least(1),
        importance=Importance.HIGH,
        doc="How often the broker checks for expired offsets.",
    )
    offsets_retention_minutes: int = setting(
        INT, 10_080, at_least(1), importance=Importance.HIGH, doc="How long the offsets of an empty group are kept."
    )
    offsets_topic_compression_codec: int = setting(
        INT,
        0,
        between(0, 4),
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
