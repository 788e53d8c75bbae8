"""kafka-groups: lists the groups of all types."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from kaspar.base.errors import KasparError
from kaspar.client.admin.groups import CONSUMER_PROTOCOL, GroupListing, GroupType, list_groups
from kaspar.tools.client_config import add_command_config
from kaspar.tools.command_line import FAILED, KafkaOptions, open_admin, run
from kaspar.tools.kafka_errors import message_of

_FILTERS: Final = ("consumer", "share", "streams")
_WIDTH: Final = 20


def command_options() -> KafkaOptions:
    options = KafkaOptions(
        "kafka-groups",
        "List groups of all types: those of consumers of both protocols, share groups and streams groups.",
        example="kafka-groups --bootstrap-server localhost:9092 --list --consumer",
    )
    options.add_argument("--bootstrap-server", metavar="HOST:PORT", help="brokers to connect to. REQUIRED")
    add_command_config(options)
    options.add_argument("--list", action="store_true", help="list the groups. REQUIRED")
    options.add_argument(
        "--group-type", metavar="TYPE", help="only groups of this type: classic, consumer, share or streams"
    )
    options.add_argument(
        "--protocol", metavar="PROTOCOL", help="only groups of this protocol type, such as consumer or connect"
    )
    options.add_argument(
        "--consumer",
        action="store_true",
        help="only groups of consumers: of type consumer, and of type classic with the protocol type consumer or none",
    )
    options.add_argument("--share", action="store_true", help="only share groups")
    options.add_argument("--streams", action="store_true", help="only streams groups")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    parser = command_options()
    options = parser.parse(argv)
    _check(parser, options)
    return run(lambda: _run(options), _report)


def _report(problem: KasparError) -> None:
    print(f"Error while executing groups command : {message_of(problem)}")


def _check(parser: KafkaOptions, options: argparse.Namespace) -> None:
    if options.bootstrap_server is None:
        parser.fail("Missing required option(s) [bootstrap-server]")
    if not options.list:
        parser.fail("Command must include exactly one action: --list.")
    if options.group_type is not None and _type(options.group_type) is None:
        print("--group-type must be a valid group type.", file=sys.stderr)
        sys.exit(FAILED)
    given = [name for name in _FILTERS if getattr(options, name)]
    others = [name for name in ("group-type", "protocol") if getattr(options, name.replace("-", "_")) is not None]
    if given and [*given[1:], *others]:
        parser.fail(f'Option "[{given[0]}]" can\'t be used with option "[{[*given[1:], *others][0]}]"')


def _type(name: str) -> GroupType | None:
    return next((each for each in GroupType if each.lower() == name.lower() and each is not GroupType.UNKNOWN), None)


def _run(options: argparse.Namespace) -> None:
    with open_admin(options.bootstrap_server, options.command_config, client_id="groups-tool") as admin:
        groups = list_groups(admin)
    for line in table([each for each in groups if _is_wanted(each, options)]):
        print(line)


def _is_wanted(group: GroupListing, options: argparse.Namespace) -> bool:
    if options.group_type is not None and group.type is not _type(options.group_type):
        return False
    if options.protocol is not None and group.protocol_type != options.protocol:
        return False
    if options.consumer:
        return group.type is GroupType.CONSUMER or group.protocol_type in ("", CONSUMER_PROTOCOL)
    if options.share or options.streams:
        return group.type is (GroupType.SHARE if options.share else GroupType.STREAMS)
    return True


def table(groups: Sequence[GroupListing]) -> Iterator[str]:
    rows = [(each.group_id, "" if each.type is GroupType.UNKNOWN else each.type, each.protocol_type) for each in groups]
    width = max([_WIDTH, *(len(text) for row in rows for text in row)])
    yield " ".join(f"{text:<{width}}" for text in ("GROUP", "TYPE", "PROTOCOL"))
    for row in rows:
        yield "".join(f"{text:<{width}} " for text in row)


if __name__ == "__main__":
    sys.exit(main())
