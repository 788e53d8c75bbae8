"""`kaspar produce`: write records to a topic."""

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import click

from kaspar.cli.command import Command
from kaspar.cli.completing import complete_topics
from kaspar.cli.failures import WrongUsage
from kaspar.cli.interrupts import Interrupts
from kaspar.cli.parameters import Parsed, Words
from kaspar.cli.producing.delivery import Delivery
from kaspar.cli.producing.reading import Entry, InputFormat
from kaspar.cli.producing.report import Report
from kaspar.cli.producing.run import Run
from kaspar.cli.producing.shaping import Shape, parse_header
from kaspar.cli.producing.sources import Files, Source, drawn, prompted
from kaspar.cli.producing.template import Template, parse_template
from kaspar.cli.progress import progress
from kaspar.cli.record_clients import require_client, settings_of_producer
from kaspar.cli.records.times import parse_time
from kaspar.cli.records.types import WRITABLE, RecordType
from kaspar.cli.session import Session, cluster_options

_EXAMPLES: Final = """\
examples:
  echo hello | kaspar produce greetings                       a record for each line
  kaspar produce users -k alice --value '{"age": 30}'         one record
  kaspar produce users -k alice --value '' --tombstone        one that deletes alice from a compacted topic
  kaspar produce users people.csv --key-field id              a JSON object for each row, its id as the key
  kaspar produce users people.json --key-field '$.name.last'  JSON: one value per line, or an array
  kaspar produce notes --key-separator : < notes.txt          lines such as alice:hello
  kaspar consume a --json --until end | kaspar produce b --input records     copy records with keys and headers
  kaspar produce orders --rate 100 --count 1000 --seed 7 --key '{{choice a b c}}' \\
      --template '{"user": "{{name}}", "amount": {{float 1 100}}, "at": "{{now}}"}'

'kaspar produce --template-words' lists the placeholders.
"""


