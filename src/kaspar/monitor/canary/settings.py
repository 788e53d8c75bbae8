"""The settings of the canary."""

from kaspar.config.checks import at_least, between
from kaspar.config.declaration import Importance, Settings, setting
from kaspar.config.kinds import BOOLEAN, INT, LONG, STRING


class CanarySettings(Settings):
    canary_enable: bool = setting(
        BOOLEAN,
        False,
        importance=Importance.HIGH,
        doc="Whether records are written to a topic of the canary and read back, to measure what clients get. "
        "`kaspar up` sets it to true.",
    )
    canary_topic: str = setting(
        STRING, "__kaspar_canary", doc="The canary's topic. It is created, extended and rebalanced by the canary."
    )
    canary_interval_ms: int = setting(
        LONG, 1_000, at_least(50), doc="How often a record is written to each partition of the canary's topic."
    )
    canary_late_ms: int = setting(
        LONG,
        5_000,
        at_least(1),
        doc="A record that is read later than that after it was sent is late. A broker that acknowledges nothing for "
        "that long is unavailable.",
    )
    canary_delivery_timeout_ms: int = setting(
        LONG, 10_000, at_least(100), doc="A record that is not acknowledged within that time has failed."
    )
    canary_window_ms: int = setting(
        LONG, 60_000, at_least(1_000), doc="The time that availabilities and latencies are of."
    )
    canary_replication_factor: int = setting(
        INT, 3, between(1, 32_767), doc="The replicas of each partition; in a smaller cluster, as many as brokers."
    )
    canary_retention_ms: int = setting(
        LONG, 600_000, at_least(60_000), doc="How long the topic keeps records. It has effect when it is created."
    )
    canary_rebalance_interval_ms: int = setting(
        LONG,
        30_000,
        at_least(100),
        doc="How often it is checked that each broker leads a partition of the topic.",
    )
    canary_broker_removed_ms: int = setting(
        LONG,
        300_000,
        at_least(0),
        doc="A broker that is not in the cluster for that long is taken as removed: its replicas of the canary's topic "
        "are moved to other brokers.",
    )
