"""The table of all settings of a broker, collected from the sections, and what they have to satisfy together.

`BrokerConfig.of` parses texts into typed values and raises InvalidSetting with a sentence. Unknown names are ignored:
`kaspar.config.files` warns about them.
"""

from collections.abc import Mapping
from typing import Any, Self

from kaspar.base.errors import InvalidSetting
from kaspar.config.broker.authorization import AuthorizationSettings
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
from kaspar.config.broker.zookeeper import NIO_SOCKET, ZooKeeperSettings
from kaspar.config.declaration import parse_values
from kaspar.config.endpoints import (
    Endpoint,
    advertised_endpoints,
    connection_limits,
    host_and_port,
    listening_endpoints,
)
from kaspar.config.units import MIB

_LOOPBACK = "127.0.0.1"


class BrokerConfig(
    ClusterSettings,
    ListenerSettings,
    LogSettings,
    GroupSettings,
    ShareGroupSettings,
    StreamsGroupSettings,
    TransactionSettings,
    AuthorizationSettings,
    SecuritySettings,
    TierSettings,
    QuotaAndMetricSettings,
    ZooKeeperSettings,
    OwnSettings,
):
    """Every setting of one broker, typed. `log_dirs` and `node_id` are set whichever of their names was used."""

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Self:
        parsed = parse_values(cls.declared, values)
        _settle_node_id(parsed)
        _settle_log_dirs(parsed)
        if "inter_broker_listener_name" in parsed and "security_inter_broker_protocol" in parsed:
            raise InvalidSetting(
                "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set."
            )
        config = cls(**parsed)
        _check_together(config)
        return config

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The addresses on which the broker listens, without controller.listener.names."""
        return listening_endpoints(self.listeners, self.listener_security_protocol_map, self.controller_listener_names)

    @property
    def advertised_endpoints(self) -> tuple[Endpoint, ...]:
        """The addresses in Metadata responses. The broker fills in an empty host or port 0 once it listens."""
        return advertised_endpoints(self.endpoints, self.advertised_listeners)

    @property
    def max_connections_by_address(self) -> dict[str, int]:
        """`max.connections.per.ip.overrides`, parsed."""
        return connection_limits(self.max_connections_per_ip_overrides)

    @property
    def metrics_address(self) -> tuple[str, int] | None:
        """`kaspar.metrics.listener`, parsed; None if it is off."""
        address = host_and_port("kaspar.metrics.listener", self.kaspar_metrics_listener)
        return None if address is None else (address[0] or _LOOPBACK, address[1])


def _settle_node_id(parsed: dict[str, Any]) -> None:
    node_id, broker_id = parsed.get("node_id"), parsed.get("broker_id")
    if broker_id is not None and broker_id < 0:
        broker_id = None
    if node_id is not None and broker_id is not None and node_id != broker_id:
        raise InvalidSetting(
            f"node.id is {node_id} and broker.id is {broker_id}: they are two names of one setting and must be equal"
        )
    settled = node_id if node_id is not None else broker_id
    if settled is not None:
        parsed["node_id"] = parsed["broker_id"] = settled


def _settle_log_dirs(parsed: dict[str, Any]) -> None:
    name = "log.dirs" if parsed.get("log_dirs") else "log.dir"
    folders = parsed.get("log_dirs") or parsed.get("log_dir") or LogSettings.declared["log.dir"].default
    if "" in folders:
        raise InvalidSetting(f"{name} contains an empty directory name")
    if len(set(folders)) < len(folders):
        raise InvalidSetting(f"{name} contains a directory twice")
    parsed["log_dirs"] = folders


def _check_together(config: BrokerConfig) -> None:
    """Check rules that concern several settings."""
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
    _check_zookeeper(config)
    if config.kaspar_http_authentication != "none" and not config.kaspar_http_credentials_file:
        raise InvalidSetting(
            f"kaspar.http.authentication={config.kaspar_http_authentication} requires kaspar.http.credentials.file"
        )
    if not config.endpoints:
        raise InvalidSetting("listeners has no listener for clients: all are in controller.listener.names")
    _check_between_brokers(config)
    _ = config.advertised_endpoints, config.max_connections_by_address, config.metrics_address


def _check_zookeeper(config: BrokerConfig) -> None:
    for name, is_on in (
        ("zookeeper.ssl.crl.enable", config.zookeeper_ssl_crl_enable),
        ("zookeeper.ssl.ocsp.enable", config.zookeeper_ssl_ocsp_enable),
    ):
        if is_on:
            raise InvalidSetting(f"{name}=true is not supported: whether a certificate was revoked cannot be checked")
    if config.zookeeper_ssl_client_enable and config.zookeeper_clientCnxnSocket == NIO_SOCKET:
        raise InvalidSetting(
            f"zookeeper.clientCnxnSocket is {NIO_SOCKET}, which has no TLS, and zookeeper.ssl.client.enable is true: "
            "remove one of them"
        )


def _check_between_brokers(config: BrokerConfig) -> None:
    """Check that the broker has the listener that other brokers use. A broker without a cluster needs none."""
    name, protocol = config.inter_broker_listener_name, config.security_inter_broker_protocol
    endpoints = config.advertised_endpoints
    names = [endpoint.listener for endpoint in endpoints]
    if name is not None:
        if name.upper() not in names:
            raise InvalidSetting(
                "inter.broker.listener.name must be a listener name defined in advertised.listeners. The valid options "
                f"based on currently configured listeners are {','.join(names)}"
            )
    elif config.zookeeper_connect is not None and all(each.security_protocol != protocol for each in endpoints):
        raise InvalidSetting(
            f"no listener speaks {protocol}, which brokers use among themselves: set inter.broker.listener.name or "
            "security.inter.broker.protocol"
        )