def _words(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        from kaspar.cli.producing.fakers import FAKERS

        calls = {f"{{{{{each.name} {each.arguments}".rstrip() + "}}": each.explanation for each in FAKERS.values()}
        width = max(map(len, calls))
        click.echo("\n".join(f"{call:{width}}  {explanation}" for call, explanation in calls.items()))
        ctx.exit()


def _template(text: str) -> Template:
    """Parse a template. @FILE stands for the contents of a file."""
    if not text.startswith("@"):
        return parse_template(text)
    try:
        with open(text[1:], encoding="utf-8") as file:
            return parse_template(file.read().strip())
    except (OSError, UnicodeDecodeError) as problem:
        raise ValueError(f"{text[1:]}: {getattr(problem, 'strerror', None) or problem}") from None


@click.command("produce", cls=Command, epilog=_EXAMPLES)
@click.argument("topic", shell_complete=complete_topics)
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path())
@click.option(
    "-i",
    "--input",
    "form",
    type=Words(InputFormat),
    help="Input format: lines, json (one value per line, or an array), csv (with a header row), records (as 'kaspar "
    "consume --json' prints them), whole (each file is a record). Default: by the file name, or lines.",
)
@click.option("--value", metavar="TEXT", help="Write one record with this value instead of reading input.")
@click.option("-k", "--key", metavar="TEXT", help="The key of all records; with --template, also a template.")
@click.option("--key-separator", metavar="TEXT", help="Separates the key from the value in each line.")
@click.option("--key-field", metavar="FIELD", help="The column, field or JSON path to use as the key.")
@click.option(
    "--value-field", metavar="FIELD", help="The column, field or JSON path to use as the value (default: everything)."
)
@click.option(
    "--key-type",
    type=Words(WRITABLE),
    default=RecordType.STRING,
    help="Type of keys (default: string).",
)
@click.option(
    "--value-type",
    type=Words(WRITABLE),
    default=RecordType.STRING,
    help="Type of values (default: string).",
)
@click.option(
    "-H",
    "--header",
    "headers",
    multiple=True,
    metavar="NAME=VALUE",
    type=Parsed("header", parse_header),
    help="A header for all records; may be repeated.",
)
@click.option(
    "-p",
    "--partition",
    type=click.IntRange(min=0),
    metavar="N",
    help="The partition (default: by the hash of the key).",
)
@click.option(
    "--timestamp",
    "timestamp_ms",
    metavar="TIME",
    type=Parsed("time", lambda text: parse_time(text, datetime.now().astimezone())),
    help="The timestamp of all records: '1 hour ago', 2026-11-17T10:00, milliseconds since 1970 (default: now).",
)
@click.option("--tombstone", "tombstones", is_flag=True, help="Write an empty value or a JSON null as a tombstone.")
@click.option("--delimiter", default=",", metavar="CHAR", help="Delimiter of CSV cells (default: a comma).")
@click.option("--numbers", is_flag=True, help="Parse numeric CSV cells as numbers.")
@click.option(
    "--template",
    metavar="TEXT|@FILE",
    type=Parsed("template", _template),
    help="Generate values from this template; {{placeholders}} are filled per record.",
)
@click.option(
    "--template-words",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_words,
    help="List the placeholders and exit.",
)
@click.option("-n", "--count", type=click.IntRange(min=1), metavar="N", help="Stop after N records.")
@click.option(
    "--rate", type=click.FloatRange(min=0, min_open=True), metavar="N", help="Maximum number of records per second."
)
@click.option(
    "--seed", type=int, metavar="N", help="Seed for the template's random values; the same seed repeats them."
)
@click.option(
    "-z",
    "--compression",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    help="Compression of batches (default: none).",
)
@click.option("--acks", type=click.Choice(["all", "1", "0"]), help="Required acknowledgements (default: all).")
@click.option("--create", is_flag=True, help="Create the topic if it does not exist.")
@click.option("-v", "--verbose", is_flag=True, help="Print the position of each record: topic/partition@offset.")
@click.option("-q", "--quiet", is_flag=True, help="No summary.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON on standard output.")
@cluster_options
def command(
    session: Session,
    topic: str,
    files: tuple[str, ...],
    form: InputFormat | None,
    value: str | None,
    key: str | None,
    key_separator: str | None,
    key_field: str | None,
    value_field: str | None,
    key_type: RecordType,
    value_type: RecordType,
    headers: tuple[tuple[str, bytes | None], ...],
    partition: int | None,
    timestamp_ms: int | None,
    tombstones: bool,
    delimiter: str,
    numbers: bool,
    template: Template | None,
    count: int | None,
    rate: float | None,
    seed: int | None,
    compression: str | None,
    acks: str | None,
    create: bool,
    verbose: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Write records to a topic: from files, standard input or a template.

    A record that fails is reported with its line; the others are still written, and the exit code is 1.
    """
    if len(delimiter) != 1:
        raise WrongUsage("--delimiter must be one character")
    if sum((key is not None, key_separator is not None, key_field is not None)) > 1:
        raise WrongUsage("only one of --key, --key-separator and --key-field can be given")
    if (value is not None) + (template is not None) + bool(files) > 1:
        raise WrongUsage("only one of files, --value and --template can be given")
    shape = Shape(
        key=key if template is None else None,
        key_separator=key_separator,
        key_field=key_field,
        value_field=value_field,
        key_type=key_type,
        value_type=value_type,
        headers=headers,
        partition=partition,
        timestamp_ms=timestamp_ms,
        tombstones=tombstones,
    )
    looks_into_values = key_field is not None or value_field is not None
    if template is not None:
        key_template = None if key is None else _key_template(key)
        source = drawn(template, key_template, count=count, seed=seed, needs_fields=looks_into_values)
    elif value is not None:
        source = Source(iter([Entry("the value", value)]))
    elif not files and form is None and not looks_into_values and sys.stdin.isatty():
        source = prompted()
    else:
        of_input = InputFormat.JSON if looks_into_values else InputFormat.LINES
        source = Files(files, form, of_input, delimiter, numbers).source()
    properties = {"compression.type": compression, "acks": acks}
    printed = _Printed(verbose=verbose, quiet=quiet, as_json=as_json)
    return _produce(session, topic, source, shape, properties, printed, count=count, rate=rate, create=create)


@dataclass(frozen=True, slots=True)
class _Printed:
    """The options for what the command prints."""

    verbose: bool
    quiet: bool
    as_json: bool


def _produce(
    session: Session,
    topic: str,
    source: Source,
    shape: Shape,
    properties: Mapping[str, str | None],
    printed: _Printed,
    *,
    count: int | None,
    rate: float | None,
    create: bool,
) -> int:
    from kaspar.cli.topic_creation import ensure_topic

    require_client()
    settings = settings_of_producer(session, {name: text for name, text in properties.items() if text is not None})
    report = Report(topic)
    with Interrupts() as interrupts:
        # Created before the topic is looked up, because librdkafka waits half a second before it requests a producer
        # id.
        on_delivered = _print_at_once if printed.verbose else None
        delivery = Delivery(settings, topic, report, interrupts, on_delivered=on_delivered)
        with session.admin() as admin:
            ensure_topic(admin, topic, create=create, partition=shape.partition)
        started = time.monotonic()
        with progress(source.total, shown=not (printed.verbose or printed.quiet or source.is_typed)) as advance:
            code = Run(source, shape, delivery, report, count, rate, advance).run()
    _summarize(report, time.monotonic() - started, printed)
    return code


def _print_at_once(line: str) -> None:
    print(line, flush=True)


def _key_template(text: str) -> Template:
    try:
        return parse_template(text)
    except ValueError as problem:
        raise WrongUsage(f"--key: {problem}") from None


def _summarize(report: Report, seconds: float, printed: _Printed) -> None:
    if printed.as_json:
        import json

        print(json.dumps(report.as_json(seconds)))
    elif not printed.quiet:
        print(report.summary(seconds), file=sys.stderr)
