"""Lists ACLs by a filter, adds them after a preview of the resources that they match, and removes those shown."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeVar

from kaspar.acls.acl import (
    CLUSTER_NAME,
    WILDCARD,
    Acl,
    AclFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    operations_of,
)
from kaspar.base.errors import ErrorCode, Refused
from kaspar.client.admin.acls import create_acls, delete_acls, describe_acls
from kaspar.client.admin.groups import list_groups
from kaspar.client.admin.session import Admin
from kaspar.client.admin.topics import list_topics
from kaspar.console.problems import Unacceptable, check_parts

NOT_SECURED: Final = (
    "This cluster has no authorizer, so everyone may do everything. ACLs need authorizer.class.name on the brokers."
)
_EXAMPLES: Final = 10
_MOST: Final = 500
"""The maximum number of ACLs that are added or removed at once."""
_NO_TARGETS: Final = frozenset({"UNKNOWN", "ANY"})
_Code = TypeVar("_Code", bound=IntEnum)


@dataclass(frozen=True, slots=True)
class AclView:
    """An ACL in Kafka's names: TOPIC, PREFIXED, DESCRIBE_CONFIGS, ALLOW ..."""

    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission_type: str


@dataclass(frozen=True, slots=True)
class AclQuery:
    """A filter for ACLs. Empty texts select everything; the pattern type MATCH, the ACLs that apply to a resource."""

    resource_type: str = ""
    resource_name: str = ""
    pattern_type: str = ""
    principal: str = ""
    host: str = ""
    operation: str = ""
    permission_type: str = ""


@dataclass(frozen=True, slots=True)
class AclPage:
    rows: tuple[AclView, ...]
    matching: int
    is_secured: bool = True
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Addition:
    """A preview of adding one ACL."""

    acl: AclView
    exists: bool
    matches: int | None
    """The number of resources that the ACL applies to now; None for resources that cannot be listed."""
    examples: tuple[str, ...]
    denied_by: tuple[AclView, ...] = ()
    """The ACLs that deny the same to the same principal, and take precedence."""


@dataclass(frozen=True, slots=True)
class Removal:
    removed: tuple[AclView, ...]
    missing: int
    """The number of ACLs that somebody else had already removed."""


# --- list -------------------------------------------------------------------------------------------------------------


def list_acls(admin: Admin, query: AclQuery) -> list[Acl] | None:
    """The matching ACLs, sorted; None if the cluster has no authorizer. Raises Refused and Unacceptable."""
    try:
        return sorted(describe_acls(admin, filter_of(query)))
    except Refused as refused:
        if refused.code is ErrorCode.SECURITY_DISABLED:
            return None
        raise


def select(acls: Sequence[Acl] | None, offset: int, limit: int) -> AclPage:
    if acls is None:
        return AclPage((), 0, is_secured=False, remark=NOT_SECURED)
    return AclPage(tuple(map(view_of, acls[offset : offset + limit])), len(acls))


# --- change -----------------------------------------------------------------------------------------------------------


def preview_additions(admin: Admin, wanted: Sequence[AclView]) -> list[Addition]:
    """What adding each of these ACLs would do. Raises Refused and Unacceptable."""
    acls = [acl_of(each) for each in _limited(wanted)]
    present = list_acls(admin, AclQuery())
    if present is None:
        raise Refused(ErrorCode.SECURITY_DISABLED, NOT_SECURED)
    names = _Names(admin)
    return [_addition(acl, present, names.of(acl.resource_type)) for acl in acls]


def add(admin: Admin, wanted: Sequence[AclView]) -> None:
    """Add these ACLs. Raises Refused, PartlyRefused if only some were refused, and Unacceptable."""
    check_parts(create_acls(admin, [acl_of(each) for each in _limited(wanted)]).values())


def remove(admin: Admin, wanted: Sequence[AclView]) -> Removal:
    """Remove exactly these ACLs. Raises Refused and Unacceptable."""
    filters = [AclFilter(*acl_of(each)) for each in _limited(wanted)]
    results = delete_acls(admin, filters)
    check_parts(results)
    removed = tuple(view_of(acl) for result in results if not isinstance(result, Refused) for acl in result)
    return Removal(removed, len(filters) - len(removed))


