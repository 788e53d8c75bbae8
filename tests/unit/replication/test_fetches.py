"""What a follower fetches, and what the leader's responses mean: Kafka's AbstractFetcherThread."""

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition, random_uuid
from kaspar.replication.divergence import Diverging, diverging_epoch, truncation_offset
from kaspar.replication.fetches import FIRST_DELAY_MS, LeaderFetches, PartitionFetch, Verdict
from kaspar.storage import EpochEnd
from kaspar.storage.leader_epochs import LeaderEpochCache

BACKOFF_MS = 1000


class Epochs:
    """A log of which only leader epochs and offsets are known: (epoch, start offset)s, and its end."""

    def __init__(self, *epochs: tuple[int, int], end: int, start: int = 0) -> None:
        self.log_start_offset = start
        self.log_end_offset = end
        self.cache = LeaderEpochCache()
        for epoch, offset in epochs:
            self.cache.assign(epoch, offset)

    @property
    def latest_epoch(self) -> int:
        return self.cache.latest_epoch

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd | None:
        return self.cache.end_offset_for(epoch, self.log_end_offset)

    def truncate(self, end: int) -> None:
        self.log_end_offset = min(self.log_end_offset, end)
        self.cache.truncate_from_end(self.log_end_offset)


def fetch_of(log: Epochs, *, leader_epoch: int = 9, high_watermark: int = 0) -> PartitionFetch:
    return PartitionFetch(
        random_uuid(), TopicPartition("t", 0), log, leader_epoch=leader_epoch, high_watermark=high_watermark
    )


def due(fetches: LeaderFetches, now_ms: int, *, is_throttled: bool = False) -> list[PartitionFetch]:
    """Those to be fetched, of those that may have changed."""
    has_due = fetches.has_due(now_ms, lambda _: is_throttled)
    changes = fetches.changes(now_ms, lambda _: is_throttled)
    found = [fetch for key, position in changes.items() if position is not None and (fetch := fetches.get(key))]
    assert has_due is bool(found)
    return found


def meet(leader: Epochs, follower: Epochs) -> list[int]:
    """Have the follower fetch until its log is the beginning of the leader's. Returns where it truncated."""
    truncated: list[int] = []
    fetch = fetch_of(follower)
    for _ in range(20):
        position = fetch.position
        if position.last_fetched_epoch < 0:
            return truncated
        diverging = diverging_epoch(leader, position.last_fetched_epoch, position.fetch_offset)
        if diverging is None:
            return truncated
        assert fetch.judge(position, ErrorCode.NONE, diverging) is Verdict.TRUNCATE
        assert fetch.truncate_to is not None
        truncated.append(fetch.truncate_to)
        follower.truncate(fetch.truncate_to)
        fetch.truncated()
    raise AssertionError("the follower makes no progress")


# -- where logs part ---------------------------------------------------------------------------------------------------


def test_kip_101_a_follower_truncates_to_where_its_last_epoch_ends_on_the_leader() -> None:
    assert meet(Epochs((0, 0), (1, 10), end=12), Epochs((0, 0), end=15)) == [10]


def test_a_follower_behind_its_leader_truncates_nothing() -> None:
    assert meet(Epochs((0, 0), (1, 10), end=12), Epochs((0, 0), end=7)) == []
    assert meet(Epochs((0, 0), (1, 10), end=12), Epochs((0, 0), (1, 10), end=12)) == []


def test_kip_279_epochs_that_the_leader_never_had_are_truncated_one_after_the_other() -> None:
    """Successive leaders that each wrote a little, and of which none had the others' records."""
    leader = Epochs((0, 0), (4, 5), (7, 9), end=12)
    follower = Epochs((0, 0), (3, 8), (5, 9), (6, 11), end=14)
    assert meet(leader, follower)[-1] == 5
    assert follower.log_end_offset == 5
    assert follower.cache.entries == ((0, 0),)


def test_a_leader_that_wrote_nothing_in_its_epoch_forgets_that_epoch() -> None:
    """Kafka's UnifiedLog.truncateTo: the epoch began at the log's end, and nothing else is to be truncated."""
    follower = Epochs((4, 0), (5, 10), end=10)
    assert meet(Epochs((4, 0), (6, 10), end=12), follower) == [10]
    assert follower.latest_epoch == 4


def test_an_epoch_that_the_leader_cannot_know_is_out_of_range() -> None:
    for epoch, offset in ((8, 5), (-2, 5), (1, -1)):
        with pytest.raises(Refused) as refusal:
            diverging_epoch(Epochs((1, 0), end=9) if epoch != -2 else Epochs(end=9), max(epoch, 0), offset)
        assert refusal.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_follower_that_knows_no_epochs_believes_the_leader() -> None:
    assert truncation_offset(Epochs(end=9), Diverging(3, 4)) == 4


# -- what a response means ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        (ErrorCode.NONE, Verdict.APPEND),
        (ErrorCode.OFFSET_OUT_OF_RANGE, Verdict.LOOK_UP),
        (ErrorCode.FENCED_LEADER_EPOCH, Verdict.FAIL),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, Verdict.DELAY),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, Verdict.DELAY),
        (ErrorCode.UNKNOWN_TOPIC_ID, Verdict.DELAY),
        (ErrorCode.KAFKA_STORAGE_ERROR, Verdict.DELAY),
    ],
)
def test_what_an_error_means(code: ErrorCode, verdict: Verdict) -> None:
    fetch = fetch_of(Epochs((0, 0), end=3))
    assert fetch.judge(fetch.position, code, None) is verdict


