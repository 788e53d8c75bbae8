"""DeleteAcls: refused filter by filter, for there is no authorizer to keep any."""

from typing import TYPE_CHECKING

from kaspar.broker.handlers import RequestContext, no_authorizer
from kaspar.protocol.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse

if TYPE_CHECKING:
    from kaspar.broker.server import Broker


def handle(broker: "Broker", context: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
    refused = DeleteAclsFilterResult(
        error_code=no_authorizer.CODE, error_message=no_authorizer.MESSAGE, matching_acls=()
    )
    return DeleteAclsResponse(filter_results=(refused,) * len(request.filters))
