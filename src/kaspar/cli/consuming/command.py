"""`kaspar consume`: print records of topics."""

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

import click

from kaspar.cli.command import Command
from kaspar.cli.completing import complete_groups, complete_topics
from kaspar.cli.consuming.format_string import compile_format
from kaspar.cli.consuming.outputs import Output, Show, show, show_parts
from kaspar.cli.consuming.positions import AtTime, End, Position, Start, parse_position, parse_until
from kaspar.cli.consuming.pretty import COLOURS, NO_COLOURS
from kaspar.cli.consuming.printing import Printer
from kaspar.cli.consuming.where import Where, compile_where
from kaspar.cli.failures import WrongUsage
from kaspar.cli.parameters import PARTITIONS, Parsed, Words
from kaspar.cli.record_clients import require_client, settings_of_consumer
from kaspar.cli.records.json_path import JsonPath, parse_json_path
from kaspar.cli.records.record import RawRecord, ReadRecord
from kaspar.cli.records.types import READABLE, RecordType
from kaspar.cli.session import OF_REGISTRY, Session, cluster_options
from kaspar.cli.topic_lookup import matching_topics, partitions_of
from kaspar.cli.topic_names import expression_of, is_pattern

if TYPE_CHECKING:
    from kaspar.base.ids import TopicPartition
    from kaspar.cli.consuming.remaining import Remaining
    from kaspar.client.admin.session import Admin

_EXAMPLES: Final = """\
examples:
  kaspar consume orders                                       all records, then new ones as they arrive, until Ctrl-C
  kaspar consume orders --from '10 minutes ago' --until end   those of the last ten minutes
  kaspar consume orders --from -5                             the last five of each partition, then new ones
  kaspar consume 'shop-*' -n 20 --json                        twenty records of all topics named shop-*, as JSON
  kaspar consume orders --where 'value["amount"] > 10 and key.startswith("a")'
  kaspar consume orders --path '$.customer.id' | sort | uniq -c
  kaspar consume orders -f '%t %p %o %k %s\\n'                 in kcat's format language
  kaspar consume orders --group billing                       as a member of a group; commits printed records
  kaspar consume orders --schema-registry http://localhost:8081    Avro, JSON Schema and Protobuf as JSON

--where runs its expression as Python, with key, value (parsed if it is JSON), headers, timestamp, partition, offset and
topic. Never use an expression that you do not trust.
"""


@dataclass(frozen=True, slots=True)
class _Choice:
    """What to read, and where to start and stop."""

    topics: tuple[str, ...]
    position: Position
    until: End | AtTime | None
    """None: continue with new records."""
    partitions: tuple[int, ...] | None
    group: str | None
    read_committed: bool

    def check(self) -> None:
        if self.group is not None and self.partitions is not None:
            raise WrongUsage("--partitions cannot be used with --group: the group assigns partitions")
        if self.group is not None and not isinstance(self.position, Start | End):
            raise WrongUsage(
                "with --group, --from is start or end, for partitions without a committed offset; "
                "'kaspar group seek' moves a group"
            )


def _now() -> datetime:
    return datetime.now().astimezone()


