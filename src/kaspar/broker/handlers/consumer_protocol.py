"""Whether the consumer protocol of KIP-848 is served: the cluster's feature and the broker's setting say so."""

from typing import TYPE_CHECKING

from kaspar.groups.group import GroupKind

if TYPE_CHECKING:
    from kaspar.broker.server import Broker


def consumer_protocol_is_served(broker: "Broker") -> bool:
    return (
        broker.image.group_version > 0
        and GroupKind.CONSUMER.value in broker.config.group_coordinator_rebalance_protocols
    )
