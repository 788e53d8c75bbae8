"""DescribeCluster: who the cluster is and which brokers it has."""

from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode
from kaspar.broker.handlers import RequestContext
from kaspar.broker.handlers.metadata import ALL_CLUSTER_OPERATIONS, NOT_ASKED
from kaspar.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

BROKERS: Final = 1
CONTROLLERS: Final = 2


def handle(broker: "Broker", context: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    image = broker.image
    if request.endpoint_type != BROKERS:
        code = (
            ErrorCode.MISMATCHED_ENDPOINT_TYPE
            if request.endpoint_type == CONTROLLERS
            else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        )
        message = (
            f"The request was sent to an endpoint of type BROKER, and it wants one of type {request.endpoint_type}"
        )
        return DescribeClusterResponse(error_code=code, error_message=message, cluster_id="", brokers=())
    return DescribeClusterResponse(
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        brokers=tuple(
            DescribeClusterBroker(
                broker_id=registered.broker_id, host=endpoint.host, port=endpoint.port, rack=registered.rack
            )
            for registered, endpoint in broker.endpoints_for(context.listener)
        ),
        cluster_authorized_operations=(
            ALL_CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )
