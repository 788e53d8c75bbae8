"""`kaspar bench`: measures produce, consume and end-to-end performance."""

import contextlib
import random
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import click

from kaspar.cli.bench.results import columns_of
from kaspar.cli.command import Group
from kaspar.cli.completing import complete_topics
from kaspar.cli.failures import FAILED
from kaspar.cli.progress import progress
from kaspar.cli.session import Session, common_options

if TYPE_CHECKING:
    from kaspar.base.ids import TopicPartition
    from kaspar.cli.bench.loads import Measured
    from kaspar.client.admin.session import Admin

_EXAMPLES: Final = """\
examples:
  kaspar bench produce perf --create                     a million records of 100 bytes, as fast as possible
  kaspar bench consume perf                              reads them all
  kaspar bench latency perf                              from the producer to a consumer, one record at a time

The loads are those of kafka-producer-perf-test, kafka-consumer-perf-test and kafka-e2e-latency.
"""
_PRODUCE_EXAMPLES: Final = """\
examples:
  kaspar bench produce perf --create
  kaspar bench produce perf -n 100000 --size 1000 -z lz4
  kaspar bench produce perf --rate 10000 --json          latencies at a steady rate
  kaspar bench produce perf -X linger.ms=50 -X batch.size=200000 --acks 1
"""
_CONSUME_EXAMPLES: Final = """\
examples:
  kaspar bench consume perf
  kaspar bench consume perf -n 1000000 --isolation committed --json
"""
_LATENCY_EXAMPLES: Final = """\
examples:
  kaspar bench latency perf --create
  kaspar bench latency perf -n 10000 --size 1000 --acks 1 --json
"""


@click.group("bench", cls=Group, epilog=_EXAMPLES)
def command() -> None:
    """Measure a cluster: records and bytes per second, and latencies. Use a dedicated topic: the records written to it
    are random letters."""


@command.command("produce", epilog=_PRODUCE_EXAMPLES)
@click.argument("topic", shell_complete=complete_topics)
@click.option(
    "-n",
    "--records",
    type=click.IntRange(min=1),
    default=1_000_000,
    metavar="N",
    help="Number of records (default: 1000000).",
)
@click.option(
    "--size", type=click.IntRange(min=1), default=100, metavar="BYTES", help="The size of a value (default: 100)."
)
@click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help="Records per second (default: unlimited; latencies then include queueing in full buffers).",
)
@click.option(
    "-z",
    "--compression",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    help="Compression of batches (default: none).",
)
@click.option(
    "--acks",
    type=click.Choice(["all", "1", "0"]),
    default="all",
    help="Required acknowledgements (default: all).",
)
@click.option("--create", is_flag=True, help="Create the topic if it does not exist.")
@common_options
def produce_command(
    session: Session,
    topic: str,
    records: int,
    size: int,
    rate: float | None,
    compression: str,
    acks: str,
    create: bool,
) -> None:
    """Write records of random letters; measure the rate and the latency of each record."""
    from kaspar.cli.bench.loads import produce
    from kaspar.cli.topic_creation import ensure_topic

    with session.admin() as admin:
        ensure_topic(admin, topic, create=create)
        properties = {**session.properties, "compression.type": compression, "acks": acks}
        with progress(records, shown=True) as advance:
            measured = produce(admin.client, topic, properties, records=records, size=size, rate=rate, advance=advance)
    _show(session, measured)


@command.command("consume", epilog=_CONSUME_EXAMPLES)
@click.argument("topic", shell_complete=complete_topics)
@click.option("-n", "--records", type=click.IntRange(min=1), metavar="N", help="Number of records (default: all).")
@click.option(
    "--isolation",
    type=click.Choice(["committed", "uncommitted"]),
    default="uncommitted",
    help="Isolation level (default: uncommitted).",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    metavar="SECONDS",
    help="Stop after this time without records (default: 10).",
)
@common_options
def consume_command(session: Session, topic: str, records: int | None, isolation: str, timeout_s: float) -> int:
    """Read a topic from the start and measure the rate."""
    from kaspar.cli.bench.loads import consume
    from kaspar.cli.topic_lookup import existing_topics, partitions_of

    with session.admin() as admin:
        (described,) = existing_topics(admin, [topic])
        if records is None:
            records = _records_of(admin, partitions_of(described))
        with progress(records, shown=True) as advance, _new_group(admin) as group:
            measured = consume(
                admin.client,
                topic,
                group=group,
                records=records,
                timeout_s=timeout_s,
                read_committed=isolation == "committed",
                advance=advance,
            )
    _show(session, measured)
    if not measured.is_complete:
        print(
            f"kaspar: received only {measured.throughput.records:,} of {records:,} records within {timeout_s:g} s",
            file=sys.stderr,
        )
        return FAILED
    return 0


@command.command("latency", epilog=_LATENCY_EXAMPLES)
@click.argument("topic", shell_complete=complete_topics)
@click.option(
    "-n", "--records", type=click.IntRange(min=1), default=1_000, metavar="N", help="Number of records (default: 1000)."
)
@click.option(
    "--size", type=click.IntRange(min=1), default=100, metavar="BYTES", help="The size of a value (default: 100)."
)
@click.option(
    "--acks", type=click.Choice(["all", "1"]), default="all", help="Required acknowledgements (default: all)."
)
@click.option("--create", is_flag=True, help="Create the topic if it does not exist.")
@common_options
def latency_command(session: Session, topic: str, records: int, size: int, acks: str, create: bool) -> None:
    """Write records and read them back, one at a time, and measure the end-to-end latency. Nothing else may write to
    the topic during the test."""
    from kaspar.cli.bench.loads import pass_on
    from kaspar.cli.topic_creation import ensure_topic

    with session.admin() as admin:
        ensure_topic(admin, topic, create=create)
        with progress(records, shown=True) as advance:
            measured = pass_on(
                admin.client, topic, records=records, size=size, acks=-1 if acks == "all" else 1, advance=advance
            )
    _show(session, measured)


@contextlib.contextmanager
def _new_group(admin: "Admin") -> Iterator[str]:
    """A new group name. The group is deleted at the end."""
    from kaspar.client.admin.groups import delete_groups

    group = f"kaspar-bench-{random.getrandbits(32):08x}"
    try:
        yield group
    finally:
        delete_groups(admin, [group])  # if this is refused, the group expires after offsets.retention.minutes


def _show(session: Session, measured: "Measured") -> None:
    row = measured.row()
    session.output.record(row, lambda: session.output.text_table(columns_of(row), [row]))


def _records_of(admin: "Admin", partitions: "Sequence[TopicPartition]") -> int:
    from kaspar.client.cluster import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
    from kaspar.client.offsets import offsets_at

    latest = offsets_at(admin.client, partitions, LATEST_TIMESTAMP)
    earliest = offsets_at(admin.client, partitions, EARLIEST_TIMESTAMP)
    return sum(latest[where] - earliest[where] for where in partitions)
