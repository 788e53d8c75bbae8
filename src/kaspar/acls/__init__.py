"""ACLs: what one says and which of them a filter selects (`acl`), and what all of them allow (`authorizer`).

Pure: nothing here knows of connections, requests or stores. The rules are those of Kafka's StandardAuthorizer, which is
not imported here: a broker without an authorizer needs only to know what an ACL is.
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
