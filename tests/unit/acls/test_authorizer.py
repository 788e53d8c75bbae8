"""The rules of ACLs one by one, the filters, and what a check costs."""

import time

import pytest

from kaspar.acls import (
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
from kaspar.acls.authorizer import StandardAuthorizer

ALICE, BOB = "User:alice", "User:bob"
HOST = "10.1.1.1"


def acl(
    name: str,
    operation: AclOperation = AclOperation.READ,
    *,
    pattern: PatternType = PatternType.LITERAL,
    principal: str = ALICE,
    host: str = WILDCARD,
    deny: bool = False,
    resource_type: ResourceType = ResourceType.TOPIC,
) -> Acl:
    permission = AclPermissionType.DENY if deny else AclPermissionType.ALLOW
    return Acl(resource_type, name, pattern, principal, host, operation, permission)


def authorizer(*acls: Acl, everyone: bool = False, super_users: tuple[str, ...] = ()) -> StandardAuthorizer:
    made = StandardAuthorizer(super_users, allow_everyone_if_no_acl_found=everyone)
    made.update(acls, ())
    return made


def may(
    decides: StandardAuthorizer,
    name: str,
    operation: AclOperation = AclOperation.READ,
    *,
    principal: str = ALICE,
    host: str = HOST,
) -> bool:
    return decides.authorize(principal, host, operation, ResourceType.TOPIC, name).allowed


def test_without_an_acl_nothing_is_allowed_unless_everyone_is() -> None:
    assert not may(authorizer(), "t")
    assert may(authorizer(everyone=True), "t")


def test_one_acl_of_anybody_ends_what_everyone_is_allowed() -> None:
    for about in (
        acl("t", principal=BOB),
        acl("", pattern=PatternType.PREFIXED, principal=BOB),
        acl("*", principal=BOB),
    ):
        decides = authorizer(about, everyone=True)
        assert not may(decides, "t"), about
        decides.update((), [about])
        assert may(decides, "t"), about


def test_a_pattern_is_literal_a_prefix_or_the_wildcard() -> None:
    literal = authorizer(acl("orders"))
    assert may(literal, "orders")
    assert not may(literal, "orders-1")
    assert not may(literal, "order")
    prefixed = authorizer(acl("orders", pattern=PatternType.PREFIXED))
    assert may(prefixed, "orders")
    assert may(prefixed, "orders-1")
    assert not may(prefixed, "order")
    assert may(authorizer(acl(WILDCARD)), "anything")
    assert not may(authorizer(acl(WILDCARD, pattern=PatternType.PREFIXED)), "anything"), "a prefix is no wildcard"


def test_a_denial_counts_wherever_it_matches() -> None:
    for denial in (
        acl("orders", deny=True),
        acl("ord", deny=True, pattern=PatternType.PREFIXED),
        acl(WILDCARD, deny=True),
        acl("orders", AclOperation.ALL, deny=True),
        acl("orders", deny=True, principal=WILDCARD_PRINCIPAL),
        acl("orders", deny=True, host=HOST),
    ):
        assert not may(authorizer(acl("orders"), acl(WILDCARD), denial), "orders"), denial
    assert may(authorizer(acl("orders"), acl("orders", deny=True, host="10.1.1.2")), "orders")


def test_allowing_implies_describing_and_denying_implies_nothing() -> None:
    for operation in (AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER):
        assert may(authorizer(acl("t", operation)), "t", AclOperation.DESCRIBE)
        assert may(
            authorizer(acl("t", operation, deny=True), acl("t", AclOperation.DESCRIBE)), "t", AclOperation.DESCRIBE
        )
    assert may(authorizer(acl("t", AclOperation.ALTER_CONFIGS)), "t", AclOperation.DESCRIBE_CONFIGS)
    assert not may(authorizer(acl("t", AclOperation.CREATE)), "t", AclOperation.DESCRIBE)
    assert not may(authorizer(acl("t", AclOperation.DESCRIBE)), "t", AclOperation.READ)


def test_a_super_user_may_do_what_is_denied() -> None:
    decides = authorizer(acl(WILDCARD, AclOperation.ALL, deny=True), super_users=(ALICE,))
    assert may(decides, "t")
    assert not may(decides, "t", principal=BOB)


def test_hosts_are_exact() -> None:
    decides = authorizer(acl("t", host=HOST))
    assert may(decides, "t")
    assert not may(decides, "t", host="10.1.1.10")


@pytest.mark.parametrize(
    ("acls", "expected"),
    [
        ((), False),
        ((acl("t", AclOperation.WRITE),), True),
        ((acl("t", AclOperation.READ),), False),
        ((acl("t", AclOperation.WRITE, principal=BOB),), False),
        ((acl("t", AclOperation.WRITE), acl(WILDCARD, AclOperation.WRITE, deny=True)), False),
        ((acl("t", AclOperation.WRITE), acl("t", AclOperation.WRITE, deny=True)), False),
        ((acl("t", AclOperation.WRITE), acl("t", AclOperation.ALL, deny=True)), False),
        (
            (acl("abc", AclOperation.WRITE), acl("ab", AclOperation.WRITE, deny=True, pattern=PatternType.PREFIXED)),
            False,
        ),
        ((acl("a", AclOperation.WRITE), acl("ab", AclOperation.WRITE, deny=True, pattern=PatternType.PREFIXED)), True),
        ((acl("ab", AclOperation.ALL, pattern=PatternType.PREFIXED), acl("ab", AclOperation.WRITE, deny=True)), True),
        ((acl(WILDCARD, AclOperation.WRITE), acl("t", AclOperation.WRITE, deny=True)), True),
    ],
)
def test_by_resource_type_one_resource_is_enough(acls: tuple[Acl, ...], expected: bool) -> None:
    decides = authorizer(*acls)
    assert decides.authorize_by_resource_type(ALICE, HOST, AclOperation.WRITE, ResourceType.TOPIC) is expected


def test_filters_select_as_kafkas_do() -> None:
    literal, prefixed, everywhere = acl("foobar"), acl("foo", pattern=PatternType.PREFIXED), acl(WILDCARD)
    every = (literal, prefixed, everywhere)

    def selected(**fields: object) -> set[Acl]:
        return {each for each in every if AclFilter(**fields).matches(each)}  # type: ignore[arg-type]

    assert selected() == set(every)
    assert selected(resource_name="foobar") == {literal}
    assert selected(resource_name="foobar", pattern_type=PatternType.MATCH) == set(every)
    assert selected(resource_name="foo", pattern_type=PatternType.MATCH) == {prefixed, everywhere}
    assert selected(resource_name="foo", pattern_type=PatternType.LITERAL) == set()
    assert selected(pattern_type=PatternType.PREFIXED) == {prefixed}
    assert selected(resource_name=WILDCARD, pattern_type=PatternType.LITERAL) == {everywhere}
    assert selected(resource_type=ResourceType.GROUP) == set()
    assert selected(principal=BOB) == set()
    assert selected(principal=ALICE, host=WILDCARD) == set(every)
    assert selected(operation=AclOperation.ALL) == set()
    assert selected(operation=AclOperation.READ) == set(every)
    assert selected(permission_type=AclPermissionType.DENY) == set()


def test_operations_as_bits_are_kafkas() -> None:
    bits = {each: sum(1 << operation for operation in operations_of(each)) for each in list(ResourceType)[2:]}
    assert bits[ResourceType.TOPIC] == 3576
    assert bits[ResourceType.GROUP] == 3400
    assert bits[ResourceType.CLUSTER] == 8096


def test_among_100_000_acls_a_check_takes_microseconds() -> None:
    """Names, prefixes and principals of all kinds. The limit is wide, for busy machines: a look at every ACL would take
    a thousand times as long.
    """
    prefixed = PatternType.PREFIXED
    decides = authorizer(
        *(acl(f"team{number % 1000}.orders.{number}", principal=f"User:{number % 5000}") for number in range(60_000)),
        *(acl(f"team{number}." + "x" * (number % 50), pattern=prefixed) for number in range(20_000)),
        *(acl("shared", principal=f"User:{number}") for number in range(20_000)),
    )
    began = time.process_time()
    rounds = 3000
    for number in range(rounds):
        may(decides, f"team7.orders.{number}", principal="User:7")
        may(decides, "shared", principal=f"User:{number}")
    taken_us = (time.process_time() - began) / (2 * rounds) * 1e6
    assert taken_us < 100, taken_us
