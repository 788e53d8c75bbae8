"""CreateAcls: refused one by one, for there is no authorizer to keep them."""

from typing import TYPE_CHECKING

from kaspar.broker.handlers import RequestContext, no_authorizer
from kaspar.protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse

if TYPE_CHECKING:
    from kaspar.broker.server import Broker


def handle(broker: "Broker", context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
    refused = AclCreationResult(error_code=no_authorizer.CODE, error_message=no_authorizer.MESSAGE)
    return CreateAclsResponse(results=(refused,) * len(request.creations))
