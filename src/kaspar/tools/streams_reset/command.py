"""The command: its options, and the steps of a reset in their order."""

import argparse
import sys
import time
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.client.admin import (
    Admin,
    GroupMember,
    delete_topics,
    describe_group_members,
    describe_topics,
    list_topics,
    remove_group_members,
)
from kaspar.client.cluster import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from kaspar.client.offsets import commit_offsets, fetch_committed, list_offsets
from kaspar.tools.client_config import add_command_config
from kaspar.tools.command_line import FAILED, CommandFailed, KafkaOptions, integer, open_admin, read_file, run
from kaspar.tools.kafka_errors import exception_text
from kaspar.tools.streams_reset import internal_topics, positions
from kaspar.tools.streams_reset.positions import Offsets, Positions
from kaspar.tools.streams_reset.times import UnreadableTime, parse_datetime, parse_duration

_DEFAULT_SERVER: Final = "localhost:9092"
_REMOVAL_ATTEMPTS: Final = 4
_TARGETS: Final = ("to-offset", "to-datetime", "by-duration", "to-earliest", "to-latest", "from-file", "shift-by")
"""At most one of these options is given."""


def _options() -> KafkaOptions:
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
        options.add_argument(f"--{name}", action="append", default=[], metavar="TOPICS", help=text)
    options.add_argument("--to-offset", type=integer, metavar="OFFSET", help="reset to this offset")
    options.add_argument("--to-datetime", metavar="TIME", help="reset to this time: YYYY-MM-DDThh:mm:ss.sss")
    options.add_argument("--by-duration", metavar="DURATION", help="reset to so long ago: PnDTnHnMnS")
    options.add_argument("--to-earliest", action="store_true", help="reset to the earliest offsets")
    options.add_argument("--to-latest", action="store_true", help="reset to the latest offsets")
    options.add_argument("--shift-by", type=integer, metavar="N", help="move the offsets by N, which may be negative")
    options.add_argument("--from-file", metavar="FILE", help="reset to the offsets in a file: TOPIC,PARTITION,OFFSET")
    options.add_argument("--force", action="store_true", help="remove members that are still in the group")
    options.add_argument("--dry-run", action="store_true", help="only show what would be done")
    add_command_config(options)
    options.add_argument("--config-file", metavar="FILE", help="deprecated: --command-config")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    parser = _options()
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
    print(f"ERROR: {exception_text(problem) if isinstance(problem, Refused) else problem}", file=sys.stderr)


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
        reset = _OffsetReset(admin, options, existing)
        reset.run()
        _delete_internal_topics(admin, options, existing)
    return reset.not_found


def _split(lists: Iterable[str]) -> list[str]:
    return [topic for each in lists for topic in each.split(",") if topic]


def _shown(topics: Iterable[str]) -> str:
    return f"[{', '.join(topics)}]"


# --- members ----------------------------------------------------------------------------------------------------------


