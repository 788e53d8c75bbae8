"""`kaspar compact TOPIC`: makes the brokers compact a topic now, and shows the progress and the result.

The brokers do the work: the command starts it and polls its progress. Ending the command does not end the work.
"""

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import click

from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.base.ids import TopicPartition
from kaspar.cli.command import Command
from kaspar.cli.failures import FAILED, INTERRUPTED
from kaspar.cli.session import Session, cluster_options
from kaspar.client import Client
from kaspar.protocol.messages.compact_topics import (
    CompactTopicsPartition,
    CompactTopicsPartitionResult,
    CompactTopicsRequest,
    CompactTopicsResponse,
    CompactTopicsTopic,
)

VERSION = 0
POLL_INTERVAL_S = 0.1
REQUEST_TIMEOUT_S = 30.0

Progress = dict[int, CompactTopicsPartitionResult]


@click.command(
    "compact",
    cls=Command,
    epilog="Example: kaspar compact salaries --bootstrap-server localhost:9092 --partitions 0,1",
)
@click.argument("topic")
@cluster_options
@click.option(
    "--partitions",
    metavar="N,N",
    callback=lambda context, parameter, text: None if text is None else _numbers(text),
    help="Compact only these partitions (default: all).",
)
@click.option(
    "--timeout", "timeout_s", type=float, metavar="SECONDS", help="Stop waiting after this time (default: no limit)."
)
def command(session: Session, topic: str, partitions: Sequence[int] | None, timeout_s: float | None) -> int:
    """Compact TOPIC now, whatever its dirty ratio: only the last record of each key is kept. Its cleanup.policy must
    contain compact. Records that min.compaction.lag.ms or an open transaction protects are kept too, and tombstones
    until delete.retention.ms has passed. Shows the size before and after. Ctrl-C ends the command, not the
    compaction."""
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    view = _View(topic)
    try:
        with session.client(client_id="kaspar-compact", timeout_s=REQUEST_TIMEOUT_S) as client:
            begun, now = _Compaction(client, topic, partitions).run(deadline, view.show)
    except KeyboardInterrupt:
        print("\nThe broker continues compacting.", file=sys.stderr)
        return INTERRUPTED
    except (KasparError, OSError) as problem:
        view.clear()
        print(f"kaspar: {_sentence(problem, session.servers)}", file=sys.stderr)
        return FAILED
    view.clear()
    for line in [*_table(topic, begun, now), *_notes(topic, begun)]:
        print(line)
    problems = list(_problems(topic, now))
    for sentence in problems:
        print(f"kaspar: {sentence}", file=sys.stderr)
    return FAILED if problems else 0


def _numbers(text: str) -> list[int]:
    try:
        return sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise click.BadParameter("a list of partition numbers, such as 0,1") from None


def _sentence(problem: Exception, servers: str) -> str:
    """The problem as a sentence; a KasparError is one already."""
    if isinstance(problem, KasparError):
        return str(problem)
    if isinstance(problem, TimeoutError):
        return f"no broker of {servers} responded within {REQUEST_TIMEOUT_S:.0f} s"
    return f"no broker can be reached at {servers}: {problem}"


# -- asking ----------------------------------------------------------------------------------------------------------


class NotKaspar(KasparError):
    pass


