"""DescribeCluster: the cluster's id, its controller and its brokers."""

from typing import Final

from kaspar.base.errors import ErrorCode
from kaspar.broker.handlers.authorized_operations import NOT_ASKED, AuthorizedOperations
from kaspar.metadata.images import ImageSource
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS: Final = 1
CONTROLLERS: Final = 2


class DescribeClusterHandler:
    def __init__(self, images: ImageSource, operations: AuthorizedOperations) -> None:
        self._images = images
        self._operations = operations

    def __call__(self, context: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
        image = self._images.current
        if request.endpoint_type != BROKERS:
            code = (
                ErrorCode.MISMATCHED_ENDPOINT_TYPE
                if request.endpoint_type == CONTROLLERS
                else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
            )
            message = (
                f"The request was sent to an endpoint of type BROKER, but requires one of type {request.endpoint_type}"
            )
            return DescribeClusterResponse(error_code=code, error_message=message, cluster_id="", brokers=())
        return DescribeClusterResponse(
            cluster_id=image.cluster_id,
            controller_id=image.controller_id,
            brokers=tuple(
                DescribeClusterBroker(
                    broker_id=registered.broker_id, host=endpoint.host, port=endpoint.port, rack=registered.rack
                )
                for registered, endpoint in image.endpoints_for(context.listener)
            ),
            cluster_authorized_operations=(
                self._operations.of_cluster(context) if request.include_cluster_authorized_operations else NOT_ASKED
            ),
        )
