"""The ZooKeeper ensemble of a cluster, with the names, types and defaults of Kafka 3.9."""

from kaspar.config.checks import at_least
from kaspar.config.declaration import Importance, Settings, setting
from kaspar.config.kinds import BOOLEAN, INT, STRING


class ZooKeeperSettings(Settings):
    zookeeper_connect: str | None = setting(
        STRING,
        None,
        importance=Importance.HIGH,
        doc="The ensemble that keeps the cluster's metadata, as `host1:port1,host2:port2/chroot`. The path at the end "
        "is optional, and created if it is missing. Without this setting the broker is a cluster of its own, and keeps "
        "its metadata in a file.",
    )
    zookeeper_session_timeout_ms: int = setting(
        INT,
        18_000,
        at_least(1),
        importance=Importance.HIGH,
        doc="How long ZooKeeper waits for a sign of life before it declares a broker dead. The ensemble grants between "
        "2 and 20 of its ticks (`tickTime`, 2 s by default).",
    )
    zookeeper_connection_timeout_ms: int | None = setting(
        INT,
        None,
        at_least(1),
        importance=Importance.HIGH,
        doc="How long a start waits for ZooKeeper. By default as long as `zookeeper.session.timeout.ms`.",
    )
    zookeeper_max_in_flight_requests: int = setting(
        INT,
        10,
        at_least(1),
        importance=Importance.HIGH,
        doc="How many requests a broker sends to ZooKeeper before it waits for a response; never more than 100.",
    )
    zookeeper_set_acl: bool = setting(
        BOOLEAN,
        False,
        importance=Importance.HIGH,
        doc="Whether only the broker's own user of ZooKeeper may change what it creates there. Brokers cannot log in "
        "to ZooKeeper yet, so `true` stops the start.",
    )
