"""ACLs as the page names them, and what a pattern matches."""

from dataclasses import replace

import pytest

from kaspar.acls.acl import Acl, AclFilter, AclOperation, AclPermissionType, PatternType, ResourceType
from kaspar.console.acls import NOT_SECURED, AclQuery, AclView, acl_of, applies, filter_of, select, view_of
from kaspar.console.problems import Unacceptable

READS = AclView("TOPIC", "orders", "LITERAL", "User:alice", "*", "READ", "ALLOW")
ACL = Acl(
    ResourceType.TOPIC,
    "orders",
    PatternType.LITERAL,
    "User:alice",
    "*",
    AclOperation.READ,
    AclPermissionType.ALLOW,
)


def test_an_acl_is_named_by_kafkas_words() -> None:
    assert acl_of(READS) == ACL
    assert view_of(ACL) == READS
    assert acl_of(replace(READS, host="")) == ACL


@pytest.mark.parametrize(
    "wrong",
    [
        replace(READS, resource_type="ANY"),
        replace(READS, resource_type="topic"),
        replace(READS, pattern_type="MATCH"),
        replace(READS, operation="CLUSTER_ACTION"),
        replace(READS, permission_type="UNKNOWN"),
        replace(READS, resource_name=""),
        replace(READS, principal="alice"),
        replace(READS, principal="User:"),
    ],
)
def test_what_is_no_acl_is_unacceptable(wrong: AclView) -> None:
    with pytest.raises(Unacceptable):
        acl_of(wrong)


def test_an_empty_part_of_a_filter_selects_everything() -> None:
    assert filter_of(AclQuery()) == AclFilter()
    wanted = filter_of(AclQuery(resource_type="TOPIC", resource_name="orders", pattern_type="MATCH"))
    assert wanted == AclFilter(ResourceType.TOPIC, "orders", PatternType.MATCH)
    with pytest.raises(Unacceptable, match="is not a valid operation"):
        filter_of(AclQuery(operation="FLY"))


@pytest.mark.parametrize(
    ("pattern", "name", "other", "expected"),
    [
        (PatternType.LITERAL, "orders", "orders", True),
        (PatternType.LITERAL, "orders", "orders-2", False),
        (PatternType.LITERAL, "*", "orders-2", True),
        (PatternType.PREFIXED, "orders", "orders-2", True),
        (PatternType.PREFIXED, "orders", "order", False),
    ],
)
def test_which_resources_an_acl_is_about(pattern: PatternType, name: str, other: str, expected: bool) -> None:
    assert applies(ACL._replace(pattern_type=pattern, resource_name=name), other) is expected


def test_a_cluster_without_an_authorizer_says_so() -> None:
    page = select(None, 0, 50)
    assert (page.is_secured, page.remark) == (False, NOT_SECURED)
    assert select([ACL, ACL._replace(host="h")], 1, 5).rows == (replace(READS, host="h"),)
