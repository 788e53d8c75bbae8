"""The settings of the canary."""

from kaspar.config.checks import at_least, between
from kaspar.config.declaration import Importance, Settings, setting
from kaspar.config.kinds import BOOLEAN, INT, LONG, STRING


class CanarySettings(Settings):
    canary_enable: bool = setting(
        BOOLEAN,
        False,
        importance=Importance.HIGH,
        doc="Whether the canary writes records to its own topic and reads them back, to measure the service that "
        "clients get. `kaspar up` sets it to true.",
    )
    canary_topic: str = setting(
        STRING, "__kaspar_canary", doc="The canary's topic. The canary creates, extends and rebalances it."
    )
    canary_interval_ms: int = setting(
        LONG, 1_000, at_least(50), doc="How often a record is written to each partition of the canary's topic."
    )
    canary_late_ms: int = setting(
        LONG,
        5_000,
        at_least(1),
        doc="A record that is read later than this after it was sent is late. A broker that acknowledges nothing "
        "for this long is unavailable.",
    )
    canary_delivery_timeout_ms: int = setting(
        LONG, 10_000, at_least(100), doc="A record that is not acknowledged within this time has failed."
    )
    canary_window_ms: int = setting(
        LONG, 60_000, at_least(1_000), doc="The time window over which availability and latency are computed."
    )
    canary_replication_factor: int = setting(
        INT,
        3,
        between(1, 32_767),
        doc="The number of replicas of each partition; in a smaller cluster, the number of brokers.",
    )
    canary_retention_ms: int = setting(
        LONG, 600_000, at_least(60_000), doc="The retention of the topic. Takes effect when the topic is created."
    )
    canary_rebalance_interval_ms: int = setting(
        LONG,
        30_000,
        at_least(100),
        doc="How often to check that each broker leads a partition of the topic.",
    )
    canary_broker_removed_ms: int = setting(
        LONG,
        300_000,
        at_least(0),
        doc="A broker that has been absent from the cluster for this long counts as removed: its replicas of the "
        "canary's topic are moved to other brokers.",
    )
