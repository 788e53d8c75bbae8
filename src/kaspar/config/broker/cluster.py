"""The broker's identity, topic creation, and replication."""

from kaspar.config.checks import at_least, list_of
from kaspar.config.declaration import Importance, Scope, Settings, setting
from kaspar.config.kinds import BOOLEAN, CLASS, INT, LIST, LONG, STRING
from kaspar.config.reasons import FIXED_TIMEOUTS, NO_HEARTBEATS, NO_PLUGINS, NO_QUORUM
from kaspar.config.units import DAY_MS, GIB, HOUR_MS, KIB, MIB, MINUTE_MS


class ClusterSettings(Settings):
    node_id: int = setting(
        INT,
        1,
        at_least(0),
        importance=Importance.HIGH,
        shows_no_default=True,
        doc="The id of this broker, unique in its cluster.",
    )
    broker_id: int = setting(
        INT, -1, importance=Importance.HIGH, doc="The older name of `node.id`. If both are given they must be equal."
    )
    broker_rack: str | None = setting(
        STRING, None, doc="The rack of this broker, for placing replicas and reading from the nearest."
    )
    process_roles: tuple[str, ...] = setting(
        LIST,
        ("broker", "controller"),
        list_of("broker", "controller"),
        importance=Importance.HIGH,
        shows_no_default=True,
        doc="The roles of this process. It is always broker and controller in one.",
    )
    auto_create_topics_enable: bool = setting(
        BOOLEAN,
        True,
        importance=Importance.HIGH,
        doc="Whether a topic that a client asks for is created when it does not exist.",
    )
    num_partitions: int = setting(
        INT, 1, at_least(1), doc="The number of partitions of a topic whose creator does not specify it."
    )
    default_replication_factor: int = setting(
        INT, 1, doc="The number of replicas of a topic whose creator does not specify it."
    )
    delete_topic_enable: bool = setting(BOOLEAN, True, importance=Importance.HIGH, doc="Whether topics may be deleted.")
    create_topic_policy_class_name: str | None = setting(
        CLASS,
        None,
        importance=Importance.LOW,
        not_honoured=NO_PLUGINS,
        doc="A class that may reject the creation of a topic.",
    )
    alter_config_policy_class_name: str | None = setting(
        CLASS,
        None,
        importance=Importance.LOW,
        not_honoured=NO_PLUGINS,
        doc="A class that may reject a change of settings.",
    )
    replica_high_watermark_checkpoint_interval_ms: int = setting(
        LONG,
        5000,
        importance=Importance.HIGH,
        doc="How often the high watermarks are written to their checkpoint file.",
    )
    auto_leader_rebalance_enable: bool = setting(
        BOOLEAN,
        True,
        importance=Importance.HIGH,
        doc="Whether leadership moves back to the preferred replicas automatically.",
    )
    leader_imbalance_check_interval_seconds: int = setting(
        LONG,
        300,
        at_least(1),
        importance=Importance.HIGH,
        doc="How often the controller checks for partitions not led by their preferred replica.",
    )
    controlled_shutdown_enable: bool = setting(
        BOOLEAN, True, doc="Whether a stopping broker first hands its leaderships over."
    )
    controller_socket_timeout_ms: int = setting(
        INT, 30_000, not_honoured=FIXED_TIMEOUTS, doc="How long a broker waits for its controller."
    )
    num_replica_fetchers: int = setting(
        INT,
        1,
        at_least(1),
        importance=Importance.HIGH,
        scope=Scope.CLUSTER_WIDE,
        doc="How many fetchers copy from each leader.",
    )
    num_replica_alter_log_dirs_threads: int | None = setting(
        INT,
        None,
        importance=Importance.HIGH,
        doc="How many replicas are moved between log directories at a time; by default, as many as there are "
        "directories.",
    )
    replica_fetch_backoff_ms: int = setting(
        INT, 1000, at_least(0), doc="How long a follower waits after a failed fetch."
    )
    replica_fetch_max_bytes: int = setting(
        INT, 1 * MIB, at_least(0), doc="How many bytes a follower asks for per partition."
    )
    replica_fetch_min_bytes: int = setting(
        INT, 1, importance=Importance.HIGH, doc="How many bytes a follower waits for."
    )
    replica_fetch_response_max_bytes: int = setting(
        INT, 10 * MIB, at_least(0), doc="How many bytes a follower asks for in all."
    )
    replica_fetch_wait_max_ms: int = setting(
        INT, 500, importance=Importance.HIGH, doc="How long a follower's fetch waits."
    )
    replica_lag_time_max_ms: int = setting(
        LONG,
        30_000,
        importance=Importance.HIGH,
        doc="A follower that has not caught up for this long leaves the in-sync replicas.",
    )
    replica_selector_class: str | None = setting(
        STRING,
        None,
        doc="The class that picks the replica a consumer reads from. With "
        "`org.apache.kafka.common.replica.RackAwareReplicaSelector` it is one in the consumer's rack; with any other "
        "it is the leader.",
    )
    replica_socket_receive_buffer_bytes: int = setting(
        INT,
        64 * KIB,
        importance=Importance.HIGH,
        not_honoured="The system sizes the buffers of connections between brokers.",
        doc="The receive buffer of a follower's connections.",
    )
    replica_socket_timeout_ms: int = setting(
        INT,
        30_000,
        importance=Importance.HIGH,
        doc="How long a follower waits for a response.",
    )
    broker_heartbeat_interval_ms: int = setting(
        INT, 2000, not_honoured=NO_HEARTBEATS, doc="How often a broker reports to its controller."
    )
    broker_session_timeout_ms: int = setting(
        INT, 9000, not_honoured=NO_HEARTBEATS, doc="A broker silent for this long is fenced."
    )
    initial_broker_registration_timeout_ms: int = setting(
        INT, MINUTE_MS, not_honoured=NO_HEARTBEATS, doc="How long a starting broker tries to register."
    )
    controller_quorum_voters: tuple[str, ...] = setting(
        LIST,
        (),
        importance=Importance.HIGH,
        not_honoured=NO_QUORUM,
        doc="The controllers that vote, as `id@host:port`.",
    )
    controller_quorum_bootstrap_servers: tuple[str, ...] = setting(
        LIST, (), importance=Importance.HIGH, not_honoured=NO_QUORUM, doc="Where to find the controllers."
    )
    controller_quorum_auto_join_enable: bool = setting(
        BOOLEAN,
        False,
        importance=Importance.LOW,
        not_honoured=NO_QUORUM,
        doc="Whether a new controller joins the voters automatically.",
    )
    controller_quorum_election_timeout_ms: int = setting(
        INT,
        1000,
        at_least(0),
        importance=Importance.HIGH,
        not_honoured=NO_QUORUM,
        doc="How long a voter waits before it asks for an election.",
    )
    controller_quorum_election_backoff_max_ms: int = setting(
        INT,
        1000,
        at_least(0),
        importance=Importance.HIGH,
        not_honoured=NO_QUORUM,
        doc="The longest wait before another election.",
    )
    controller_quorum_fetch_timeout_ms: int = setting(
        INT,
        2000,
        at_least(0),
        importance=Importance.HIGH,
        not_honoured=NO_QUORUM,
        doc="How long a voter may be out of touch with the leader.",
    )
    controller_quorum_append_linger_ms: int = setting(
        INT, 25, at_least(0), not_honoured=NO_QUORUM, doc="How long the leader gathers writes before it syncs them."
    )
    controller_quorum_request_timeout_ms: int = setting(
        INT, 2000, at_least(0), not_honoured=NO_QUORUM, doc="How long a voter waits for a response."
    )
    controller_quorum_retry_backoff_ms: int = setting(
        INT,
        20,
        at_least(0),
        importance=Importance.LOW,
        not_honoured=NO_QUORUM,
        doc="How long a voter waits before it asks again.",
    )
    controller_quorum_fetch_max_bytes: int = setting(
        INT,
        1 * MIB,
        at_least(1),
        importance=Importance.LOW,
        not_honoured=NO_QUORUM,
        doc="How many bytes a voter fetches at once.",
    )
    controller_quorum_fetch_snapshot_max_bytes: int = setting(
        INT,
        1 * MIB,
        at_least(1),
        importance=Importance.LOW,
        not_honoured=NO_QUORUM,
        doc="How many bytes of a snapshot a voter fetches at once.",
    )
    metadata_log_segment_bytes: int = setting(
        INT,
        1 * GIB,
        at_least(8 * MIB),
        importance=Importance.HIGH,
        not_honoured=NO_QUORUM,
        doc="The size at which the metadata log is rolled.",
    )
    metadata_log_segment_ms: int = setting(
        LONG,
        7 * DAY_MS,
        importance=Importance.HIGH,
        not_honoured=NO_QUORUM,
        doc="The age at which the metadata log is rolled.",
    )
    metadata_log_max_record_bytes_between_snapshots: int = setting(
        LONG,
        20 * MIB,
        at_least(1),
        importance=Importance.HIGH,
        not_honoured=NO_QUORUM,
        doc="How many bytes of metadata records lie between two snapshots.",
    )
    metadata_log_max_snapshot_interval_ms: int = setting(
        LONG,
        HOUR_MS,
        at_least(0),
        importance=Importance.HIGH,
        not_honoured=NO_QUORUM,
        doc="How much time lies between two snapshots.",
    )
    metadata_max_idle_interval_ms: int = setting(
        INT,
        500,
        at_least(0),
        importance=Importance.LOW,
        not_honoured=NO_QUORUM,
        doc="How often an idle controller writes a record.",
    )
    metadata_max_retention_bytes: int = setting(
        LONG,
        100 * MIB,
        importance=Importance.HIGH,
        not_honoured=NO_QUORUM,
        doc="How many bytes of metadata log and snapshots are kept.",
    )
    metadata_max_retention_ms: int = setting(
        LONG,
        7 * DAY_MS,
        importance=Importance.HIGH,
        not_honoured=NO_QUORUM,
        doc="How long metadata log and snapshots are kept.",
    )
    config_providers: tuple[str, ...] = setting(
        LIST,
        (),
        importance=Importance.LOW,
        scope=Scope.CLUSTER_WIDE,
        not_honoured=NO_PLUGINS,
        doc="Classes that fill in variables in settings.",
    )
