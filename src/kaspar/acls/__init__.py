"""ACLs: a single ACL and the filters that select ACLs (`acl`), and what all of them together allow (`authorizer`).

Pure: nothing here depends on connections, requests or stores. The rules are those of Kafka's StandardAuthorizer.
`authorizer` is not imported here, because a broker without an authorizer only needs to know what an ACL is.
"""

from kaspar.acls.acl import (
    CLUSTER_NAME,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    Acl,
    AclFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    operations_of,
)

__all__ = [
    "CLUSTER_NAME",
    "WILDCARD",
    "WILDCARD_PRINCIPAL",
    "Acl",
    "AclFilter",
    "AclOperation",
    "AclPermissionType",
    "PatternType",
    "ResourceType",
    "operations_of",
]
