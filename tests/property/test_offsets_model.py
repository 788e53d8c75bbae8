"""Offsets under random commits, transactions, deletions and expiry, beside a model that reads the log by Kafka's rule:
of all commits for a place that count, the one with the highest offset in the log.

Checked after every step: fetched offsets match the model; a shard that replays the log, and one that replays what
compaction leaves of it, return the same offsets and end all open transactions alike; a commit never goes back
unless it was asked to.
"""

import uuid
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kaspar.base.ids import ZERO_UUID
from kaspar.coordination import StoredRecord
from kaspar.groups.offsets.committed import Offsets
from kaspar.groups.records import OffsetCommitKey, OffsetCommitValue, decode, encode
from tests.unit.groups.offsets.requests import (
    MINUTE_MS,
    NOW_MS,
    RETENTION_MINUTES,
    SomeGroup,
    commit_in_transaction_request,
    commit_request,
    decide,
    delete_request,
    expire,
    fetch,
    fetch_all,
    make_offsets,
    replay,
    topics_deleted,
)

GROUPS = ("a", "b")
TOPICS = ("t", "u")
PARTITIONS = (0, 1)
PRODUCERS = (1, 2, 3)

groups = st.sampled_from(GROUPS)
topics = st.sampled_from(TOPICS)
partitions = st.sampled_from(PARTITIONS)
producers = st.sampled_from(PRODUCERS)
pairs = st.lists(st.tuples(partitions, st.integers(0, 100)), min_size=1, max_size=3)

Place = tuple[str, str, int]


class Stored(NamedTuple):
    """An entry of the log at its offset: a record, in a transaction if a producer is named, or a marker."""

    at: int
    record: StoredRecord | None
    producer: int | None = None
    committed: bool = False

    @property
    def place(self) -> Place:
        assert self.record is not None
        key = self.record.key
        assert isinstance(key, OffsetCommitKey)
        return key.group, key.topic, key.partition


class Log:
    def __init__(self) -> None:
        self.entries: list[Stored] = []

    def append(self, record: StoredRecord | None, producer: int | None = None, committed: bool = False) -> None:
        self.entries.append(Stored(len(self.entries), record, producer, committed))

    def ends(self, entry: Stored) -> bool | None:
        """Whether the transaction of an entry was committed; None while it is open."""
        for later in self.entries[entry.at :]:
            if later.record is None and later.producer == entry.producer:
                return later.committed
        return None

    def compacted(self) -> Iterator[Stored]:
        """What is left below the first open transaction: no aborted record, and of each key the last."""
        stable = next(
            (each.at for each in self.entries if each.record and each.producer is not None and self.ends(each) is None),
            len(self.entries),
        )
        counts = [each for each in self.entries if each.record and (each.producer is None or self.ends(each))]
        last = {each.place: each.at for each in counts if each.at < stable}
        for entry in self.entries:
            if entry.record is None or entry.at >= stable or (entry in counts and last[entry.place] == entry.at):
                yield entry


class Model:
    """By Kafka's rule, from the whole log at once."""

    def __init__(self, log: Log) -> None:
        self.committed: dict[Place, tuple[int, OffsetCommitValue]] = {}
        self.pending: dict[int, dict[Place, tuple[int, OffsetCommitValue]]] = {}
        for entry in log.entries:
            self._take(entry)

    def _take(self, entry: Stored) -> None:
        if entry.record is None:
            assert entry.producer is not None
            for place, (at, value) in self.pending.pop(entry.producer, {}).items():
                if entry.committed and (place not in self.committed or at > self.committed[place][0]):
                    self.committed[place] = (at, value)
        elif entry.record.value is None:
            self.committed.pop(entry.place, None)
            for pending in self.pending.values():
                pending.pop(entry.place, None)
        else:
            assert isinstance(entry.record.value, OffsetCommitValue)
            taken = self.committed if entry.producer is None else self.pending.setdefault(entry.producer, {})
            taken[entry.place] = (entry.at, entry.record.value)

    def is_pending(self, place: Place) -> bool:
        return any(place in pending for pending in self.pending.values())

    def values(self) -> dict[Place, OffsetCommitValue]:
        return {place: value for place, (_, value) in self.committed.items()}


def values(offsets: Offsets) -> dict[Place, OffsetCommitValue]:
    return {
        (group, topic, partition): value
        for group in offsets.groups()
        for topic, partition, value in offsets.committed(group)
    }


def replayed(entries: Iterable[Stored]) -> Offsets:
    """From the bytes of the log, as after a restart: by the shorter way where there is one."""
    offsets = make_offsets()
    for _, record, producer, committed in entries:
        if record is None:
            assert producer is not None
            offsets.replay_marker(producer, committed=committed)
            continue
        key, value = encode(record)
        if producer is not None or value is None or not offsets.load(key, value):
            read = decode(key, value)
            assert read == record
            replay(offsets, [read], producer)
    offsets.loaded()
    return offsets


class OffsetsMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.offsets = make_offsets()
        self.log = Log()
        self.now_ms = NOW_MS
        self.asked_for: dict[Place, set[int]] = {}

    def take_in(self, records: list[StoredRecord], producer: int | None = None) -> None:
        for record in records:
            self.log.append(record, producer)
        replay(self.offsets, records, producer)

    def ask_for(self, group: str, topic: str, wanted: list[tuple[int, int]]) -> None:
        for partition, offset in wanted:
            self.asked_for.setdefault((group, topic, partition), set()).add(offset)

    # -- what happens to offsets -----------------------------------------------------------------------------------

    @rule(
        group=groups,
        topic=topics,
        wanted=pairs,
        retention_ms=st.sampled_from([-1, -1, -1, 5 * MINUTE_MS]),
        metadata=st.sampled_from(["", "", "", "m"]),
        topic_id=st.sampled_from([ZERO_UUID, uuid.UUID(int=1)]),
    )
    def commit(
        self,
        group: str,
        topic: str,
        wanted: list[tuple[int, int]],
        retention_ms: int,
        metadata: str,
        topic_id: uuid.UUID,
    ) -> None:
        self.ask_for(group, topic, wanted)
        request = commit_request(
            *wanted,
            group=group,
            topic=topic,
            retention_time_ms=retention_ms,
            metadata=metadata,
            topic_id=topic_id,
        )
        records, _ = decide(self.offsets, request, None, self.now_ms)
        self.take_in(records)

    @rule(producer=producers, group=groups, topic=topics, wanted=pairs)
    def commit_in_transaction(self, producer: int, group: str, topic: str, wanted: list[tuple[int, int]]) -> None:
        self.ask_for(group, topic, wanted)
        request = commit_in_transaction_request(*wanted, group=group, topic=topic)
        records, _ = self.offsets.commit_in_transaction(request, None, self.now_ms)
        self.take_in(records, producer)

    @rule(producer=producers, committed=st.booleans())
    def end_transaction(self, producer: int, committed: bool) -> None:
        self.log.append(None, producer, committed)
        self.offsets.replay_marker(producer, committed=committed)

    @rule(group=groups, topic=topics, partition=partitions)
    def delete(self, group: str, topic: str, partition: int) -> None:
        records, _ = self.offsets.delete(delete_request(partition, group=group, topic=topic), SomeGroup(group))
        self.take_in(records)

    @rule(group=groups)
    def forget_group(self, group: str) -> None:
        self.take_in(self.offsets.forget_group(group))
        assert not fetch_all(self.offsets, group=group)
        assert expire(self.offsets, SomeGroup(group), self.now_ms).nothing_left

    @rule(topic=topics)
    def delete_topic(self, topic: str) -> None:
        self.take_in(topics_deleted(self.offsets, {topic: ZERO_UUID}))

    @rule(group=groups, minutes=st.integers(0, RETENTION_MINUTES))
    def time_passes_and_offsets_expire(self, group: str, minutes: int) -> None:
        self.now_ms += minutes * MINUTE_MS
        model = Model(self.log)
        records, *_ = expire(self.offsets, SomeGroup(group, expire_from=NOW_MS), self.now_ms)
        self.take_in(records)
        for place, (_, value) in model.committed.items():
            if place[0] != group or model.is_pending(place):
                continue
            expires = value.expire_timestamp if value.expire_timestamp >= 0 else NOW_MS + RETENTION_MINUTES * MINUTE_MS
            assert (place in values(self.offsets)) == (self.now_ms < expires)

    @rule()
    def crash(self) -> None:
        self.offsets = replayed(self.log.entries)

    @rule()
    def crash_after_compaction(self) -> None:
        self.offsets = replayed(self.log.compacted())

    # -- what holds ------------------------------------------------------------------------------------------------

    @invariant()
    def reported_offsets_match_the_log(self) -> None:
        model = Model(self.log)
        assert values(self.offsets) == model.values()
        assert self.offsets.count == len(model.committed)
        for group in GROUPS:
            for topic in TOPICS:
                for fetched in fetch(self.offsets, *PARTITIONS, group=group, topic=topic, require_stable=True):
                    assert (fetched.error_code != 0) == model.is_pending((group, topic, fetched.partition_index))

    @invariant()
    def replay_leads_to_the_same_state(self) -> None:
        for entries in (self.log.entries, list(self.log.compacted())):
            again = replayed(entries)
            assert values(again) == values(self.offsets)
            for group in GROUPS:
                fetched = fetch_all(self.offsets, group=group, require_stable=True)
                assert fetch_all(again, group=group, require_stable=True) == fetched

    @invariant()
    def open_transactions_end_as_the_log_says(self) -> None:
        for order in (PRODUCERS, PRODUCERS[::-1]):
            ended = replayed(self.log.entries)
            log = Log()
            log.entries = list(self.log.entries)
            for producer in order:
                log.append(None, producer, committed=True)
                ended.replay_marker(producer, committed=True)
            assert values(ended) == Model(log).values()

    @invariant()
    def every_offset_was_asked_for(self) -> None:
        for place, value in values(self.offsets).items():
            assert value.offset in self.asked_for[place]


OffsetsMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
TestOffsets = OffsetsMachine.TestCase
