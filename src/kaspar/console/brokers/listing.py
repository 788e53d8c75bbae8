"""The brokers of the cluster: from its metadata, with figures of the monitor's last rounds."""

from dataclasses import dataclass
from typing import Final

from kaspar.client.admin.cluster import ClusterDescription, ClusterNode
from kaspar.monitor.scraping.rates import Rates
from kaspar.monitor.views import ClusterSnapshot

_RATES: Final = ("bytes_in", "bytes_out", "messages_in", "requests", "connections", "cpu", "memory_bytes")


@dataclass(frozen=True, slots=True)
class BrokerRow:
    broker_id: int
    host: str
    port: int
    rack: str | None
    is_up: bool
    is_controller: bool
    leaders: int | None
    """The number of partitions that it leads. Like the other counts, None until the monitor has seen it."""
    replicas: int | None
    in_sync_replicas: int | None
    rates: dict[str, float]
    """The newest values from its metrics page, if there is one."""


def broker_rows(cluster: ClusterDescription, seen: ClusterSnapshot | None, rates: Rates | None) -> list[BrokerRow]:
    """A row for each broker. `seen` is the monitor's data; it and `rates` are None if the caller may not see them."""
    return [_row(node, cluster.controller_id, seen, rates) for node in cluster.nodes]


def _row(node: ClusterNode, controller_id: int, seen: ClusterSnapshot | None, rates: Rates | None) -> BrokerRow:
    known = next((each for each in seen.brokers if each.broker_id == node.node_id), None) if seen else None
    newest = {} if rates is None else {name: rates.latest(name, node.node_id) for name in _RATES}
    return BrokerRow(
        node.node_id,
        node.host,
        node.port,
        node.rack,
        not node.is_fenced,
        node.node_id == controller_id,
        None if known is None else known.leaders,
        None if known is None else known.replicas,
        None if known is None else known.in_sync_replicas,
        {name: value for name, value in newest.items() if value is not None and not node.is_fenced},
    )
