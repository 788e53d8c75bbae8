"""Converts ACLs from their codes on the wire.

Kafka closes the connection if a code is that of UNKNOWN, and treats codes that it does not know as UNKNOWN.
"""

from enum import IntEnum
from typing import Any, Final, TypeVar

from kaspar.acls.acl import Acl, AclFilter, AclOperation, AclPermissionType, PatternType, ResourceType
from kaspar.base.errors import MalformedBytes
from kaspar.protocol.messages.create_acls import AclCreation

E = TypeVar("E", bound=IntEnum)

UNKNOWN: Final = 0
"""The same in each of the enums."""
NO_MESSAGE: Final = ""
"""The message of a success in CreateAcls and DescribeAcls."""


def acl_of(creation: AclCreation) -> Acl:
    return Acl(
        _known(ResourceType, creation.resource_type),
        creation.resource_name,
        _known(PatternType, creation.resource_pattern_type),
        creation.principal,
        creation.host,
        _known(AclOperation, creation.operation),
        _known(AclPermissionType, creation.permission_type),
    )


def filter_of(wanted: Any) -> AclFilter:
    """The filter of a DescribeAcls request, or a filter of a DeleteAcls request."""
    return AclFilter(
        _known(ResourceType, wanted.resource_type_filter),
        wanted.resource_name_filter,
        _known(PatternType, wanted.pattern_type_filter),
        wanted.principal_filter,
        wanted.host_filter,
        _known(AclOperation, wanted.operation),
        _known(AclPermissionType, wanted.permission_type),
    )


def _known(kind: type[E], code: int) -> E:
    if code == UNKNOWN:
        raise MalformedBytes(f"{code} is not a valid {kind.__name__}")
    return kind(code) if code in kind.__members__.values() else kind(UNKNOWN)
