"""The authorizer against a model that looks at every ACL, and its index against one that is built anew."""

from hypothesis import given
from hypothesis import strategies as st

from kaspar.acls import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    Acl,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from kaspar.acls.authorizer import StandardAuthorizer

TYPES = (ResourceType.TOPIC, ResourceType.GROUP)
OPERATIONS = tuple(AclOperation)[2:]
PRINCIPALS = ("User:a", "User:b")
HOSTS = ("10.0.0.1", "10.0.0.2")
SUPER_USER = "User:root"

names = st.sampled_from(("a", "ab", "abc", "abd", "b", WILDCARD))
acls = st.builds(
    Acl,
    st.sampled_from(TYPES),
    names,
    st.sampled_from((PatternType.LITERAL, PatternType.PREFIXED)),
    st.sampled_from((*PRINCIPALS, WILDCARD_PRINCIPAL)),
    st.sampled_from((*HOSTS, WILDCARD)),
    st.sampled_from(OPERATIONS),
    st.sampled_from((AclPermissionType.ALLOW, AclPermissionType.DENY)),
)
IMPLIED = {
    AclOperation.DESCRIBE: {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER},
    AclOperation.DESCRIBE_CONFIGS: {AclOperation.ALTER_CONFIGS},
}


def is_about(acl: Acl, resource_type: ResourceType, name: str) -> bool:
    if acl.resource_type != resource_type:
        return False
    if acl.pattern_type is PatternType.PREFIXED:
        return name.startswith(acl.resource_name)
    return acl.resource_name in (name, WILDCARD)


def is_for(acl: Acl, principal: str, host: str, operation: AclOperation) -> bool:
    if acl.principal not in (principal, WILDCARD_PRINCIPAL) or acl.host not in (host, WILDCARD):
        return False
    granted = {acl.operation}
    if acl.permission_type is AclPermissionType.ALLOW:
        granted |= {operation for operation, by in IMPLIED.items() if acl.operation in by}
    return acl.operation is AclOperation.ALL or operation in granted


def model(
    everything: list[Acl],
    principal: str,
    host: str,
    operation: AclOperation,
    resource_type: ResourceType,
    name: str,
    everyone: bool,
) -> bool:
    about = [acl for acl in everything if is_about(acl, resource_type, name)]
    fitting = {acl.permission_type for acl in about if is_for(acl, principal, host, operation)}
    if principal == SUPER_USER:
        return True
    if AclPermissionType.DENY in fitting:
        return False
    return AclPermissionType.ALLOW in fitting or (everyone and not about)


@given(
    everything=st.lists(acls, max_size=12),
    removed=st.lists(acls, max_size=6),
    principal=st.sampled_from((*PRINCIPALS, SUPER_USER)),
    host=st.sampled_from(HOSTS),
    operation=st.sampled_from(OPERATIONS),
    resource_type=st.sampled_from(TYPES),
    name=st.sampled_from(("", "a", "ab", "abc", "abcd", "x", WILDCARD)),
    everyone=st.booleans(),
)
def test_the_authorizer_decides_as_one_who_looks_at_every_acl(
    everything: list[Acl],
    removed: list[Acl],
    principal: str,
    host: str,
    operation: AclOperation,
    resource_type: ResourceType,
    name: str,
    everyone: bool,
) -> None:
    authorizer = StandardAuthorizer({SUPER_USER}, allow_everyone_if_no_acl_found=everyone)
    # Some come and go: what is left must be found, and what is gone must not.
    authorizer.update([*removed, *everything], ())
    gone = [acl for acl in dict.fromkeys(removed) if acl not in everything]
    authorizer.update((), gone)
    expected = model(everything, principal, host, operation, resource_type, name, everyone)
    assert authorizer.authorize(principal, host, operation, resource_type, name).allowed is expected


@given(
    everything=st.lists(acls, max_size=8),
    principal=st.sampled_from(PRINCIPALS),
    host=st.sampled_from(HOSTS),
    operation=st.sampled_from((AclOperation.WRITE, AclOperation.READ)),
)
def test_by_resource_type_is_true_only_if_some_name_is_allowed(
    everything: list[Acl], principal: str, host: str, operation: AclOperation
) -> None:
    """The converse does not hold, in Kafka neither: many prefixes that are denied may cover one that is allowed."""
    authorizer = StandardAuthorizer()
    authorizer.update(everything, ())
    candidates = {acl.resource_name for acl in everything} | {
        acl.resource_name + suffix for acl in everything for suffix in ("-", "+")
    }
    some = any(
        authorizer.authorize(principal, host, operation, ResourceType.TOPIC, name).allowed for name in candidates
    )
    claimed = authorizer.authorize_by_resource_type(principal, host, operation, ResourceType.TOPIC)
    if some:
        assert claimed or _denied_everywhere(everything, principal, host, operation)


def _denied_everywhere(everything: list[Acl], principal: str, host: str, operation: AclOperation) -> bool:
    return any(
        acl.resource_name == WILDCARD
        and acl.pattern_type is PatternType.LITERAL
        and acl.permission_type is AclPermissionType.DENY
        and acl.resource_type is ResourceType.TOPIC
        and is_for(acl, principal, host, operation)
        for acl in everything
    )