def test_a_response_to_what_is_not_asked_any_more_is_ignored() -> None:
    log = Epochs((0, 0), end=3)
    fetch = fetch_of(log)
    asked = fetch.position
    log.log_end_offset = 5
    assert fetch.judge(asked, ErrorCode.NONE, None) is Verdict.IGNORE
    fetch.has_failed = True
    assert fetch.judge(fetch.position, ErrorCode.NONE, None) is Verdict.IGNORE


def test_a_log_that_starts_later_than_when_it_was_asked_for_is_still_appended_to() -> None:
    log = Epochs((0, 0), end=3)
    fetch = fetch_of(log)
    asked = fetch.position
    log.log_start_offset = 2
    assert fetch.judge(asked, ErrorCode.NONE, None) is Verdict.APPEND


def test_a_fenced_partition_waits_for_a_new_leader_epoch() -> None:
    fetches = LeaderFetches()
    fetch = fetch_of(Epochs((0, 0), end=3))
    fetches.add(fetch)
    fetch.judge(fetch.position, ErrorCode.FENCED_LEADER_EPOCH, None)
    assert due(fetches, 1 << 40) == []
    assert fetches.next_due_ms(0) is None


def test_a_partition_that_fails_is_asked_for_later_and_later() -> None:
    fetches = LeaderFetches()
    fetch = fetch_of(Epochs(end=0))
    fetches.add(fetch)
    waits = []
    now_ms = 0
    for _ in range(8):
        fetch.delay(now_ms, BACKOFF_MS)
        assert due(fetches, now_ms) == []
        next_due_ms = fetches.next_due_ms(now_ms)
        assert next_due_ms is not None
        waits.append(next_due_ms - now_ms)
        now_ms = next_due_ms
        assert due(fetches, now_ms) == [fetch]
    assert waits[:3] == [FIRST_DELAY_MS, 2 * FIRST_DELAY_MS, 4 * FIRST_DELAY_MS]
    assert waits[-1] == BACKOFF_MS
    fetch.appended(0)
    fetch.delay(now_ms, BACKOFF_MS)
    assert fetch.not_before_ms == now_ms + FIRST_DELAY_MS


def test_records_without_epochs_are_truncated_to_the_high_watermark_first() -> None:
    fetches = LeaderFetches()
    fetch = fetch_of(Epochs(end=7), high_watermark=4)
    fetches.add(fetch)
    assert due(fetches, 0) == []
    assert [each.truncate_to for each in fetches.to_truncate(0)] == [4]
    fetch.truncated()
    assert due(fetches, 0) == [fetch]
    assert fetch_of(Epochs(end=7, start=7), high_watermark=4).truncate_to is None, "an empty log has nothing to compare"


def test_an_end_beyond_the_leaders_after_an_unclean_election_is_truncated_to_it() -> None:
    fetch = fetch_of(Epochs((0, 0), end=9))
    fetch.judge(fetch.position, ErrorCode.OFFSET_OUT_OF_RANGE, None)
    assert fetch.must_look_up
    assert fetch.looked_up(0, 6) is None
    assert fetch.truncate_to == 6


def test_an_end_before_the_leaders_start_starts_anew_there() -> None:
    fetch = fetch_of(Epochs((0, 0), end=9))
    assert fetch.looked_up(20, 30) == 20
    assert fetch.looked_up(3, 30) is None, "the leader has written more meanwhile: the next fetch compares"
    assert fetch.truncate_to is None


def test_kip_73_a_throttled_partition_is_left_out_until_it_has_caught_up() -> None:
    fetches = LeaderFetches()
    log = Epochs((0, 0), end=3)
    fetch = fetch_of(log)
    fetches.add(fetch)
    assert due(fetches, 0, is_throttled=True) == []
    fetch.appended(3)
    assert due(fetches, 0, is_throttled=True) == [fetch]
    assert fetches.responded(fetch.key) is fetch
    fetch.appended(8)
    assert due(fetches, 0, is_throttled=True) == []


def test_a_partition_that_has_caught_up_is_not_looked_at_until_a_response_names_it() -> None:
    fetches = LeaderFetches()
    log, other = Epochs((0, 0), end=3), Epochs((0, 0), end=5)
    fetch, busy = fetch_of(log), fetch_of(other)
    for each in (fetch, busy):
        fetches.add(each)
        each.appended(0)
    assert fetches.changes(0, lambda _: False) == {fetch.key: fetch.position, busy.key: busy.position}
    assert fetches.changes(0, lambda _: False) == {}
    assert fetches.has_due(0, lambda _: False), "they are fetched all the same"
    assert fetches.responded(busy.key) is busy
    other.log_end_offset = 6
    assert fetches.changes(0, lambda _: False) == {busy.key: busy.position}
    fetches.remove(busy.key)
    assert fetches.responded(busy.key) is None
    assert fetches.changes(0, lambda _: False) == {busy.key: None}
    fetches.remove(fetch.key)
    assert not fetches.has_due(0, lambda _: False)
