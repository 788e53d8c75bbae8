"""/v3/clusters and their brokers. There is one cluster, that of `bootstrap.servers`."""

from typing import Final

from kaspar.client.admin.cluster import ClusterDescription, ClusterNode, describe_cluster
from kaspar.client.admin.session import Admin
from kaspar.rest.v3.endpoint import Call, Endpoint
from kaspar.rest.v3.errors import missing
from kaspar.rest.v3.names import ResourceNames
from kaspar.rest.v3.resources import ListMetadata, Relationship, Resource, ResourceList

CLUSTER: Final = "/v3/clusters/{cluster_id}"
BROKER: Final = f"{CLUSTER}/brokers/{{broker_id}}"
_CLUSTERS: Final = "Cluster"
_BROKERS: Final = "Broker"


class ClusterData(Resource, kw_only=True):
    kind: str = "KafkaCluster"
    cluster_id: str
    controller: Relationship | None
    """Null while there is no controller."""
    acls: Relationship
    brokers: Relationship
    broker_configs: Relationship
    consumer_groups: Relationship
    topics: Relationship
    partition_reassignments: Relationship


class ClusterDataList(ResourceList, kw_only=True):
    kind: str = "KafkaClusterList"
    data: list[ClusterData]


class BrokerData(Resource, kw_only=True):
    kind: str = "KafkaBroker"
    cluster_id: str
    broker_id: int
    host: str | None
    port: int | None
    rack: str | None
    configs: Relationship
    partition_replicas: Relationship


class BrokerDataList(ResourceList, kw_only=True):
    kind: str = "KafkaBrokerList"
    data: list[BrokerData]


async def _list_clusters(call: Call) -> ClusterDataList:
    cluster = await call.context.administration.call(call.identity, describe_cluster)
    names = call.names(cluster.cluster_id)
    return ClusterDataList(metadata=ListMetadata(f"{names.base_url}/v3/clusters"), data=[_cluster(names, cluster)])


async def _get_cluster(call: Call) -> ClusterData:
    names = call.names()
    return await call.ask_cluster(lambda admin, cluster: _cluster(names, cluster))


def _cluster(names: ResourceNames, cluster: ClusterDescription) -> ClusterData:
    has_controller = cluster.controller_id >= 0
    return ClusterData(
        metadata=names.one(),
        cluster_id=cluster.cluster_id,
        controller=names.related("brokers", cluster.controller_id) if has_controller else None,
        acls=names.related("acls"),
        brokers=names.related("brokers"),
        broker_configs=names.related("broker-configs"),
        consumer_groups=names.related("consumer-groups"),
        topics=names.related("topics"),
        partition_reassignments=names.related("topics", "-", "partitions", "-", "reassignment"),
    )


async def _list_brokers(call: Call) -> BrokerDataList:
    names = call.names()

    def ask(admin: Admin, cluster: ClusterDescription) -> BrokerDataList:
        return BrokerDataList(metadata=names.many("brokers"), data=[_broker(names, node) for node in cluster.nodes])

    return await call.ask_cluster(ask)


async def _get_broker(call: Call) -> BrokerData:
    names, broker_id = call.names(), call.number("broker_id")

    def ask(admin: Admin, cluster: ClusterDescription) -> BrokerData:
        for node in cluster.nodes:
            if node.node_id == broker_id:
                return _broker(names, node)
        raise missing()

    return await call.ask_cluster(ask)


def _broker(names: ResourceNames, node: ClusterNode) -> BrokerData:
    return BrokerData(
        metadata=names.one("brokers", node.node_id, crn=(("broker", node.node_id),)),
        cluster_id=names.cluster_id,
        broker_id=node.node_id,
        host=node.host,
        port=node.port,
        rack=node.rack,
        configs=names.related("brokers", node.node_id, "configs"),
        partition_replicas=names.related("brokers", node.node_id, "partition-replicas"),
    )


def check_broker(cluster: ClusterDescription, broker_id: int) -> None:
    """Raises RestError for an unknown broker: a request that only this broker can handle would wait for it to start."""
    if all(node.node_id != broker_id for node in cluster.nodes):
        raise missing(f"Broker {broker_id} cannot be found.")


ENDPOINTS: Final = (
    Endpoint("GET", "/v3/clusters", _list_clusters, "List the clusters", _CLUSTERS, ClusterDataList),
    Endpoint("GET", CLUSTER, _get_cluster, "Get a cluster", _CLUSTERS, ClusterData),
    Endpoint("GET", f"{CLUSTER}/brokers", _list_brokers, "List the brokers", _BROKERS, BrokerDataList),
    Endpoint("GET", BROKER, _get_broker, "Get a broker", _BROKERS, BrokerData),
)
