"""`kaspar compact TOPIC`: requests compaction of a topic now, and shows the progress and the result.

The brokers do the work; the command starts it and polls its progress. Ending the command does not end the compaction.
"""

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from kaspar.base.errors import ErrorCode
from kaspar.cli.command import Command
from kaspar.cli.completing import complete_topics
from kaspar.cli.failures import FAILED, INTERRUPTED
from kaspar.cli.output import decimal_size
from kaspar.cli.parameters import PARTITIONS
from kaspar.cli.session import Session, cluster_options
from kaspar.cli.topic_lookup import existing_topics, partitions_of

if TYPE_CHECKING:
    from kaspar.client.admin.session import Admin
    from kaspar.protocol.messages.compact_topics import CompactTopicsPartitionResult

POLL_INTERVAL_S: Final = 0.1

Progress = dict[int, "CompactTopicsPartitionResult"]


@click.command(
    "compact",
    cls=Command,
    epilog="Example: kaspar compact salaries --bootstrap-server localhost:9092 --partitions 0,1",
)
@click.argument("topic", shell_complete=complete_topics)
@cluster_options
@click.option(
    "--partitions",
    metavar="N,N-M",
    type=PARTITIONS,
    help="Compact only these partitions (default: all).",
)
@click.option(
    "--timeout", "timeout_s", type=float, metavar="SECONDS", help="Stop waiting after this time (default: no limit)."
)
def command(session: Session, topic: str, partitions: Sequence[int] | None, timeout_s: float | None) -> int:
    """Compact TOPIC now, regardless of its dirty ratio: only the last record of each key is kept. Its cleanup.policy
    must include compact. Records protected by min.compaction.lag.ms or an open transaction are kept, and so are
    tombstones until delete.retention.ms has passed. Shows the size before and after. Ctrl-C ends the command, not the
    compaction."""
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    view = _View(topic)
    try:
        with session.admin() as admin:
            begun, now = _Compaction(admin, topic, partitions).run(deadline, view.show)
    except KeyboardInterrupt:
        print("\nThe broker continues compacting.", file=sys.stderr)
        return INTERRUPTED
    finally:
        view.clear()
    for line in [*_table(topic, begun, now), *_notes(topic, begun)]:
        print(line)
    problems = list(_problems(topic, now))
    for sentence in problems:
        print(f"kaspar: {sentence}", file=sys.stderr)
    return FAILED if problems else 0


# --- asking -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Compaction:
    """A request to compact all or some partitions of a topic, sent to their leaders."""

    admin: "Admin"
    topic: str
    only: Sequence[int] | None

    def run(self, deadline: float | None, show: Callable[[Progress], None]) -> tuple[Progress, Progress]:
        """Compact until all partitions are done, or the deadline. Returns their state at the start and at the end."""
        from kaspar.client.admin.compaction import NEW_TARGET, compact_partitions

        (described,) = existing_topics(self.admin, [self.topic])
        numbers = [where.partition for where in partitions_of(described, self.only)]
        begun = compact_partitions(self.admin, self.topic, dict.fromkeys(numbers, NEW_TARGET))
        now = dict(begun)
        show(now)
        while targets := {index: begun[index].target_offset for index, one in now.items() if _is_open(one)}:
            if deadline is not None and time.monotonic() > deadline:
                break
            time.sleep(POLL_INTERVAL_S)
            now |= compact_partitions(self.admin, self.topic, targets)
            show(now)
        return begun, now


def _is_open(one: "CompactTopicsPartitionResult") -> bool:
    return one.error_code == ErrorCode.NONE and one.first_dirty_offset < one.target_offset


# -- showing ---------------------------------------------------------------------------------------------------------


class _View:
    """Shows the progress in place on a terminal. Without a terminal it shows nothing."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._in_place = sys.stdout.isatty()
        self._drawn = 0

    def show(self, progress: Progress) -> None:
        if not self._in_place:
            return
        self.clear()
        lines = [
            f"  {self._topic}-{one.partition_index}   compacted up to {max(0, one.first_dirty_offset):,} of "
            f"{one.target_offset:,}   {decimal_size(one.size_bytes)}   {_progress(one.cleaned_percent)}"
            for one in progress.values()
            if _is_open(one)
        ]
        print("".join(f"{line}\n" for line in lines), end="", flush=True)
        self._drawn = len(lines)

    def clear(self) -> None:
        if self._drawn:
            print(f"\x1b[{self._drawn}A\x1b[J", end="", flush=True)
            self._drawn = 0


def _progress(percent: int) -> str:
    return "waiting" if percent < 0 else f"compacting, {percent} %"


def _table(topic: str, begun: Progress, now: Progress) -> list[str]:
    """A table of the compacted partitions: the size before and after, and the number of removed records."""
    rows = [("partition", "before", "after", "records removed")]
    done = [index for index, one in sorted(now.items()) if one.error_code == ErrorCode.NONE]
    rows += [
        (
            f"{topic}-{index}",
            decimal_size(begun[index].size_bytes),
            decimal_size(now[index].size_bytes),
            _removed(begun[index].records_removed, now[index].records_removed),
        )
        for index in done
    ]
    if not done:
        return []
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return [
        "   ".join([row[0].ljust(widths[0]), *(row[column].rjust(widths[column]) for column in (1, 2, 3))])
        for row in rows
    ]


def _removed(before: int, after: int) -> str:
    return f"{after - before:,}" if after >= before else "unknown: the broker was restarted"


def _notes(topic: str, begun: Progress) -> Iterable[str]:
    for index, one in sorted(begun.items()):
        waiting = one.log_end_offset - one.target_offset
        if one.error_code == ErrorCode.NONE and waiting > 0:
            yield (
                f"{topic}-{index}: the last {waiting:,} offsets are not compacted yet, because min.compaction.lag.ms "
                "has not passed or a transaction is open"
            )


def _problems(topic: str, now: Progress) -> Iterable[str]:
    same: dict[str, list[int]] = defaultdict(list)
    for index, one in sorted(now.items()):
        if one.error_code != ErrorCode.NONE:
            same[one.error_message or ErrorCode(one.error_code).name].append(index)
        elif _is_open(one):
            same["timed out; the broker continues compacting"].append(index)
    for sentence, indexes in same.items():
        yield f"{_named(topic, indexes, now)}: {sentence}"


def _named(topic: str, indexes: Collection[int], all_of: Collection[int]) -> str:
    if len(indexes) == len(all_of):
        return topic
    return ", ".join(f"{topic}-{index}" for index in indexes)
