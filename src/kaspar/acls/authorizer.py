"""What the ACLs allow: the decisions of Kafka's StandardAuthorizer, with an index that reduces each to a few lookups.

- A matching DENY takes precedence over everything else, then a matching ALLOW. Without either the request is denied,
  unless the resource has no ACL at all and `allow.everyone.if.no.acl.found` is on.
- An ACL matches a resource by its literal name, by a prefix of the name, or by the literal name `*`.
- ALLOW of READ, WRITE, DELETE or ALTER implies DESCRIBE, and ALTER_CONFIGS implies DESCRIBE_CONFIGS. DENY implies
  nothing.
- Super users may do everything, even what an ACL denies.

The index groups the ACLs by resource name and then by principal. A check looks up the name, its prefix of each length
that occurs in an ACL, and the wildcard, so its cost does not depend on the number of ACLs.
"""

from bisect import insort
from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

from kaspar.acls.acl import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    Acl,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)

ALLOWED: Final = AclPermissionType.ALLOW
DENIED: Final = AclPermissionType.DENY

_ANY_NAME: Final = "hardcode"
"""Kafka's name for a resource that does not exist: an operation allowed on it needs no ACL for a particular
resource."""

_ALLOWED_BY: Final = {
    operation: frozenset({AclOperation.ALL, operation})
    for operation in AclOperation
    if operation not in (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
} | {
    AclOperation.DESCRIBE: frozenset(
        {
            AclOperation.ALL,
            AclOperation.DESCRIBE,
            AclOperation.READ,
            AclOperation.WRITE,
            AclOperation.DELETE,
            AclOperation.ALTER,
        }
    ),
    AclOperation.DESCRIBE_CONFIGS: frozenset(
        {AclOperation.ALL, AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS}
    ),
}


class Verdict(NamedTuple):
    """The decision, and the rule that led to it: an ACL, or the name of a default rule."""

    allowed: bool
    rule: Acl | str


SUPER_USER: Final = Verdict(True, "SuperUser")
NO_ACL_ALLOWED: Final = Verdict(True, "DefaultAllow")
NO_ACL_DENIED: Final = Verdict(False, "DefaultDeny")

_ByPrincipal = dict[str, tuple[Acl, ...]]


class _OfType:
    """The ACLs of one resource type."""

    __slots__ = ("_prefixes_of_length", "literal", "of_principals", "prefix_lengths", "prefixed")

    def __init__(self) -> None:
        self.literal: dict[str, _ByPrincipal] = {}
        self.prefixed: dict[str, _ByPrincipal] = {}
        self.prefix_lengths: list[int] = []
        """The lengths of all prefixes in `prefixed`, sorted."""
        self._prefixes_of_length: dict[int, int] = {}
        self.of_principals: dict[str, set[Acl]] = {}

    def matching(self, name: str) -> Iterator[_ByPrincipal]:
        exact = self.literal.get(name)
        if exact is not None:
            yield exact
        for length in self.prefix_lengths:
            if length > len(name):
                break
            found = self.prefixed.get(name[:length])
            if found is not None:
                yield found
        if name != WILDCARD:
            everywhere = self.literal.get(WILDCARD)
            if everywhere is not None:
                yield everywhere

    def add_name(self, names: dict[str, _ByPrincipal], name: str) -> _ByPrincipal:
        by_principal = names[name] = {}
        if names is self.prefixed:
            length = len(name)
            if length not in self._prefixes_of_length:
                insort(self.prefix_lengths, length)
            self._prefixes_of_length[length] = self._prefixes_of_length.get(length, 0) + 1
        return by_principal

    def remove_name(self, names: dict[str, _ByPrincipal], name: str) -> None:
        del names[name]
        if names is self.prefixed:
            length = len(name)
            self._prefixes_of_length[length] -= 1
            if not self._prefixes_of_length[length]:
                del self._prefixes_of_length[length]
                self.prefix_lengths.remove(length)


class AclIndex:
    """All ACLs, indexed by resource."""

    def __init__(self, acls: Iterable[Acl] = ()) -> None:
        self._of_types = {resource_type: _OfType() for resource_type in ResourceType}
        for acl in acls:
            self.add(acl)

    def add(self, acl: Acl) -> None:
        of_type = self._of_types[acl.resource_type]
        names = of_type.literal if acl.pattern_type == PatternType.LITERAL else of_type.prefixed
        by_principal = names.get(acl.resource_name)
        if by_principal is None:
            by_principal = of_type.add_name(names, acl.resource_name)
        theirs = by_principal.get(acl.principal, ())
        if acl not in theirs:
            by_principal[acl.principal] = (*theirs, acl)
        of_type.of_principals.setdefault(acl.principal, set()).add(acl)

    def remove(self, acl: Acl) -> None:
        of_type = self._of_types[acl.resource_type]
        names = of_type.literal if acl.pattern_type == PatternType.LITERAL else of_type.prefixed
        by_principal = names.get(acl.resource_name, {})
        left = tuple(each for each in by_principal.get(acl.principal, ()) if each != acl)
        if left:
            by_principal[acl.principal] = left
        elif by_principal.pop(acl.principal, None) is not None and not by_principal:
            of_type.remove_name(names, acl.resource_name)
        theirs = of_type.of_principals.get(acl.principal, set())
        theirs.discard(acl)
        if not theirs:
            of_type.of_principals.pop(acl.principal, None)

    def matching(self, resource_type: ResourceType, name: str) -> Iterator[_ByPrincipal]:
        """For each pattern that matches the name, its ACLs by principal."""
        return self._of_types[resource_type].matching(name)

    def of_principal(self, resource_type: ResourceType, principal: str) -> Collection[Acl]:
        return self._of_types[resource_type].of_principals.get(principal, ())


class StandardAuthorizer:
    """Decides whether an operation is allowed. `version` grows with every change: a decision remains valid while it is
    unchanged.
    """

    def __init__(self, super_users: Collection[str] = (), *, allow_everyone_if_no_acl_found: bool = False) -> None:
        self.super_users = frozenset(super_users)
        self.version = 0
        self._without_acl = NO_ACL_ALLOWED if allow_everyone_if_no_acl_found else NO_ACL_DENIED
        self._index = AclIndex()

    def update(self, added: Iterable[Acl], removed: Iterable[Acl]) -> None:
        for acl in removed:
            self._index.remove(acl)
        for acl in added:
            self._index.add(acl)
        self.version += 1

    def authorize(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> Verdict:
        if principal in self.super_users:
            return SUPER_USER
        allowed_by = _ALLOWED_BY[operation]
        allow: Acl | None = None
        has_acls = False
        for by_principal in self._index.matching(resource_type, name):
            has_acls = True
            for who in (principal, WILDCARD_PRINCIPAL):
                for acl in by_principal.get(who, ()):
                    if acl.host != WILDCARD and acl.host != host:
                        continue
                    if acl.permission_type == DENIED:
                        if acl.operation == operation or acl.operation == AclOperation.ALL:
                            return Verdict(False, acl)
                    elif allow is None and acl.operation in allowed_by:
                        allow = acl
        if allow is not None:
            return Verdict(True, allow)
        return NO_ACL_DENIED if has_acls else self._without_acl

    def authorize_by_resource_type(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """Whether there is at least one resource of the type for which the operation is allowed: Kafka's
        Authorizer.authorizeByResourceType (KIP-679).
        """
        if self.authorize(principal, host, operation, resource_type, _ANY_NAME).allowed:
            return True
        denied: dict[PatternType, set[str]] = {PatternType.LITERAL: set(), PatternType.PREFIXED: set()}
        allowed: list[Acl] = []
        for who in (principal, WILDCARD_PRINCIPAL):
            for acl in self._index.of_principal(resource_type, who):
                if acl.host not in (WILDCARD, host) or acl.operation not in (operation, AclOperation.ALL):
                    continue
                if acl.permission_type == ALLOWED:
                    allowed.append(acl)
                elif acl.pattern_type == PatternType.LITERAL and acl.resource_name == WILDCARD:
                    return False
                else:
                    denied[acl.pattern_type].add(acl.resource_name)
        return any(_is_effective(acl, denied) for acl in allowed)


def _is_effective(allow: Acl, denied: dict[PatternType, set[str]]) -> bool:
    """Whether no DENY covers everything that this ALLOW covers."""
    name = allow.resource_name
    if allow.pattern_type == PatternType.LITERAL:
        if name == WILDCARD:
            return True
        if name in denied[PatternType.LITERAL]:
            return False
    return not any(name[:length] in denied[PatternType.PREFIXED] for length in range(1, len(name) + 1))
