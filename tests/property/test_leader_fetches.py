"""A fetcher that looks only at what may have changed fetches the same as one that looks at all its partitions."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import TopicPartition, random_uuid
from kaspar.replication.divergence import Diverging
from kaspar.replication.fetch_session import FollowerFetchSession
from kaspar.replication.fetches import LeaderFetches, PartitionFetch, PartitionKey, Position
from tests.property.replication_model import MemoryLog, Record

TOPIC_ID = random_uuid()
BACKOFF_MS = 100
indexes = st.integers(0, 1)


class LeaderFetchesModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.fetches = LeaderFetches()
        self.session = FollowerFetchSession()
        self.all: dict[PartitionKey, PartitionFetch] = {}
        self.now_ms = 0
        self.epoch = 0
        self.throttled: set[PartitionKey] = set()

    def is_throttled(self, fetch: PartitionFetch) -> bool:
        return fetch.key in self.throttled

    @rule(index=indexes, has_records=st.booleans(), must_sync=st.booleans())
    def add(self, index: int, has_records: bool, must_sync: bool) -> None:
        self.epoch += 1
        log = MemoryLog([Record(1, 1)] if has_records else [])
        where = TopicPartition("t", index)
        fetch = PartitionFetch(TOPIC_ID, where, log, leader_epoch=self.epoch, high_watermark=0)
        fetch.must_sync = must_sync
        self.fetches.add(fetch)
        self.all[fetch.key] = fetch

    @rule(index=indexes)
    def remove(self, index: int) -> None:
        self.fetches.remove((TOPIC_ID, index))
        self.all.pop((TOPIC_ID, index), None)

    @rule(index=indexes)
    def throttle(self, index: int) -> None:
        self.throttled ^= {(TOPIC_ID, index)}

    @rule(ms=st.integers(1, 2 * BACKOFF_MS))
    def time_passes(self, ms: int) -> None:
        self.now_ms += ms

    @rule()
    def connection_is_lost(self) -> None:
        self.session.reset()

    @rule()
    def request(self) -> None:
        wanted = self.wanted()
        request = self.session.request(self.fetches.changes(self.now_ms, self.is_throttled))
        assert self.session.asked == wanted
        if request.epoch == 0:
            assert request.named == wanted
        self.session.responded(ErrorCode.NONE, 7)

    @rule(index=indexes, lag=st.integers(0, 1), more=st.integers(0, 2), syncs=st.booleans())
    def records_arrive(self, index: int, lag: int, more: int, syncs: bool) -> None:
        fetch = self.fetches.responded((TOPIC_ID, index))
        assert fetch is self.all.get((TOPIC_ID, index))
        if fetch is not None and fetch.is_due(self.now_ms):
            assert isinstance(fetch.log, MemoryLog)
            fetch.log.extend([Record(1, 1)] * more)
            fetch.must_sync = syncs and more > 0
            fetch.appended(fetch.log.log_end_offset + lag)

    @rule(
        index=indexes,
        code=st.sampled_from(
            [ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER]
        ),
    )
    def error_arrives(self, index: int, code: ErrorCode) -> None:
        fetch = self.fetches.responded((TOPIC_ID, index))
        if fetch is not None:
            fetch.judge(fetch.position, code, None)
            if code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                fetch.delay(self.now_ms, BACKOFF_MS)

    @rule(index=indexes)
    def divergence_arrives(self, index: int) -> None:
        fetch = self.fetches.responded((TOPIC_ID, index))
        if fetch is not None:
            fetch.judge(fetch.position, ErrorCode.NONE, Diverging(0, 0))

    @rule(fails=st.booleans())
    def a_turn_prepares(self, fails: bool) -> None:
        for fetch in self.fetches.to_truncate(self.now_ms):
            assert isinstance(fetch.log, MemoryLog)
            if fails:
                fetch.delay(self.now_ms, BACKOFF_MS)
            else:
                fetch.log.truncate(fetch.truncate_to or 0)
                fetch.truncated()
        for fetch in self.fetches.to_sync(self.now_ms):
            if not fails:
                fetch.must_sync = False
        for fetch in self.fetches.to_look_up(self.now_ms):
            fetch.looked_up(0, fetch.log.log_end_offset)

    def wanted(self) -> dict[PartitionKey, Position]:
        return {
            key: fetch.position
            for key, fetch in self.all.items()
            if fetch.is_due(self.now_ms) and (fetch.is_caught_up or not self.is_throttled(fetch))
        }

    @invariant()
    def nothing_is_overlooked(self) -> None:
        ready = [each for each in self.all.values() if not each.has_failed and each.not_before_ms <= self.now_ms]
        assert set(self.fetches.to_truncate(self.now_ms)) == {each for each in ready if each.truncate_to is not None}
        assert set(self.fetches.to_sync(self.now_ms)) == {each for each in ready if each.must_sync}
        assert set(self.fetches.to_look_up(self.now_ms)) == {each for each in ready if each.must_look_up}
        waiting = [each.not_before_ms for each in self.all.values() if not each.has_failed]
        assert self.fetches.next_due_ms(self.now_ms) == min((at for at in waiting if at > self.now_ms), default=None)
        assert self.fetches.has_due(self.now_ms, self.is_throttled) is bool(self.wanted())


LeaderFetchesModel.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestLeaderFetches = LeaderFetchesModel.TestCase
