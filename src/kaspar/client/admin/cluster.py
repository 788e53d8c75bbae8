"""Describes the cluster, with its id and nodes, and unregisters brokers (KIP-700, KIP-919)."""

from dataclasses import dataclass

from kaspar.client.admin.session import BROKER_ENDPOINTS, CONTROLLER_ENDPOINTS, Admin, refuse
from kaspar.client.core import UnsupportedByPeer
from kaspar.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kaspar.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


@dataclass(frozen=True, slots=True)
class ClusterNode:
    node_id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    cluster_id: str
    controller_id: int
    """-1 if there is none."""
    nodes: tuple[ClusterNode, ...]
    """Sorted by id."""


def describe_cluster(admin: Admin, *, include_fenced_brokers: bool = False) -> ClusterDescription:
    """Describe the cluster with the brokers that are up, or with all registered brokers. In a session with controllers,
    the nodes are the controllers.
    """
    request = DescribeClusterRequest(
        include_cluster_authorized_operations=False,
        endpoint_type=CONTROLLER_ENDPOINTS if admin.via_controllers else BROKER_ENDPOINTS,
        include_fenced_brokers=include_fenced_brokers,
    )
    response = admin.ask_any("listNodes", request, DescribeClusterResponse, at_controllers=True)
    refuse(response.error_code, response.error_message)
    nodes = (ClusterNode(each.broker_id, each.host, each.port, each.rack, each.is_fenced) for each in response.brokers)
    return ClusterDescription(
        response.cluster_id, response.controller_id, tuple(sorted(nodes, key=lambda each: each.node_id))
    )


def describe_with_fenced(admin: Admin) -> ClusterDescription:
    """Describe the cluster, including fenced brokers if the cluster reports them (KIP-1073)."""
    try:
        return describe_cluster(admin, include_fenced_brokers=True)
    except UnsupportedByPeer:
        return describe_cluster(admin)


def unregister_broker(admin: Admin, broker_id: int) -> None:
    """Unregister a broker that will not come back. Raises Refused, or UnsupportedByPeer."""
    response = admin.ask_controller(
        "unregisterBroker", UnregisterBrokerRequest(broker_id=broker_id), UnregisterBrokerResponse
    )
    refuse(response.error_code, response.error_message)


def broker_ids(admin: Admin, call: str) -> list[int]:
    """The ids of the brokers that are up, for a call that is sent to each of them. Raises Refused."""
    response = admin.retry(call, lambda: admin.client.refresh_metadata([]))
    return sorted(each.node_id for each in response.brokers)
