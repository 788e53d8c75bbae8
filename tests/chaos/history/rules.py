"""What must hold of every history, whatever was killed, paused or cut off while it was made.

Each rule looks at the whole history and yields a sentence for each violation. `check` runs all of them.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.chaos.history.events import (
    Acknowledged,
    CommitAcknowledged,
    CommitAsked,
    Derived,
    EndAsked,
    Ended,
    Event,
    OffsetFetched,
    Read,
)
from tests.chaos.history.logs import Fate, LoggedRecord, Logs, PartitionLog, StoredCommit, stored_commits
from tests.chaos.history.memberships import stored_memberships
from tests.chaos.history.ownership import one_owner_at_a_time, one_owner_per_epoch
from tests.chaos.ledger import number_in

Place = tuple[str, int, int]  # topic, partition, offset
Transaction = tuple[str, int]  # actor and its number


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Records of `source` become records of `target`, in the partition of the same number, by members of `group`."""

    source: str
    target: str
    group: str


@dataclass(frozen=True, slots=True)
class History:
    """`ended`: every actor had time to finish, so unfinished work is a violation, too."""

    events: list[Event]
    logs: Logs
    pipelines: tuple[Pipeline, ...] = ()
    ended: bool = True
    commits: list[StoredCommit] = field(default_factory=list)

    @classmethod
    def of(cls, events: list[Event], logs: Logs, *pipelines: Pipeline, ended: bool = True) -> "History":
        return cls(events, logs, pipelines, ended, stored_commits(logs))

    def log(self, topic: str, partition: int) -> PartitionLog:
        return self.logs.get((topic, partition), PartitionLog())

    def partitions(self, topic: str) -> list[int]:
        return sorted(partition for name, partition in self.logs if name == topic)

    def derived(self) -> Iterator[tuple[Place, LoggedRecord, Derived]]:
        """Everything that processors wrote, visible or not."""
        for pipeline in self.pipelines:
            for partition in self.partitions(pipeline.target):
                for record in self.log(pipeline.target, partition).records:
                    yield (pipeline.target, partition, record.offset), record, Derived.parse(record.text)

    def committed_offset(self, group: str, topic: str, partition: int) -> int:
        """Where the group is in the end: 0 if it has not committed."""
        wanted = (group, topic, partition)
        offsets = [commit.offset for commit in self.commits if commit[:3] == wanted]
        return (offsets[-1] if offsets else None) or 0


class Violation(NamedTuple):
    rule: str
    what: str


def check(history: History) -> list[Violation]:
    return [Violation(name, what) for name, rule in RULES.items() for what in rule(history)]


def whole_logs(history: History) -> Iterator[str]:
    """Offsets leave no gap, and in the end every transaction has ended."""
    for (topic, partition), log in history.logs.items():
        for gap in log.gaps:
            yield f"{topic}-{partition}: {gap}"
        if history.ended:
            hanging = [record.offset for record in log.records if record.fate is Fate.OPEN]
            if hanging:
                yield f"{topic}-{partition}: the transaction of the records from {hanging[0]} on never ended"


def acknowledged_is_there(history: History) -> Iterator[str]:
    """A record is at the offset that its acknowledgement named, or somewhere in its partition if it named none."""
    by_place = {
        (topic, partition, record.offset): record.text
        for (topic, partition), log in history.logs.items()
        for record in log.records
    }
    anywhere = {(topic, partition, text) for (topic, partition, _), text in by_place.items()}
    for event in history.events:
        if not isinstance(event, Acknowledged):
            continue
        if event.offset is None:
            if (event.topic, event.partition, event.value) not in anywhere:
                yield f"{event.topic}-{event.partition}: acknowledged to {event.actor}: {event.value!r} is not there"
            continue
        found = by_place.get((event.topic, event.partition, event.offset))
        if found != event.value:
            place = f"{event.topic}-{event.partition}@{event.offset}"
            yield f"{place}: acknowledged to {event.actor} for {event.value!r}, there is {found!r}"


