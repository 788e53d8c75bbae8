"""Lists, creates and deletes ACLs (KIP-140, KIP-290)."""

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import TypeVar

from kaspar.acls.acl import Acl, AclFilter, AclOperation, AclPermissionType, PatternType, ResourceType
from kaspar.base.errors import Refused
from kaspar.client.admin.session import Admin, common_code, refusal, refuse
from kaspar.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from kaspar.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from kaspar.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

_Code = TypeVar("_Code", bound=IntEnum)


def describe_acls(admin: Admin, wanted: AclFilter | None = None) -> list[Acl]:
    """The ACLs that match the filter, or all. Raises Refused."""
    wanted = wanted or AclFilter()
    response = admin.ask_any(
        "describeAcls",
        DescribeAclsRequest(
            resource_type_filter=wanted.resource_type,
            resource_name_filter=wanted.resource_name,
            pattern_type_filter=wanted.pattern_type,
            principal_filter=wanted.principal,
            host_filter=wanted.host,
            operation=wanted.operation,
            permission_type=wanted.permission_type,
        ),
        DescribeAclsResponse,
        at_controllers=True,
    )
    refuse(response.error_code, response.error_message)
    return [_acl(resource, entry) for resource in response.resources for entry in resource.acls]


def create_acls(admin: Admin, acls: Sequence[Acl]) -> dict[Acl, Refused | None]:
    """Create ACLs. Returns for each why it was not created, or None. Creating an ACL that exists is not an error."""
    if not acls:
        return {}
    creations = tuple(
        AclCreation(
            resource_type=acl.resource_type,
            resource_name=acl.resource_name,
            resource_pattern_type=acl.pattern_type,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission_type,
        )
        for acl in acls
    )
    response = admin.ask_any(
        "createAcls",
        CreateAclsRequest(creations=creations),
        CreateAclsResponse,
        code_of=lambda response: common_code(each.error_code for each in response.results),
        at_controllers=True,
    )
    results = [refusal(each.error_code, each.error_message) for each in response.results]
    return dict(zip(acls, results, strict=True))


def delete_acls(admin: Admin, filters: Sequence[AclFilter]) -> list[list[Acl] | Refused]:
    """Delete ACLs. Returns for each filter the ACLs that matched it and were deleted, or why they were not."""
    if not filters:
        return []
    response = admin.ask_any(
        "deleteAcls",
        DeleteAclsRequest(filters=tuple(map(_deletion, filters))),
        DeleteAclsResponse,
        code_of=lambda response: common_code(each.error_code for each in response.filter_results),
        at_controllers=True,
    )
    deleted: list[list[Acl] | Refused] = []
    for result in response.filter_results:
        problem = refusal(result.error_code, result.error_message)
        for each in result.matching_acls:
            problem = problem or refusal(each.error_code, each.error_message)
        deleted.append(problem or [_acl(each, each) for each in result.matching_acls])
    return deleted


def _deletion(wanted: AclFilter) -> DeleteAclsFilter:
    return DeleteAclsFilter(
        resource_type_filter=wanted.resource_type,
        resource_name_filter=wanted.resource_name,
        pattern_type_filter=wanted.pattern_type,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission_type,
    )


def _acl(resource: DescribeAclsResource | DeleteAclsMatchingAcl, entry: AclDescription | DeleteAclsMatchingAcl) -> Acl:
    return Acl(
        _known(ResourceType, resource.resource_type),
        resource.resource_name,
        _known(PatternType, resource.pattern_type),
        entry.principal,
        entry.host,
        _known(AclOperation, entry.operation),
        _known(AclPermissionType, entry.permission_type),
    )


def _known(codes: Callable[[int], _Code], code: int) -> _Code:
    try:
        return codes(code)
    except ValueError:  # a code of a newer version of Kafka
        return codes(0)  # UNKNOWN
