"""What the options of kafka-acls select: resource patterns, and the entries for each of them."""

import argparse
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

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
from kaspar.tools.command_line import CommandFailed
from kaspar.tools.principals import parse_principal

_OPTIONS: Final = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
    "delegation_token": ResourceType.DELEGATION_TOKEN,
    "user_principal": ResourceType.USER,
}
_PRODUCER: Final = {
    ResourceType.TOPIC: (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE),
    ResourceType.TRANSACTIONAL_ID: (AclOperation.WRITE, AclOperation.DESCRIBE),
}
_CONSUMER: Final = {
    ResourceType.TOPIC: (AclOperation.READ, AclOperation.DESCRIBE),
    ResourceType.GROUP: (AclOperation.READ,),
}


class InvalidSelection(CommandFailed):
    """The options do not fit together; Kafka's command prints its usage in this case, too."""


class Pattern(NamedTuple):
    """The resources that ACLs apply to. Its text is that of Kafka's ResourcePattern."""

    type: ResourceType
    name: str
    pattern_type: PatternType

    def __str__(self) -> str:
        kind, pattern = self.type.name, self.pattern_type.name
        return f"ResourcePattern(resourceType={kind}, name={self.name}, patternType={pattern})"

    @property
    def filter(self) -> AclFilter:
        return AclFilter(self.type, self.name, self.pattern_type)


CLUSTER: Final = Pattern(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL)


class Entry(NamedTuple):
    """An ACL without its resource: who may do what, or may not."""

    principal: str
    host: str
    operation: AclOperation
    permission_type: AclPermissionType

    def __str__(self) -> str:
        operation, permission = self.operation.name, self.permission_type.name
        return f"(principal={self.principal}, host={self.host}, operation={operation}, permissionType={permission})"

    def on(self, pattern: Pattern) -> Acl:
        return Acl(pattern.type, pattern.name, pattern.pattern_type, *self)

    def filter_on(self, pattern: Pattern) -> AclFilter:
        return AclFilter(pattern.type, pattern.name, pattern.pattern_type, *self)


Selection = dict[Pattern, list[Entry]]
"""The entries of each pattern, in the order of the options. A pattern without entries stands for all its ACLs."""


def patterns_of(options: argparse.Namespace) -> list[Pattern]:
    """The resources that the options name. Raises CommandFailed."""
    pattern_type = _pattern_type(options)
    found = [
        Pattern(kind, name.strip(), pattern_type)
        for option, kind in _OPTIONS.items()
        for name in getattr(options, option) or ()
    ]
    if pattern_type is PatternType.LITERAL and (options.cluster or options.idempotent):
        found.append(CLUSTER)
    return list(dict.fromkeys(found))


def selection_of(options: argparse.Namespace) -> Selection:
    """The patterns and entries that the options select. Raises CommandFailed."""
    patterns = patterns_of(options)
    if not patterns:
        raise InvalidSelection(
            "You must provide at least one resource: --topic <topic> or --cluster or --group <group> or "
            "--delegation-token <Delegation Token ID>"
        )
    selected: Selection = {}
    if options.producer:
        for pattern in patterns:
            if pattern.type in _PRODUCER:
                selected[pattern] = _entries(options, _PRODUCER[pattern.type])
        if options.idempotent:
            selected[CLUSTER] = _entries(options, [AclOperation.IDEMPOTENT_WRITE])
    if options.consumer:
        for pattern in patterns:
            if pattern.type in _CONSUMER:
                entries = selected.get(pattern, []) + _entries(options, _CONSUMER[pattern.type])
                selected[pattern] = list(dict.fromkeys(entries))
    if not options.producer and not options.consumer:
        operations = [parse_operation(text) for text in options.operation or ("All",)]
        selected = {pattern: _entries(options, operations) for pattern in patterns}
    for pattern, entries in selected.items():
        _check_operations(pattern.type, entries)
    return selected


def added_of(options: argparse.Namespace) -> Selection:
    """The ACLs that `--add` adds. Raises CommandFailed."""
    pattern_type = _pattern_type(options)
    if pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise InvalidSelection(
            f"A '--resource-pattern-type' value of '{pattern_type.name}' is not valid when adding acls."
        )
    selected = selection_of(options)
    if not all(selected.values()):
        raise InvalidSelection("You must specify one of: --allow-principal, --deny-principal when trying to add ACLs.")
    return selected


def _pattern_type(options: argparse.Namespace) -> PatternType:
    text = options.resource_pattern_type
    found = PatternType.__members__.get(text.upper())
    if found is None or found is PatternType.UNKNOWN:
        raise CommandFailed(f"Cannot parse argument '{text}' of option resource-pattern-type")
    return found


def parse_operation(text: str) -> AclOperation:
    """The operation with this name, in any of Kafka's spellings: DescribeConfigs, describeconfigs, DESCRIBE_CONFIGS."""
    wanted = text.strip().replace("_", "").lower()
    found = {each.name.replace("_", "").lower(): each for each in AclOperation}.get(wanted, AclOperation.UNKNOWN)
    if found is AclOperation.ANY:
        raise CommandFailed("operation must not be ANY")
    return found


def _entries(options: argparse.Namespace, operations: Sequence[AclOperation]) -> list[Entry]:
    allowed = _permitted(options.allow_principal, options.allow_host, operations, AclPermissionType.ALLOW)
    denied = _permitted(options.deny_principal, options.deny_host, operations, AclPermissionType.DENY)
    return list(dict.fromkeys([*allowed, *denied]))


def _permitted(
    principals: Sequence[str] | None,
    hosts: Sequence[str] | None,
    operations: Sequence[AclOperation],
    permission_type: AclPermissionType,
) -> Iterator[Entry]:
    for principal in map(parse_principal, principals or ()):
        for host in hosts or (WILDCARD,):
            for operation in operations:
                yield Entry(str(principal), host.strip(), operation, permission_type)


def _check_operations(resource_type: ResourceType, entries: Collection[Entry]) -> None:
    allowed = [AclOperation.ALL, *operations_of(resource_type)]
    if any(entry.operation not in allowed for entry in entries):
        names = ", ".join(each.name for each in allowed)
        raise InvalidSelection(f"ResourceType {resource_type.name} only supports operations [{names}]")
