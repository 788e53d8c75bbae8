"""ACLs, in buckets."""

from collections.abc import Mapping

from kaspar.acls.acl import Acl, AclOperation, AclPermissionType, PatternType, ResourceType
from kaspar.metadata.layout.json_values import decode, encode
from kaspar.metadata.layout.store_paths import ACLS
from kaspar.metadata.store import Create, Delete, Operation, Put


def acl_bucket(acl_id: str) -> str:
    """The bucket of an ACL. Ids are random and begin with two hexadecimal digits."""
    return acl_id[:2]


def acls_change(bucket: str, old: Mapping[str, Acl], new: Mapping[str, Acl]) -> list[Operation]:
    """The operations that change a bucket from one state to another. An empty bucket has no node."""
    path = f"{ACLS}/{bucket}"
    if not new:
        return [Delete(path)] if old else []
    value = encode({acl_id: _acl_row(acl) for acl_id, acl in new.items()})
    return [Put(path, value) if old else Create(path, value)]


def decode_acls(value: bytes) -> dict[str, Acl]:
    return {acl_id: _acl(row) for acl_id, row in decode(value).items()}


def _acl_row(acl: Acl) -> list[str]:
    return [
        acl.resource_type.name,
        acl.resource_name,
        acl.pattern_type.name,
        acl.principal,
        acl.host,
        acl.operation.name,
        acl.permission_type.name,
    ]


def _acl(row: list[str]) -> Acl:
    resource_type, resource_name, pattern_type, principal, host, operation, permission_type = row
    return Acl(
        ResourceType[resource_type],
        resource_name,
        PatternType[pattern_type],
        principal,
        host,
        AclOperation[operation],
        AclPermissionType[permission_type],
    )
