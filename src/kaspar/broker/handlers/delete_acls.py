"""DeleteAcls: deletes the ACLs that each filter matches. Without an authorizer every filter is refused."""

from kaspar.acls.acl import Acl, AclFilter
from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.handlers import no_authorizer
from kaspar.broker.handlers.acls import filter_of
from kaspar.controller.channel import ControllerChannel
from kaspar.controller.events import DeleteAcls
from kaspar.network.api import HandlerResult, RequestContext
from kaspar.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


class DeleteAclsHandler:
    def __init__(self, controller: ControllerChannel) -> None:
        self._controller = controller

    def __call__(self, context: RequestContext, request: DeleteAclsRequest) -> HandlerResult:
        return self._delete(tuple(map(filter_of, request.filters)))

    async def _delete(self, filters: tuple[AclFilter, ...]) -> DeleteAclsResponse:
        try:
            deleted = await self._controller.submit(DeleteAcls(filters))
        except Refused as refusal:  # too many at once, or no controller now, or the metadata store is full
            return _refuse_all(len(filters), refusal.code, refusal.message)
        return DeleteAclsResponse(
            filter_results=tuple(
                DeleteAclsFilterResult(
                    error_code=each.outcome.error,
                    error_message=each.outcome.message,
                    matching_acls=tuple(map(_to_wire, each.acls)),
                )
                for each in deleted
            )
        )


def _to_wire(acl: Acl) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )


def _refuse_all(count: int, code: ErrorCode, message: str | None) -> DeleteAclsResponse:
    refused = DeleteAclsFilterResult(error_code=code, error_message=message, matching_acls=())
    return DeleteAclsResponse(filter_results=(refused,) * count)


def handle(context: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
    """Handle a request without an authorizer."""
    return _refuse_all(len(request.filters), no_authorizer.CODE, no_authorizer.MESSAGE)