def only_committed_is_read(history: History) -> Iterator[str]:
    """A read_committed reader is given no record that was aborted, or whose transaction had not ended, or that is not
    there.
    """
    fates = {
        (topic, partition, record.offset): record
        for (topic, partition), log in history.logs.items()
        for record in log.records
    }
    commit_asked_at = {
        (event.actor, event.transaction): event.at_ns
        for event in history.events
        if isinstance(event, EndAsked) and event.commit
    }
    targets = {pipeline.target for pipeline in history.pipelines}
    for event in history.events:
        if not isinstance(event, Read):
            continue
        place = f"{event.topic}-{event.partition}@{event.offset}"
        record = fates.get((event.topic, event.partition, event.offset))
        if record is None or record.text != event.value:
            yield f"{place}: {event.actor} read {event.value!r}, which is not there"
        elif not record.visible:
            yield f"{place}: {event.actor} read a record that is {record.fate.value}"
        elif event.topic in targets:
            derived = Derived.parse(event.value)
            asked_at = commit_asked_at.get((derived.actor, derived.transaction))
            if asked_at is None or event.at_ns < asked_at:
                yield f"{place}: {event.actor} read a record before its commit was asked for"


def readers_skip_nothing(history: History) -> Iterator[str]:
    """From the first record that a reader was given to the last: every committed one, once, in the order of the log."""
    read: dict[tuple[str, str, int], list[int]] = defaultdict(list)
    for event in history.events:
        if isinstance(event, Read):
            read[event.actor, event.topic, event.partition].append(event.offset)
    for (actor, topic, partition), offsets in read.items():
        expected = [
            record.offset
            for record in history.log(topic, partition).visible
            if offsets[0] <= record.offset <= max(offsets)
        ]
        if offsets != expected:
            yield f"{topic}-{partition}: {actor} read {_difference(offsets, expected)}"


def transactions_are_whole(history: History) -> Iterator[str]:
    """All records of a transaction have one outcome, the one that was reported to its producer or that it asked for."""
    fates: dict[Transaction, set[Fate]] = defaultdict(set)
    for _, record, derived in history.derived():
        fates[derived.actor, derived.transaction].add(record.fate)
    reported = {(event.actor, event.transaction): event for event in history.events if isinstance(event, Ended)}
    asked: dict[Transaction, set[bool]] = defaultdict(set)
    for event in history.events:
        if isinstance(event, EndAsked):
            asked[event.actor, event.transaction].add(event.commit)
    for transaction, seen in fates.items():
        actor, number = transaction
        is_now = " and partly ".join(sorted(fate.value for fate in seen))
        if len(seen) > 1:
            yield f"transaction {number} of {actor} is partly {is_now}"
        ended = reported.get(transaction)
        if ended is not None and seen != {Fate.COMMITTED if ended.committed else Fate.ABORTED}:
            yield f"transaction {number} of {actor} was reported as {_outcome(ended.committed)}, and is {is_now}"
        if Fate.COMMITTED in seen and True not in asked[transaction]:
            yield f"transaction {number} of {actor} is committed, and nobody asked for that"


def every_record_once(history: History) -> Iterator[str]:
    """In consume-transform-produce: each record that the group has passed became one visible record, and no other."""
    for pipeline in history.pipelines:
        for partition in history.partitions(pipeline.source):
            source = {record.offset: record for record in history.log(pipeline.source, partition).visible}
            committed = history.committed_offset(pipeline.group, pipeline.source, partition)
            made: dict[int, int] = defaultdict(int)
            for record in history.log(pipeline.target, partition).visible:
                derived = Derived.parse(record.text)
                made[derived.offset] += 1
                origin = source.get(derived.offset)
                if origin is None or origin.text != derived.value or derived.partition != partition:
                    yield f"{pipeline.target}-{partition}@{record.offset}: made of what is not in {pipeline.source}"
            place = f"{pipeline.source}-{partition}"
            for offset in source:
                if offset < committed and made[offset] == 0:
                    yield f"{place}@{offset}: lost, for the group is at {committed} and nothing was made of it"
                elif made[offset] > 1:
                    yield f"{place}@{offset}: {made[offset]} records were made of it"
                elif offset >= committed and made[offset]:
                    yield f"{place}@{offset}: a record was made of it, and the group is only at {committed}"
            if history.ended and source and committed <= max(source):
                yield f"{place}: the group stopped at {committed}, and there are records up to {max(source)}"