@dataclass
class _Compaction:
    """A request to compact all or some partitions of a topic, sent to their leaders."""

    client: Client
    topic: str
    only: Sequence[int] | None

    def run(self, deadline: float | None, show: Callable[[Progress], None]) -> tuple[Progress, Progress]:
        """The state of the partitions at the start and at the end: when all are done, or at the deadline."""
        begun = self._ask(dict.fromkeys(self._partitions(), -1))
        now = dict(begun)
        show(now)
        while open_ones := [index for index, one in now.items() if _is_open(one)]:
            if deadline is not None and time.monotonic() > deadline:
                break
            time.sleep(POLL_INTERVAL_S)
            now |= self._ask({index: begun[index].target_offset for index in open_ones})
            show(now)
        return begun, now

    def _partitions(self) -> list[int]:
        (topic,) = self.client.refresh_metadata([self.topic]).topics
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {self.topic} does not exist")
        if topic.error_code != ErrorCode.NONE:
            code = ErrorCode(topic.error_code)
            raise Refused(code, f"looking up the partitions of {self.topic}: {code.name}")
        there = sorted(partition.partition_index for partition in topic.partitions)
        if missing := sorted(set(self.only or ()) - set(there)):
            raise Refused(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"{self.topic} has partitions {there[0]} to {there[-1]}, not {', '.join(map(str, missing))}",
            )
        return there if self.only is None else list(self.only)

    def _ask(self, targets: dict[int, int]) -> Progress:
        """Start compacting (target -1), or ask for the progress towards the targets that the broker returned."""
        by_leader: dict[int, list[CompactTopicsPartition]] = defaultdict(list)
        for index, target in targets.items():
            partition = CompactTopicsPartition(partition_index=index, target_offset=target)
            by_leader[self._leader_of(index)].append(partition)
        results: Progress = {}
        for leader, partitions in by_leader.items():
            topic = CompactTopicsTopic(name=self.topic, partitions=tuple(partitions))
            response = self._ask_broker(leader, CompactTopicsRequest(topics=(topic,)))
            results.update((one.partition_index, one) for each in response.topics for one in each.partitions)
        return results

    def _leader_of(self, index: int) -> int:
        return self.client.leader_of(TopicPartition(self.topic, index))

    def _ask_broker(self, leader: int, request: CompactTopicsRequest) -> CompactTopicsResponse:
        try:
            return self.client.request_broker(leader, request, CompactTopicsResponse, VERSION)
        except ConnectionResetError as problem:
            # A broker closes the connection on a request that it does not know.
            raise NotKaspar(
                f"broker {leader} closed the connection: it is stopping, or it is not a Kaspar broker. "
                "Apache Kafka cannot compact a topic on request"
            ) from problem


def _is_open(one: CompactTopicsPartitionResult) -> bool:
    return one.error_code == ErrorCode.NONE and one.first_dirty_offset < one.target_offset


# -- showing ---------------------------------------------------------------------------------------------------------


class _View:
    """The progress, drawn in place on a terminal; nothing elsewhere."""

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
            f"{one.target_offset:,}   {_bytes(one.size_bytes)}   {_progress(one.cleaned_percent)}"
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
    """For each compacted partition: its size before and after, and how many records were removed."""
    rows = [("partition", "before", "after", "records removed")]
    done = [index for index, one in sorted(now.items()) if one.error_code == ErrorCode.NONE]
    rows += [
        (
            f"{topic}-{index}",
            _bytes(begun[index].size_bytes),
            _bytes(now[index].size_bytes),
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


def _bytes(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count} B"


def _notes(topic: str, begun: Progress) -> Iterable[str]:
    for index, one in sorted(begun.items()):
        waiting = one.log_end_offset - one.target_offset
        if one.error_code == ErrorCode.NONE and waiting > 0:
            yield (
                f"{topic}-{index}: the last {waiting:,} offsets are not compacted yet: min.compaction.lag.ms has not "
                "passed, or a transaction is open"
            )


def _problems(topic: str, now: Progress) -> Iterable[str]:
    same: dict[str, list[int]] = defaultdict(list)
    for index, one in sorted(now.items()):
        if one.error_code != ErrorCode.NONE:
            same[one.error_message or ErrorCode(one.error_code).name].append(index)
        elif _is_open(one):
            same["not done in time; the broker continues compacting"].append(index)
    for sentence, indexes in same.items():
        yield f"{_named(topic, indexes, now)}: {sentence}"


def _named(topic: str, indexes: Collection[int], all_of: Collection[int]) -> str:
    if len(indexes) == len(all_of):
        return topic
    return ", ".join(f"{topic}-{index}" for index in indexes)