def _addition(acl: Acl, present: Sequence[Acl], names: Sequence[str] | None) -> Addition:
    matching = None if names is None else [name for name in names if applies(acl, name)]
    return Addition(
        view_of(acl),
        acl in present,
        None if matching is None else len(matching),
        () if matching is None else tuple(matching[:_EXAMPLES]),
        tuple(view_of(each) for each in present if _denies(each, acl)),
    )


def applies(acl: Acl, name: str) -> bool:
    """Whether an ACL applies to the resource of this name."""
    if acl.pattern_type is PatternType.PREFIXED:
        return name.startswith(acl.resource_name)
    return acl.resource_name in (name, WILDCARD)


def _denies(other: Acl, acl: Acl) -> bool:
    return (
        acl.permission_type is AclPermissionType.ALLOW
        and other.permission_type is AclPermissionType.DENY
        and other.resource_type is acl.resource_type
        and other.principal in (acl.principal, "User:*")
        and other.operation in (acl.operation, AclOperation.ALL)
        and (applies(other, acl.resource_name) or other.resource_name.startswith(acl.resource_name))
    )


class _Names:
    """The names of resources. Each type of resource is listed only once."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._known: dict[ResourceType, Sequence[str] | None] = {ResourceType.CLUSTER: (CLUSTER_NAME,)}

    def of(self, kind: ResourceType) -> Sequence[str] | None:
        if kind not in self._known:
            self._known[kind] = self._listed(kind)
        return self._known[kind]

    def _listed(self, kind: ResourceType) -> Sequence[str] | None:
        if kind is ResourceType.TOPIC:
            return list_topics(self._admin)
        if kind is ResourceType.GROUP:
            return [each.group_id for each in list_groups(self._admin)]
        return None


# --- conversion from and to views -------------------------------------------------------------------------------------


def view_of(acl: Acl) -> AclView:
    return AclView(
        acl.resource_type.name,
        acl.resource_name,
        acl.pattern_type.name,
        acl.principal,
        acl.host,
        acl.operation.name,
        acl.permission_type.name,
    )


def acl_of(view: AclView) -> Acl:
    """Raises Unacceptable."""
    resource_type = _code(ResourceType, view.resource_type, "resource type")
    pattern_type = _code(PatternType, view.pattern_type, "pattern type")
    operation = _code(AclOperation, view.operation, "operation")
    if pattern_type is PatternType.MATCH:
        raise Unacceptable("The pattern type of an ACL must be LITERAL or PREFIXED.")
    if operation not in (AclOperation.ALL, *operations_of(resource_type)):
        allowed = ", ".join(each.name for each in (AclOperation.ALL, *operations_of(resource_type)))
        raise Unacceptable(f"{operation.name} is not valid for {resource_type.name}; valid: {allowed}.")
    if not view.resource_name:
        raise Unacceptable("The name of the resource is missing.")
    kind, colon, name = view.principal.partition(":")
    if not (kind and colon and name):
        raise Unacceptable("The principal must have the form User:alice.")
    return Acl(
        resource_type,
        view.resource_name,
        pattern_type,
        view.principal,
        view.host or WILDCARD,
        operation,
        _code(AclPermissionType, view.permission_type, "permission type"),
    )


def filter_of(query: AclQuery) -> AclFilter:
    """Raises Unacceptable."""
    return AclFilter(
        _optional(ResourceType, query.resource_type, "resource type"),
        query.resource_name or None,
        _optional(PatternType, query.pattern_type, "pattern type"),
        query.principal or None,
        query.host or None,
        _optional(AclOperation, query.operation, "operation"),
        _optional(AclPermissionType, query.permission_type, "permission type"),
    )


def _optional(codes: type[_Code], name: str, what: str) -> _Code:
    return codes["ANY"] if name == "" else _code(codes, name, what)


def _code(codes: type[_Code], name: str, what: str) -> _Code:
    if name in _NO_TARGETS or name not in codes.__members__:
        raise Unacceptable(f"{name} is not a valid {what}.")
    return codes[name]


def _limited(wanted: Iterable[AclView]) -> list[AclView]:
    """The ACLs without duplicates. Raises Unacceptable if there are none or too many."""
    acls = list(dict.fromkeys(wanted))
    if not acls:
        raise Unacceptable("No ACLs were given.")
    if len(acls) > _MOST:
        raise Unacceptable(f"At most {_MOST} ACLs can be changed at once.")
    return acls
