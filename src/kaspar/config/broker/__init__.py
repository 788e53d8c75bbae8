"""The settings of a broker, by Kafka's names: one section per module, one table of them all.

`BrokerConfig.of` turns texts into typed values and refuses what cannot work, with a sentence. Names it does not know
are left alone: whoever reads them from a file warns (`kaspar.config.files`).
"""

from collections.abc import Mapping
from typing import Any, Self

from kaspar.base.errors import InvalidSetting
from kaspar.config.broker.cluster import ClusterSettings
from kaspar.config.broker.groups import GroupSettings
from kaspar.config.broker.listeners import ListenerSettings
from kaspar.config.broker.logs import LogSettings
from kaspar.config.broker.own import OwnSettings
from kaspar.config.broker.quotas import QuotaAndMetricSettings
from kaspar.config.broker.security import SecuritySettings
from kaspar.config.broker.share_groups import ShareGroupSettings
from kaspar.config.broker.streams_groups import StreamsGroupSettings
from kaspar.config.broker.tiers import TierSettings
from kaspar.config.broker.transactions import TransactionSettings
from kaspar.config.declaration import parse_values
from kaspar.config.endpoints import (
    Endpoint,
    advertised_endpoints,
    connection_limits,
    host_and_port,
    listening_endpoints,
)
from kaspar.config.topic import MIB

__all__ = ["BrokerConfig"]


class BrokerConfig(
    ClusterSettings,
    ListenerSettings,
    LogSettings,
    GroupSettings,
    ShareGroupSettings,
    StreamsGroupSettings,
    TransactionSettings,
    SecuritySettings,
    TierSettings,
    QuotaAndMetricSettings,
    OwnSettings,
):
    """Every setting of one broker, typed. `log_dirs` and `node_id` hold what counts, whichever name was used."""

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Self:
        parsed = parse_values(cls.declared, values)
        _settle_node_id(parsed)
        _settle_log_dirs(parsed)
        config = cls(**parsed)
        _check_together(config)
        return config

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """Where the broker listens. Listeners meant for controllers are not among them."""
        return listening_endpoints(self.listeners, self.listener_security_protocol_map, self.controller_listener_names)

    @property
    def advertised_endpoints(self) -> tuple[Endpoint, ...]:
        """What clients are told. An empty host or port 0 is filled in by the broker once it listens."""
        return advertised_endpoints(self.endpoints, self.advertised_listeners)

    @property
    def max_connections_by_address(self) -> dict[str, int]:
        """`max.connections.per.ip.overrides`, read."""
        return connection_limits(self.max_connections_per_ip_overrides)

    @property
    def metrics_address(self) -> tuple[str, int] | None:
        """`kaspar.metrics.listener`, read; None when it is off."""
        return host_and_port("kaspar.metrics.listener", self.kaspar_metrics_listener)


def _settle_node_id(parsed: dict[str, Any]) -> None:
    node_id, broker_id = parsed.get("node_id"), parsed.get("broker_id")
    if broker_id is not None and broker_id < 0:
        broker_id = None
    if node_id is not None and broker_id is not None and node_id != broker_id:
        raise InvalidSetting(
            f"node.id is {node_id} and broker.id is {broker_id}: they are two names of one thing and must agree"
        )
    settled = node_id if node_id is not None else broker_id
    if settled is not None:
        parsed["node_id"] = parsed["broker_id"] = settled


def _settle_log_dirs(parsed: dict[str, Any]) -> None:
    name = "log.dirs" if parsed.get("log_dirs") else "log.dir"
    folders = parsed.get("log_dirs") or parsed.get("log_dir") or LogSettings.declared["log.dir"].default
    if "" in folders:
        raise InvalidSetting(f"{name} has an empty folder name in it")
    if len(set(folders)) < len(folders):
        raise InvalidSetting(f"{name} names a folder twice")
    parsed["log_dirs"] = folders


def _check_together(config: BrokerConfig) -> None:
    """What no single setting can tell is wrong."""
    if "broker" not in config.process_roles:
        raise InvalidSetting("process.roles must contain broker: a Kaspar process is broker and controller in one")
    for name, lowest in (("log.roll.ms", 1), ("log.roll.jitter.ms", 0)):
        value = getattr(config, name.replace(".", "_"))
        if value is not None and value < lowest:
            raise InvalidSetting(f"{name} must be greater than or equal to {lowest}")
    for name in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
        if getattr(config, name.replace(".", "_")) == 0:
            raise InvalidSetting(f"{name} must be unlimited (-1) or, greater than or equal to 1")
    if config.log_cleaner_dedupe_buffer_size // max(1, config.log_cleaner_threads) <= MIB:
        raise InvalidSetting("log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.")
    if not config.endpoints:
        raise InvalidSetting("listeners names no listener for clients: all are in controller.listener.names")
    _ = config.advertised_endpoints, config.max_connections_by_address, config.metrics_address
