"""The command: its options, and the steps of a reset in order."""

import argparse
import sys
from collections.abc import Collection, Sequence
from typing import Final

from kaspar.base.errors import ErrorCode, KasparError
from kaspar.client.admin.deletion import delete_topics
from kaspar.client.admin.group_members import describe_group_members, remove_group_members
from kaspar.client.admin.groups import GroupMember, list_groups
from kaspar.client.admin.session import Admin
from kaspar.client.admin.topics import list_topics
from kaspar.tools.client_config import add_command_config
from kaspar.tools.command_line import FAILED, CommandFailed, KafkaOptions, long_integer, open_admin, run
from kaspar.tools.kafka_errors import exception_text
from kaspar.tools.streams_reset import internal_topics
from kaspar.tools.streams_reset.resetting import OffsetReset, shown

_DEFAULT_SERVER: Final = "localhost:9092"
_REMOVAL_ATTEMPTS: Final = 4
_TARGETS: Final = ("to-offset", "to-datetime", "by-duration", "to-earliest", "to-latest", "from-file", "shift-by")
"""At most one of these options may be given."""


def command_options() -> KafkaOptions:
    options = KafkaOptions(
        "kafka-streams-application-reset",
        "Make a Streams application process its input again: resets the offsets of its input topics, and deletes its "
        "internal topics.\nStop the application first. Output topics stay as they are. A Kaspar Streams application "
        "discards its local state by itself\nwhen it starts again; for one of Kafka Streams, delete its state.dir.",
        example="kafka-streams-application-reset --application-id word-count --input-topics lines --dry-run",
    )
    options.add_argument("--application-id", metavar="ID", help="the application.id. REQUIRED")
    options.add_argument("--bootstrap-server", metavar="HOST:PORT", help=f"default: {_DEFAULT_SERVER}")
    for name, text in (
        ("input-topics", "input topics, separated by commas: their offsets are reset, by default to the earliest"),
        ("intermediate-topics", "deprecated: topics whose offsets are set to their ends"),
        ("internal-topics", "internal topics to delete, separated by commas; by default all, as a dry run shows them"),
    ):
        options.add_argument(f"--{name}", type=_topics, action="extend", default=[], metavar="TOPICS", help=text)
    options.add_argument("--to-offset", type=long_integer, metavar="OFFSET", help="reset to this offset")
    options.add_argument("--to-datetime", metavar="TIME", help="reset to this time: YYYY-MM-DDThh:mm:ss.sss")
    options.add_argument("--by-duration", metavar="DURATION", help="reset to so long ago: PnDTnHnMnS")
    options.add_argument("--to-earliest", action="store_true", help="reset to the earliest offsets")
    options.add_argument("--to-latest", action="store_true", help="reset to the latest offsets")
    options.add_argument(
        "--shift-by", type=long_integer, metavar="N", help="move the offsets by N, which may be negative"
    )
    options.add_argument("--from-file", metavar="FILE", help="reset to the offsets in a file: TOPIC,PARTITION,OFFSET")
    options.add_argument("--force", action="store_true", help="remove members that are still in the group")
    options.add_argument("--dry-run", action="store_true", help="only show what would be done")
    add_command_config(options)
    options.add_argument("--config-file", metavar="FILE", help="deprecated: --command-config")
    return options


def _topics(text: str) -> list[str]:
    return [topic for topic in text.split(",") if topic]


def main(argv: Sequence[str] | None = None) -> int:
    parser = command_options()
    options = parser.parse(argv)
    _check(parser, options)
    not_found: list[str] = []
    code = run(lambda: not_found.extend(_run(options)), _report)
    return code or (FAILED if not_found else 0)


def _check(parser: KafkaOptions, options: argparse.Namespace) -> None:
    if options.application_id is None:
        parser.fail("Missing required option(s) [application-id]")
    given = [name for name in _TARGETS if getattr(options, name.replace("-", "_")) not in (None, False)]
    if len(given) > 1:
        parser.fail(f'Option "[{given[0]}]" can\'t be used with option "[{given[1]}]"')
    if options.config_file is not None and options.command_config is not None:
        parser.fail('Option "[config-file]" can\'t be used with option "[command-config]"')


def _report(problem: KasparError) -> None:
    print(f"ERROR: {exception_text(problem)}", file=sys.stderr)


def _run(options: argparse.Namespace) -> Collection[str]:
    """Returns the topics that were not found."""
    config_file = options.command_config
    if options.config_file is not None:
        print(
            "Option --config-file has been deprecated and will be removed in a future version. "
            "Use --command-config instead."
        )
        config_file = options.config_file
    with open_admin(
        options.bootstrap_server or _DEFAULT_SERVER, config_file, client_id="streams-application-reset"
    ) as admin:
        _make_sure_of_no_members(admin, options.application_id, force=options.force)
        existing = list_topics(admin, include_internal=False)
        if options.dry_run:
            print("----Dry run displays the actions which will be performed when running Streams Reset Tool----")
        reset = OffsetReset(admin, options, existing)
        reset.run()
        _delete_internal_topics(admin, options, existing)
    return reset.not_found


# --- members ----------------------------------------------------------------------------------------------------------


def _make_sure_of_no_members(admin: Admin, group_id: str, *, force: bool) -> None:
    for _ in range(_REMOVAL_ATTEMPTS):
        members = describe_group_members(admin, group_id)
        if not members:
            return
        if not force:
            raise CommandFailed(
                f"Consumer group '{group_id}' is still active and has following members: "
                f"{shown(map(_described, members))}. Make sure to stop all running application instances before "
                "running the reset tool. You can use option '--force' to remove active members from the group."
            )
        print(f"Force deleting all active members in the group: {group_id}")
        failed = [refused for refused in remove_group_members(admin, group_id, members).values() if refused is not None]
        if not failed:
            return
        if any(refused.code is not ErrorCode.UNKNOWN_MEMBER_ID for refused in failed):
            break
    raise failed[0]


def _described(member: GroupMember) -> str:
    return (
        f"(memberId={member.member_id}, groupInstanceId={member.group_instance_id or 'null'}, "
        f"clientId={member.client_id}, host={member.host})"
    )


# --- internal topics --------------------------------------------------------------------------------------------------


def _delete_internal_topics(admin: Admin, options: argparse.Namespace, existing: Collection[str]) -> None:
    specified = options.internal_topics
    own = {*options.input_topics, *options.intermediate_topics}
    found = internal_topics.inferred(options.application_id, existing, own)
    if not specified:
        groups = [group.group_id for group in list_groups(admin)]
        kept = internal_topics.of_others(options.application_id, found, groups)
        if kept:
            print(f"Keeping topics of other applications {shown(kept)}; to delete them use --internal-topics")
        found = [topic for topic in found if topic not in kept]
    topics = internal_topics.chosen(specified, found)
    print(f"Deleting {'specified' if specified else 'inferred'} internal topics {shown(topics)}")
    if not options.dry_run:
        _delete(admin, topics)
    print("Done.")


def _delete(admin: Admin, topics: Collection[str]) -> None:
    refused = {topic: why for topic, why in delete_topics(admin, topics).items() if why is not None}
    for topic, why in refused.items():
        print(f"ERROR: deleting topic {topic}\n{exception_text(why)}", file=sys.stderr)
    if refused:
        raise CommandFailed("Encountered an error deleting one or more topics")


if __name__ == "__main__":
    sys.exit(main())
