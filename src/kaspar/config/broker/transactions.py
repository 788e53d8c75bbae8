"""Transactions."""

from kaspar.config.checks import at_least
from kaspar.config.declaration import Importance, Scope, Settings, setting
from kaspar.config.kinds import BOOLEAN, INT, SHORT
from kaspar.config.units import DAY_MS, HOUR_MS, MIB, MINUTE_MS


class TransactionSettings(Settings):
    transaction_max_timeout_ms: int = setting(
        INT,
        15 * MINUTE_MS,
        at_least(1),
        importance=Importance.HIGH,
        doc="The longest timeout a transaction may ask for.",
    )
    transactional_id_expiration_ms: int = setting(
        INT, 7 * DAY_MS, at_least(1), importance=Importance.HIGH, doc="How long an idle transactional id is remembered."
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = setting(
        INT,
        10_000,
        at_least(1),
        importance=Importance.LOW,
        doc="How often the broker checks for transactions past their timeout.",
        not_honoured="Each transaction has its own timer, and is aborted when its timeout expires.",
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = setting(
        INT, HOUR_MS, at_least(1), importance=Importance.LOW, doc="How often expired transactional ids are removed."
    )
    transaction_partition_verification_enable: bool = setting(
        BOOLEAN,
        True,
        importance=Importance.LOW,
        scope=Scope.CLUSTER_WIDE,
        doc="Whether a leader checks with the coordinator that a partition belongs to the transaction.",
    )
    transaction_two_phase_commit_enable: bool = setting(
        BOOLEAN,
        True,
        importance=Importance.LOW,
        doc="Whether transactions without a timeout, which wait for their owner's decision, are allowed (KIP-939): "
        "exactly once from Spark needs them. Kafka's default is false. Any client that may write can leave one open, "
        "which holds up `read_committed` readers of its partitions for up to `kaspar.transaction.prepared.max.age.ms`: "
        "set it to false where clients are not trusted with that.",
    )
    transaction_state_log_load_buffer_size: int = setting(
        INT,
        5 * MIB,
        at_least(1),
        importance=Importance.HIGH,
        doc="How many bytes are read at once when transaction state is loaded.",
    )
    transaction_state_log_min_isr: int = setting(
        INT, 2, at_least(1), importance=Importance.HIGH, doc="The `min.insync.replicas` of the transaction state topic."
    )
    transaction_state_log_num_partitions: int = setting(
        INT, 50, at_least(1), importance=Importance.HIGH, doc="How many partitions the transaction state topic has."
    )
    transaction_state_log_replication_factor: int = setting(
        SHORT, 3, at_least(1), importance=Importance.HIGH, doc="How many replicas the transaction state topic has."
    )
    transaction_state_log_segment_bytes: int = setting(
        INT, 100 * MIB, at_least(1), importance=Importance.HIGH, doc="The segment size of the transaction state topic."
    )
    add_partitions_to_txn_retry_backoff_ms: int = setting(
        INT,
        20,
        at_least(1),
        importance=Importance.HIGH,
        doc="How long the broker waits before it retries adding a partition to a transaction.",
    )
    add_partitions_to_txn_retry_backoff_max_ms: int = setting(
        INT,
        100,
        at_least(0),
        importance=Importance.HIGH,
        doc="How long a batch waits for the previous transaction of its producer to complete, at most. After that the "
        "client gets a retriable error.",
    )