@click.command("consume", cls=Command, epilog=_EXAMPLES)
@click.argument("topics", metavar="TOPIC...", nargs=-1, required=True, shell_complete=complete_topics)
@click.option(
    "--from",
    "position",
    metavar="WHERE",
    type=Parsed("position", lambda text: parse_position(text, _now())),
    default="start",
    help="start, end, an offset, -N for the last N of each partition, or a time: '10 minutes ago', yesterday, "
    "2026-11-17T10:00, milliseconds since 1970 (default: start).",
)
@click.option(
    "--until",
    metavar="WHERE",
    type=Parsed("until", lambda text: parse_until(text, _now())),
    help="Stop at the current end (`end`) or at a time (default in a pipe: end).",
)
@click.option("--follow", is_flag=True, help="Wait for new records (default on a terminal).")
@click.option("-n", "--count", type=click.IntRange(min=1), metavar="N", help="Stop after N printed records.")
@click.option(
    "-p",
    "--partitions",
    metavar="N,N-M",
    type=PARTITIONS,
    help="Only these partitions.",
)
@click.option(
    "-g",
    "--group",
    metavar="NAME",
    shell_complete=complete_groups,
    help="Read as a member of this group, and commit printed records.",
)
@click.option(
    "--isolation",
    type=click.Choice(["committed", "uncommitted"]),
    default="committed",
    help="Isolation level (default: committed).",
)
@click.option(
    "--where", metavar="PYTHON", type=Parsed("where", compile_where), help="Print only records for which this is true."
)
@click.option(
    "--path", metavar="JSONPATH", type=Parsed("path", parse_json_path), help="Print only this part of each JSON value."
)
@click.option(
    "-o",
    "--output",
    type=Words(Output),
    help="Output format (default: pretty on a terminal, value in a pipe).",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --output json: one JSON object per line.")
@click.option(
    "-f",
    "--format",
    "format_string",
    metavar="TEXT",
    type=Parsed("format", compile_format),
    help="kcat format: %s value, %k key, %t topic, %p partition, %o offset, %T timestamp, %h headers, %S and %K sizes.",
)
@click.option(
    "--meta", is_flag=True, help="Also print topic, partition, offset and timestamp; with pretty and json, all details."
)
@click.option(
    "--separator", default="\t", metavar="TEXT", help="Separator between the columns of a line (default: a tab)."
)
@click.option("--key-type", type=Words(READABLE), default=RecordType.AUTO, help="Type of keys (default: auto).")
@click.option(
    "--value-type",
    type=Words(READABLE),
    default=RecordType.AUTO,
    help="Type of values (default: auto, which is JSON if it parses, otherwise text, otherwise bytes).",
)
@click.option(
    "--schema-registry",
    metavar="URL",
    help="Decode keys and values with the schemas of this registry: Avro, JSON Schema and Protobuf are printed as "
    "JSON.",
)
@click.option("--no-color", is_flag=True, help="No colours, as NO_COLOR=1 in the environment.")
@cluster_options
def command(
    session: Session,
    topics: tuple[str, ...],
    position: Position,
    until: End | AtTime | None,
    follow: bool,
    count: int | None,
    partitions: tuple[int, ...] | None,
    group: str | None,
    isolation: str,
    where: Where | None,
    path: JsonPath | None,
    output: Output | None,
    as_json: bool,
    format_string: Callable[[ReadRecord], bytes] | None,
    meta: bool,
    separator: str,
    key_type: RecordType,
    value_type: RecordType,
    schema_registry: str | None,
    no_color: bool,
) -> int:
    """Print records of topics: by name, or by a pattern such as 'shop-*' or '^shop-[0-9]+$'.

    On a terminal it continues with new records until Ctrl-C; in a pipe it stops at the current end.
    """
    if follow and until is not None:
        raise WrongUsage("--follow and --until cannot be combined")
    if until is None and not follow and not sys.stdout.isatty():
        until = End()
    choice = _Choice(topics, position, until, partitions, group, isolation == "committed")
    choice.check()
    shown = _shown(Output.JSON if as_json else output, format_string, path, meta, separator, no_color)
    decode = None if schema_registry is None else _schema_decoder(session, schema_registry, key_type, value_type)
    printer = Printer(shown, where, count, key_type, value_type, decode)
    require_client()
    try:
        _consume(session, choice, printer)
    finally:
        code = printer.report()
    return code


def _schema_decoder(
    session: Session, url: str, key_type: RecordType, value_type: RecordType
) -> Callable[[RawRecord], RawRecord]:
    """A decoder for keys and values without an explicit type. The session's properties have the registry's log-in."""
    from kaspar.cli.consuming.schemas import SchemaDecoder

    guessed = (RecordType.AUTO, RecordType.JSON)
    of_registry = {name: value for name, value in session.properties.items() if name.startswith(OF_REGISTRY)}
    properties = {**of_registry, "schema.registry.url": url}
    return SchemaDecoder(properties, reads_keys=key_type in guessed, reads_values=value_type in guessed).decode


def _shown(
    output: Output | None,
    format_string: Callable[[ReadRecord], bytes] | None,
    path: JsonPath | None,
    meta: bool,
    separator: str,
    no_color: bool,
) -> Show:
    if sum(each is not None for each in (output, format_string, path)) > 1:
        raise WrongUsage("only one of --output (or --json), --format and --path can be given")
    if format_string is not None:
        return format_string
    if path is not None:
        return show_parts(path)
    is_terminal = sys.stdout.isatty()
    has_colours = is_terminal and not no_color and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return show(
        output or (Output.PRETTY if is_terminal else Output.VALUE),
        meta=meta,
        separator=separator,
        colours=COLOURS if has_colours else NO_COLOURS,
        width=shutil.get_terminal_size().columns,
    )


def _consume(session: Session, choice: _Choice, printer: Printer) -> None:
    from kaspar.cli.consuming.planning import find_starts
    from kaspar.cli.consuming.reading import read_as_member, read_partitions

    with session.admin() as admin:
        topics = matching_topics(admin, choice.topics)
        wanted = [where for topic in topics for where in partitions_of(topic, choice.partitions)]
        starts = find_starts(admin.client, wanted, choice.position) if choice.group is None else {}
        remaining = _remaining(admin, choice, wanted)
    properties = {
        "group.id": choice.group or "kaspar-consume",  # librdkafka requires one; without --group it is never used
        "isolation.level": "read_committed" if choice.read_committed else "read_uncommitted",
        "auto.offset.reset": "latest" if isinstance(choice.position, End) else "earliest",
        "allow.auto.create.topics": "false",
    }
    settings = {**settings_of_consumer(session, properties), "enable.partition.eof": remaining is not None}
    if choice.group is None:
        read_partitions(settings, starts, remaining, printer)
    else:
        subscription = [expression_of(word) if is_pattern(word) else word for word in choice.topics]
        read_as_member(settings, subscription, remaining, printer)


def _remaining(admin: "Admin", choice: _Choice, wanted: "Sequence[TopicPartition]") -> "Remaining | None":
    if choice.until is None:
        return None
    from kaspar.cli.consuming.planning import find_ends
    from kaspar.cli.consuming.remaining import Remaining

    return Remaining(find_ends(admin.client, wanted, choice.until, read_committed=choice.read_committed))
