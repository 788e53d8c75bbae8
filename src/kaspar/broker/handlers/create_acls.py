"""CreateAcls: each ACL is created or refused separately. Without an authorizer all are refused."""

from kaspar.acls.acl import CLUSTER_NAME, Acl, AclOperation, AclPermissionType, PatternType, ResourceType
from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.handlers import no_authorizer
from kaspar.broker.handlers.acls import NO_MESSAGE, acl_of
from kaspar.controller.channel import ControllerChannel
from kaspar.controller.events import CreateAcls
from kaspar.network.api import HandlerResult, RequestContext
from kaspar.protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse


class CreateAclsHandler:
    def __init__(self, controller: ControllerChannel) -> None:
        self._controller = controller

    def __call__(self, context: RequestContext, request: CreateAclsRequest) -> HandlerResult:
        return self._create(tuple(map(acl_of, request.creations)))

    async def _create(self, acls: tuple[Acl, ...]) -> CreateAclsResponse:
        if any(map(_is_a_filter, acls)):  # Kafka fails, because it cannot create an ACL of it
            return refuse_all(len(acls), ErrorCode.UNKNOWN_SERVER_ERROR, None)
        problems = [_problem_of(acl) for acl in acls]
        valid = tuple(acl for acl, problem in zip(acls, problems, strict=True) if problem is None)
        try:
            outcomes = await self._controller.submit(CreateAcls(valid)) if valid else ()
        except Refused as refusal:  # there is no controller now, or the metadata store is full
            return refuse_all(len(acls), refusal.code, refusal.message)
        rest = iter(outcomes)
        results = []
        for problem in problems:
            if problem is not None:
                results.append(AclCreationResult(error_code=ErrorCode.INVALID_REQUEST, error_message=problem))
            else:
                outcome = next(rest)
                results.append(AclCreationResult(error_code=outcome.error, error_message=outcome.message or NO_MESSAGE))
        return CreateAclsResponse(results=tuple(results))


def _is_a_filter(acl: Acl) -> bool:
    return (
        acl.resource_type is ResourceType.ANY
        or acl.pattern_type in (PatternType.ANY, PatternType.MATCH)
        or acl.operation is AclOperation.ANY
        or acl.permission_type is AclPermissionType.ANY
    )


def _problem_of(acl: Acl) -> str | None:
    if acl.resource_type is ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    return None if acl.resource_name else "Invalid empty resource name"


def refuse_all(count: int, code: ErrorCode, message: str | None) -> CreateAclsResponse:
    return CreateAclsResponse(results=(AclCreationResult(error_code=code, error_message=message),) * count)


def handle(context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
    """Handle a request without an authorizer."""
    return refuse_all(len(request.creations), no_authorizer.CODE, no_authorizer.MESSAGE)
