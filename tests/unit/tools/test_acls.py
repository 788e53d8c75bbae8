"""kafka-acls: the ACLs that its options stand for."""

import pytest

from kaspar.acls.acl import AclOperation, AclPermissionType, PatternType, ResourceType
from kaspar.tools.acls.command import command_options
from kaspar.tools.acls.selection import (
    CLUSTER,
    Entry,
    InvalidSelection,
    Pattern,
    Selection,
    added_of,
    parse_operation,
    selection_of,
)
from kaspar.tools.command_line import CommandFailed

TOPIC = Pattern(ResourceType.TOPIC, "t", PatternType.LITERAL)
GROUP = Pattern(ResourceType.GROUP, "g", PatternType.LITERAL)


def selected(words: str) -> Selection:
    return added_of(command_options().parse(words.split()))


def allowed(*operations: AclOperation) -> list[Entry]:
    return [Entry("User:a", "*", operation, AclPermissionType.ALLOW) for operation in operations]


def test_producer_and_consumer_together() -> None:
    found = selected("--allow-principal User:a --producer --consumer --idempotent --topic t --group g")
    assert found == {
        TOPIC: allowed(AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE, AclOperation.READ),
        CLUSTER: allowed(AclOperation.IDEMPOTENT_WRITE),
        GROUP: allowed(AclOperation.READ),
    }


def test_hosts_of_those_who_are_allowed_and_denied() -> None:
    found = selected("--allow-principal User:a --deny-principal User:b --deny-host h1 --deny-host h2 --topic t")
    denied = [Entry("User:b", host, AclOperation.ALL, AclPermissionType.DENY) for host in ("h1", "h2")]
    assert found == {TOPIC: [*allowed(AclOperation.ALL), *denied]}


def test_a_pattern_without_entries_stands_for_all_of_its_acls() -> None:
    assert selection_of(command_options().parse(["--topic", "t"])) == {TOPIC: []}
    with pytest.raises(InvalidSelection, match="--allow-principal"):
        selected("--topic t")


@pytest.mark.parametrize("text", ["DescribeConfigs", "describeconfigs", "DESCRIBE_CONFIGS", " describeConfigs "])
def test_operations_in_any_spelling(text: str) -> None:
    assert parse_operation(text) is AclOperation.DESCRIBE_CONFIGS


@pytest.mark.parametrize(
    "words",
    [
        "--allow-principal User:a",
        "--allow-principal a --topic t",
        "--allow-principal User:a --topic t --resource-pattern-type match",
        "--allow-principal User:a --topic t --resource-pattern-type zork",
        "--allow-principal User:a --cluster --operation Read",
        "--allow-principal User:a --cluster --operation Any",
    ],
)
def test_what_cannot_be_added(words: str) -> None:
    with pytest.raises(CommandFailed):
        selected(words)


def test_entries_and_patterns_print_as_kafkas() -> None:
    assert str(TOPIC) == "ResourcePattern(resourceType=TOPIC, name=t, patternType=LITERAL)"
    (entry,) = allowed(AclOperation.READ)
    assert str(entry) == "(principal=User:a, host=*, operation=READ, permissionType=ALLOW)"
