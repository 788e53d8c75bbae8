"""DescribeAcls: without an authorizer there are no ACLs, and Kafka says so with an error."""

from typing import TYPE_CHECKING

from kaspar.broker.handlers import RequestContext, no_authorizer
from kaspar.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

if TYPE_CHECKING:
    from kaspar.broker.server import Broker


def handle(broker: "Broker", context: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=no_authorizer.CODE, error_message=no_authorizer.MESSAGE, resources=())