def _make_sure_of_no_members(admin: Admin, group_id: str, *, force: bool) -> None:
    for _ in range(_REMOVAL_ATTEMPTS):
        members = describe_group_members(admin, group_id)
        if not members:
            return
        if not force:
            raise CommandFailed(
                f"Consumer group '{group_id}' is still active and has following members: "
                f"{_shown(map(_described, members))}. Make sure to stop all running application instances before "
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


# --- offsets ----------------------------------------------------------------------------------------------------------


class _OffsetReset:
    def __init__(self, admin: Admin, options: argparse.Namespace, existing: Collection[str]) -> None:
        self._admin = admin
        self._options = options
        self._group_id: str = options.application_id
        self._input = _split(options.input_topics)
        self._intermediate = _split(options.intermediate_topics)
        self._lookup = _ClusterOffsets(admin.client, self._group_id)
        self._existing = {*existing}
        self.not_found = [topic for topic in (*self._input, *self._intermediate) if topic not in self._existing]

    def run(self) -> None:
        if self._intermediate:
            print("WARN: `--intermediate-topics` is deprecated and will be removed in a future release")
        if not self._input and not self._intermediate:
            print("No input or intermediate topics specified. Skipping seek.")
            return
        self._announce()
        offsets = {**self._input_offsets(), **self._intermediate_offsets()}
        if not offsets:
            return
        if not self._options.dry_run:
            self._commit(offsets)
        print("Done.")

    def _announce(self) -> None:
        if self._input:
            print(f"Reset-offsets for input topics {_shown(self._input)}")
        if self._intermediate:
            print(f"Seek-to-end for intermediate topics {_shown(self._intermediate)}")
        for kind, topics in (("input", self._input), ("intermediate", self._intermediate)):
            missing = [topic for topic in topics if topic not in self._existing]
            if missing:
                print(f"Following {kind} topics are not found, skipping them")
            for topic in missing:
                print(f"Topic: {topic}" if kind == "input" else f"Topic:{topic}")

    def _input_offsets(self) -> Offsets:
        partitions = self._partitions(self._input)
        if not partitions:
            return {}
        print(f"Following input topics offsets will be reset to (for consumer group {self._group_id})")
        try:
            target = self._target(partitions)
        except (positions.UnreadablePlan, UnreadableTime):
            print("ERROR: Resetting offsets failed.", file=sys.stderr)
            raise
        for note in target.notes:
            print(note)
        for where in partitions:
            print(f"Topic: {where.topic} Partition: {where.partition} Offset: {target.offsets[where]}")
        return target.offsets

    def _target(self, partitions: Collection[TopicPartition]) -> Positions:
        lookup, options = self._lookup, self._options
        if options.to_offset is not None:
            return positions.to_offset(lookup, partitions, options.to_offset)
        if options.shift_by is not None:
            return positions.shifted(lookup, partitions, options.shift_by)
        if options.to_datetime is not None:
            return positions.to_time(lookup, partitions, parse_datetime(options.to_datetime))
        if options.by_duration is not None:
            now_ms = time.time_ns() // 1_000_000
            return positions.to_time(lookup, partitions, now_ms - parse_duration(options.by_duration))
        if options.from_file is not None:
            return positions.from_plan(lookup, partitions, positions.parse_plan(read_file(options.from_file)))
        if options.to_latest:
            return Positions(lookup.latest(partitions))
        return Positions(lookup.earliest(partitions))

    def _intermediate_offsets(self) -> Offsets:
        partitions = self._partitions([topic for topic in self._intermediate if topic not in self._input])
        if not partitions:
            return {}
        print(
            f"Following intermediate topics offsets will be reset to end (for consumer group {self._group_id})",
            *(f"Topic: {where.topic}" for where in partitions),
            sep="\n",
        )
        return self._lookup.latest(partitions)

    def _partitions(self, topics: Iterable[str]) -> list[TopicPartition]:
        """Of the topics that exist, in order."""
        found = []
        for name, topic in describe_topics(self._admin, [each for each in topics if each in self._existing]).items():
            if isinstance(topic, Refused):
                raise topic
            found += [TopicPartition(name, each.partition) for each in topic.partitions]
        return sorted(found)

    def _commit(self, offsets: Offsets) -> None:
        """Without metadata: that is how a Kaspar Streams application notices the reset."""
        refused = commit_offsets(self._admin.client, self._group_id, offsets)
        for where, code in sorted(refused.items()):
            raise Refused(code, f"The offset of {where} was not committed: {code.name}")


class _ClusterOffsets:
    """The offsets of a cluster, as a consumer without transactions sees them."""

    def __init__(self, client: Client, group_id: str) -> None:
        self._client = client
        self._group_id = group_id

    def earliest(self, partitions: Collection[TopicPartition]) -> Offsets:
        return self.at(partitions, EARLIEST_TIMESTAMP)

    def latest(self, partitions: Collection[TopicPartition]) -> Offsets:
        return self.at(partitions, LATEST_TIMESTAMP)

    def at(self, partitions: Collection[TopicPartition], timestamp_ms: int) -> Offsets:
        found = list_offsets(self._client, dict.fromkeys(partitions, timestamp_ms))
        return {where: listed.offset for where, listed in found.items()}

    def committed(self) -> Offsets:
        return {where: each.offset for where, each in fetch_committed(self._client, self._group_id).items()}


# --- internal topics --------------------------------------------------------------------------------------------------


def _delete_internal_topics(admin: Admin, options: argparse.Namespace, existing: Collection[str]) -> None:
    specified = _split(options.internal_topics)
    own = {*_split(options.input_topics), *_split(options.intermediate_topics)}
    topics = internal_topics.chosen(specified, internal_topics.inferred(options.application_id, existing, own))
    print(f"Deleting {'specified' if specified else 'inferred'} internal topics {_shown(topics)}")
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
