"""kafka-acls: lists, adds and removes ACLs."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import Final

from kaspar.acls.acl import Acl, AclFilter, AclOperation
from kaspar.base.errors import KasparError
from kaspar.client.admin.acls import create_acls, delete_acls, describe_acls
from kaspar.client.admin.session import Admin, raise_first
from kaspar.tools.acls.selection import (
    Entry,
    InvalidSelection,
    Pattern,
    added_of,
    patterns_of,
    selection_of,
)
from kaspar.tools.client_config import add_brokers_or_controllers, add_command_config
from kaspar.tools.command_line import CommandFailed, KafkaOptions, open_admin, run
from kaspar.tools.kafka_errors import exception_text
from kaspar.tools.principals import parse_principal

_NAMED: Final = {
    "--topic": "a topic; '*' stands for all. May be repeated, as those below",
    "--group": "a consumer group; '*' stands for all",
    "--transactional-id": "a transactional id; '*' stands for all",
    "--delegation-token": "the id of a delegation token; '*' stands for all",
    "--user-principal": "a user such as User:bob, for whom others may create or describe tokens",
}
_NAMELESS: Final = (AclOperation.UNKNOWN, AclOperation.ANY)


def command_options() -> KafkaOptions:
    options = KafkaOptions(
        "kafka-acls",
        "List, add and remove ACLs: who may do what with topics, groups, transactional ids, delegation tokens, users "
        "and the cluster. Brokers need an authorizer (authorizer.class.name).",
        example="kafka-acls --bootstrap-server localhost:9092 --add --allow-principal User:alice --producer "
        "--topic orders",
    )
    add_brokers_or_controllers(options)
    add_command_config(options)
    options.add_argument("--list", action="store_true", help="list the ACLs of the named resources, or all")
    options.add_argument("--add", action="store_true", help="add ACLs to the named resources")
    options.add_argument(
        "--remove",
        action="store_true",
        help="remove ACLs of the named resources: those of the given principals, hosts and operations, or all",
    )
    options.add_argument("--force", action="store_true", help="with --remove: do not ask")
    _add_resources(options)
    _add_entries(options)
    return options


def _add_resources(options: KafkaOptions) -> None:
    for option, meaning in _NAMED.items():
        options.add_argument(option, action="append", metavar="NAME", help=meaning)
    options.add_argument("--cluster", action="store_true", help="the cluster")
    options.add_argument(
        "--resource-pattern-type",
        default="literal",
        metavar="TYPE",
        help="'literal' (the default): the name is that of a resource. 'prefixed': the name is how names of resources "
        "begin. With --list and --remove also 'any': ACLs with exactly this name, literal or prefixed; and 'match': "
        "all ACLs that apply to a resource of this name",
    )


def _add_entries(options: KafkaOptions) -> None:
    names = ", ".join(_spelled(each) for each in AclOperation if each not in _NAMELESS)
    options.add_argument(
        "--allow-principal", action="append", metavar="TYPE:NAME", help="who is allowed, such as User:alice or User:*"
    )
    options.add_argument(
        "--allow-host", action="append", metavar="HOST", help="from where; by default '*', from everywhere"
    )
    options.add_argument(
        "--deny-principal",
        action="append",
        metavar="TYPE:NAME",
        help="who is denied, even if another ACL allows it",
    )
    options.add_argument(
        "--deny-host", action="append", metavar="HOST", help="from where; by default '*', from everywhere"
    )
    options.add_argument(
        "--operation", action="append", metavar="OPERATION", help=f"what is allowed or denied (default: All): {names}"
    )
    options.add_argument(
        "--producer",
        action="store_true",
        help="instead of --operation: what a producer needs, Write, Describe and Create on --topic, and Write and "
        "Describe on --transactional-id",
    )
    options.add_argument(
        "--consumer",
        action="store_true",
        help="instead of --operation: what a consumer needs, Read and Describe on --topic, and Read on --group",
    )
    options.add_argument(
        "--idempotent",
        action="store_true",
        help="with --producer: IdempotentWrite on the cluster, which brokers before 3.0 ask for",
    )
    options.add_argument(
        "--principal",
        action="append",
        nargs="?",
        metavar="TYPE:NAME",
        help="with --list: the ACLs of this principal only. May be repeated",
    )


def _spelled(operation: AclOperation) -> str:
    return "".join(word.capitalize() for word in operation.name.split("_"))


def main(argv: Sequence[str] | None = None) -> int:
    parser = command_options()
    options = parser.parse(argv)
    _check(parser, options)
    return run(lambda: _run(parser, options), _report)


def _report(problem: KasparError) -> None:
    print(f"Error while executing ACL command: {exception_text(problem)}")


def _check(parser: KafkaOptions, options: argparse.Namespace) -> None:
    if options.bootstrap_server is not None and options.bootstrap_controller is not None:
        parser.fail("Only one of --bootstrap-server or --bootstrap-controller must be specified")
    if options.bootstrap_server is None and options.bootstrap_controller is None:
        parser.fail("One of --bootstrap-server or --bootstrap-controller must be specified")
    if sum((options.list, options.add, options.remove)) != 1:
        parser.fail("Command must include exactly one action: --list, --add, --remove. ")
    entries = ("allow-host", "allow-principal", "deny-host", "deny-principal")
    parser.exclude(options, "list", ("producer", "consumer", *entries))
    for role in ("producer", "consumer"):
        parser.exclude(options, role, ("operation", "deny-principal", "deny-host"))
    if options.principal is not None and not options.list:
        parser.fail("The --principal option is only available if --list is set")
    if options.producer and options.topic is None:
        parser.fail("With --producer you must specify a --topic")
    if options.idempotent and not options.producer:
        parser.fail("The --idempotent option is only available if --producer is set")
    others = not options.producer and (options.cluster or options.transactional_id is not None)
    if options.consumer and (options.topic is None or options.group is None or others):
        parser.fail(
            "With --consumer you must specify a --topic and a --group and no --cluster or --transactional-id option "
            "should be specified."
        )


def _run(parser: KafkaOptions, options: argparse.Namespace) -> None:
    with open_admin(
        options.bootstrap_server or options.bootstrap_controller,
        options.command_config,
        client_id="kafka-acls",
        via_controllers=options.bootstrap_controller is not None,
    ) as admin:
        try:
            if options.add:
                _add(admin, options)
            elif options.remove:
                _remove(admin, options)
            else:
                _list(admin, options)
        except InvalidSelection as problem:
            parser.fail(str(problem))


def _add(admin: Admin, options: argparse.Namespace) -> None:
    for pattern, entries in added_of(options).items():
        existing = set(describe_acls(admin, pattern.filter))
        new = []
        for entry in entries:
            if entry.on(pattern) in existing:
                print(f"Acl (pattern={pattern}, entry={entry}) already exists.")
            else:
                new.append(entry)
        if new:
            print(f"Adding ACLs for resource `{pattern}`: \n {_indented(new)}\n")
            raise_first(create_acls(admin, [entry.on(pattern) for entry in new]).values())


def _remove(admin: Admin, options: argparse.Namespace) -> None:
    for pattern, entries in selection_of(options).items():
        if entries:
            question = (
                f"Are you sure you want to remove ACLs: \n {_indented(entries)}\n from resource filter `{pattern}`?"
            )
        else:
            question = f"Are you sure you want to delete all ACLs for resource filter `{pattern}`?"
        if options.force or _confirmed(f"{question} (y/n)"):
            raise_first(delete_acls(admin, [entry.filter_on(pattern) for entry in entries] or [pattern.filter]))


def _confirmed(question: str) -> bool:
    print(question, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise CommandFailed("standard input has ended: --force removes ACLs without asking")
    return line.strip().lower() == "y"


def _list(admin: Admin, options: argparse.Namespace) -> None:
    filters = [pattern.filter for pattern in patterns_of(options)] or [AclFilter()]
    found = [acl for wanted in filters for acl in describe_acls(admin, wanted)]
    principals = [str(parse_principal(text)) for text in options.principal or () if text is not None]
    if not principals:
        _print_acls(found)
    for principal in dict.fromkeys(principals):
        print(f"ACLs for principal `{principal}`")
        _print_acls(acl for acl in found if acl.principal == principal)


def _print_acls(acls: Iterable[Acl]) -> None:
    by_pattern: dict[Pattern, list[Entry]] = {}
    for acl in sorted(set(acls)):
        entries = by_pattern.setdefault(Pattern(*acl[:3]), [])
        entries.append(Entry(acl.principal, acl.host, acl.operation, acl.permission_type))
    for pattern, entries in by_pattern.items():
        print(f"Current ACLs for resource `{pattern}`:\n{_indented(entries)}\n")


def _indented(entries: Iterable[Entry]) -> str:
    return "\n".join(f"\t{entry}" for entry in entries)


if __name__ == "__main__":
    sys.exit(main())