def order_is_kept(history: History) -> Iterator[str]:
    """The records of an idempotent producer are there from its first on, in its order, with none left out; what
    processors made of a partition's records has their order.
    """
    for pipeline in history.pipelines:
        for partition in history.partitions(pipeline.source):
            numbers: dict[str, list[int]] = defaultdict(list)
            for record in history.log(pipeline.source, partition).visible:
                producer, _, number = number_in(record.value or b"")
                numbers[producer].append(number)
            for producer, found in numbers.items():
                if found != list(range(len(found))):
                    what = _difference(found, list(range(len(found))))
                    yield f"{pipeline.source}-{partition}: the records of {producer} are {what}"
            offsets = [Derived.parse(each.text).offset for each in history.log(pipeline.target, partition).visible]
            if offsets != sorted(offsets):
                yield f"{pipeline.target}-{partition}: made {_difference(offsets, sorted(offsets))}"


def commits_go_forward(history: History) -> Iterator[str]:
    """A group's committed offset goes back, or away, only if somebody asked for just that."""
    back = {
        (event.group, event.topic, event.partition, event.offset)
        for event in history.events
        if isinstance(event, CommitAsked) and event.back
    }
    reached: dict[tuple[str, str, int], int] = {}
    for commit in history.commits:
        where = (commit.group, commit.topic, commit.partition)
        before = reached.get(where, -1)
        if commit.offset is None:
            yield f"{commit.group} on {commit.topic}-{commit.partition}: the offset {before} was taken away"
        elif commit.offset < before and (*where, commit.offset) not in back:
            yield f"{commit.group} on {commit.topic}-{commit.partition}: went back from {before} to {commit.offset}"
        reached[where] = -1 if commit.offset is None else commit.offset


def committed_offsets_are_reported(history: History) -> Iterator[str]:
    """A fetch after an acknowledged commit returns that offset or a later one, and never one that nobody
    committed.
    """
    asked_for: dict[tuple[str, str, int], set[int]] = defaultdict(set)
    acknowledged: dict[tuple[str, str, int], list[CommitAcknowledged]] = defaultdict(list)
    may_go_back = set()
    for event in history.events:
        if isinstance(event, CommitAsked):
            asked_for[event.group, event.topic, event.partition].add(event.offset)
            if event.back:
                may_go_back.add((event.group, event.topic, event.partition))
        elif isinstance(event, CommitAcknowledged):
            acknowledged[event.group, event.topic, event.partition].append(event)
    for event in history.events:
        if not isinstance(event, OffsetFetched):
            continue
        where = (event.group, event.topic, event.partition)
        who = f"{event.actor} got {event.offset} for {event.group} on {event.topic}-{event.partition}"
        if where in asked_for and event.offset not in asked_for[where] | {-1}:
            yield f"{who}, which nobody committed"
        known = [commit.offset for commit in acknowledged[where] if commit.at_ns < event.asked_ns]
        if known and event.offset < max(known) and where not in may_go_back:
            yield f"{who} after {max(known)} had been acknowledged"


def _difference(found: list[int], expected: list[int]) -> str:
    for position, (one, other) in enumerate(zip(found, expected, strict=False)):
        if one != other:
            return f"{one} as number {position}, where {other} should be"
    if len(found) > len(expected):
        return f"{found[len(expected)]} beyond the last, {expected[-1] if expected else 'which there is none of'}"
    return f"nothing where {expected[len(found)]} should be"


def _outcome(committed: bool) -> str:
    return "committed" if committed else "aborted"


RULES: dict[str, Callable[[History], Iterator[str]]] = {
    "logs are whole": whole_logs,
    "what was acknowledged is there": acknowledged_is_there,
    "only what is committed is read": only_committed_is_read,
    "readers skip nothing": readers_skip_nothing,
    "transactions are whole": transactions_are_whole,
    "every record once": every_record_once,
    "order is kept": order_is_kept,
    "one owner per epoch": lambda history: one_owner_per_epoch(history.events),
    "one owner at a time": lambda history: one_owner_at_a_time(history.events, stored_memberships(history.logs)),
    "commits go forward": commits_go_forward,
    "committed offsets are reported": committed_offsets_are_reported,
}
