"""Where micro-batches begin and end, and what is reported when records are gone: against a cluster of dictionaries."""

import uuid
from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.spark.reading.common_time import Stamp
from kaspar.spark.reading.data_loss import DataLost, StartOfLog
from kaspar.spark.reading.options import ReadOptions
from kaspar.spark.reading.planning import Limits, OffsetRange
from kaspar.spark.reading.stream_planner import StreamPlanner
from kaspar.spark.reading.subscription import Assignment

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
OLD, NEW = uuid.UUID(int=1), uuid.UUID(int=2)
ALL = Limits()

_Result = TypeVar("_Result")


class Cluster:
    """Logs as (first offset, end), by partition."""

    def __init__(self, **logs: tuple[int, int]) -> None:
        self.logs = {TopicPartition(name[0], int(name[1:])): log for name, log in logs.items()}
        self.topic_id = OLD
        self.in_open_transactions = 0
        self.reports_sizes = True
        self.slept = 0.0
        self.now = 1_000.0
        self.cached: Assignment | None = None
        self.times: dict[TopicPartition, range] = {}
        """The timestamps of records by their offsets."""
        self.looked_up: list[TopicPartition] = []

    def assignment(self, *, max_age_s: float) -> Assignment:
        if max_age_s > 0 and self.cached is not None:
            return self.cached
        return Assignment({where.topic: self.topic_id for where in self.logs}, frozenset(self.logs))

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {where: self.logs[where][1] for where in partitions}

    def high_watermarks(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {where: self.logs[where][1] + self.in_open_transactions for where in partitions}

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {where: self.logs[where][0] for where in partitions}

    def bytes_per_offset(self, partitions: frozenset[TopicPartition]) -> dict[TopicPartition, float]:
        return dict.fromkeys(partitions, 100.0) if self.reports_sizes else {}

    def stamps(self, where: TopicPartition, offset: int) -> list[Stamp]:
        self.looked_up.append(where)
        if offset < self.logs[where][0]:
            raise Refused(ErrorCode.OFFSET_OUT_OF_RANGE, "the records are gone")
        return [Stamp(each, time) for each, time in enumerate(self.times[where]) if each >= offset][:10]

    def offsets_at(self, partitions: Iterable[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        return {
            where: next((offset for offset, time in enumerate(self.times[where]) if time >= timestamp), -1)
            for where in partitions
        }

    def request(self, ask: Callable[[Client], _Result]) -> _Result:
        raise NotImplementedError("only the start of a log is asked for, which the tests replace")

    def retry_if_gone(self, look: Callable[[], _Result]) -> _Result:
        return look()

    def sleep(self, seconds: float) -> None:
        self.slept += seconds


@pytest.fixture(autouse=True)
def _nothing_is_known_of_retention(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StreamPlanner, "_look_at", lambda self, where, first: StartOfLog(first))


def planner(
    cluster: Cluster,
    *,
    fail: bool = True,
    subscribe: str = "t",
    isolation_level: str = "read_uncommitted",
    sleep: Callable[[float], None] | None = None,
    **options: str,
) -> StreamPlanner:
    read = ReadOptions.of(
        {
            "kafka.bootstrap.servers": "a:1",
            "subscribe": subscribe,
            "failOnDataLoss": str(fail).lower(),
            "kafka.isolation.level": isolation_level,
            **options,
        }
    )
    return StreamPlanner(read, cluster, now=lambda: cluster.now, sleep=sleep or cluster.sleep)


def ranges(plan: StreamPlanner, start: dict[TopicPartition, int], end: dict[TopicPartition, int]) -> list[OffsetRange]:
    return [each for each in plan.ranges(start, end) if len(each)]


def test_a_micro_batch_ends_where_the_partitions_end() -> None:
    plan = planner(Cluster(t0=(0, 5), t1=(0, 0)))
    assert plan.next_end({T0: 2, T1: 0}, ALL) == {T0: 5, T1: 0}
    assert ranges(plan, {T0: 2, T1: 0}, {T0: 5, T1: 0}) == [OffsetRange("t", 0, 2, 5, OLD)]


def test_a_new_partition_is_read_from_its_beginning() -> None:
    plan = planner(Cluster(t0=(0, 5), t1=(0, 3)))
    assert plan.next_end({T0: 5}, ALL) == {T0: 5, T1: 3}
    assert ranges(plan, {T0: 5}, {T0: 5, T1: 3}) == [OffsetRange("t", 1, 0, 3, OLD)]


def test_limits_count_from_where_reading_begins() -> None:
    plan = planner(Cluster(t0=(0, 1000), t1=(0, 1000)))
    assert plan.next_end({T0: 900}, Limits(max_offsets=110)) == {T0: 910, T1: 100}
    assert plan.next_end({T0: 900}, Limits(max_bytes=11_000)) == {T0: 910, T1: 100}


def test_a_limit_of_bytes_also_limits_partitions_of_unknown_size() -> None:
    cluster = Cluster(t0=(0, 100_000_000))
    cluster.reports_sizes = False
    assert planner(cluster).next_end({T0: 0}, Limits(max_bytes=2_560_000)) == {T0: 10_000}


def test_the_first_batch_does_not_wait_and_later_small_ones_do() -> None:
    cluster = Cluster(t0=(0, 5))
    plan = planner(cluster)
    limits = Limits(min_offsets=10, max_delay_ms=2000)
    assert plan.next_end({T0: 0}, limits) == {T0: 5}
    cluster.logs[T0] = (0, 8)
    assert plan.next_end({T0: 5}, limits) is None
    cluster.now += 2.0
    assert plan.next_end({T0: 5}, limits) == {T0: 8}


def test_available_now_ends_where_the_partitions_ended_at_first() -> None:
    cluster = Cluster(t0=(0, 5))
    plan = planner(cluster)
    plan.is_available_now = True
    assert plan.next_end({T0: 0}, Limits(max_offsets=3)) == {T0: 3}
    cluster.logs |= {T0: (0, 50), T1: (0, 50)}
    assert plan.next_end({T0: 3}, Limits(max_offsets=3)) == {T0: 5}
    assert plan.next_end({T0: 5}, Limits(max_offsets=3, min_offsets=9, max_delay_ms=1000)) == {T0: 5}


def test_a_limited_batch_may_end_at_the_same_time_everywhere() -> None:
    cluster = Cluster(t0=(0, 100), t1=(0, 100))
    cluster.times = {T0: range(100), T1: range(1000, 1100)}
    plan = planner(cluster, limitByTimestamp="true")
    assert plan.next_end({T0: 0, T1: 0}, Limits(max_offsets=200)) == {T0: 100, T1: 100}
    assert cluster.looked_up == [], "nothing is asked for if no limit is exceeded"
    assert plan.next_end({T0: 0, T1: 0}, Limits(max_offsets=40)) == {T0: 40, T1: 0}
    assert planner(cluster).next_end({T0: 0, T1: 0}, Limits(max_offsets=40)) == {T0: 20, T1: 20}


def test_records_that_are_gone_meanwhile_do_not_stop_the_planning() -> None:
    cluster = Cluster(t0=(0, 100), t1=(0, 100))
    cluster.times = {T0: range(100), T1: range(1000, 1100)}
    plan = planner(cluster, limitByTimestamp="true")
    plan.next_end({T0: 0, T1: 0}, ALL)
    cluster.logs[T0] = (50, 100)
    assert plan.next_end({T0: 0, T1: 0}, Limits(max_offsets=40)) == {T0: 20, T1: 20}


# --- loss -------------------------------------------------------------------------------------------------------------


def test_records_removed_before_they_were_read_stop_the_query_or_are_skipped() -> None:
    cluster = Cluster(t0=(7, 9))
    with pytest.raises(DataLost, match="records of t-0 from offset 2 to 6 are gone"):
        planner(cluster).next_end({T0: 2}, ALL)
    plan = planner(cluster, fail=False)
    assert plan.next_end({T0: 2}, ALL) == {T0: 9}
    assert ranges(plan, {T0: 2}, {T0: 9}) == [OffsetRange("t", 0, 7, 9, OLD)]


def test_a_log_that_starts_later_is_no_loss_to_a_reader_at_or_past_it() -> None:
    plan = planner(Cluster(t0=(7, 9)))
    assert plan.next_end({T0: 7}, ALL) == {T0: 9}
    assert plan.next_end({T0: 9}, ALL) == {T0: 9}


def test_a_new_partition_that_lost_its_first_records_is_a_loss() -> None:
    with pytest.raises(DataLost, match="records of t-1 from offset 0 to 3"):
        planner(Cluster(t0=(0, 5), t1=(4, 9))).next_end({T0: 5}, ALL)


def test_a_log_that_ends_earlier_was_truncated_if_it_stays_so() -> None:
    cluster = Cluster(t0=(0, 5))
    with pytest.raises(DataLost, match="was read up to offset 8 but now ends at 5"):
        planner(cluster).next_end({T0: 8}, ALL)
    assert cluster.slept == 2.0, "it was asked for three times, in case its leader is late"
    plan = planner(cluster, fail=False)
    assert plan.next_end({T0: 8}, ALL) == {T0: 5}
    assert ranges(plan, {T0: 8}, {T0: 5}) == []
    cluster.logs[T0] = (0, 6)
    assert plan.next_end({T0: 5}, ALL) == {T0: 6}


def test_an_open_transaction_that_was_read_before_is_no_truncation() -> None:
    """As where a query that read uncommitted records goes on with committed ones."""
    cluster = Cluster(t0=(0, 5))
    cluster.in_open_transactions = 3
    plan = planner(cluster, isolation_level="read_committed")
    assert plan.next_end({T0: 8}, ALL) == {T0: 8}
    with pytest.raises(DataLost, match="was read up to offset 9 but now ends at 8"):
        plan.next_end({T0: 9}, ALL)


def test_a_deleted_topic_stops_the_query_or_is_left_out() -> None:
    cluster = Cluster(t0=(0, 5), u0=(0, 5))
    plan = planner(cluster, subscribe="t,u")
    lasting = planner(cluster, subscribe="t,u", fail=False)
    start = {T0: 5, TopicPartition("u", 0): 5}
    assert plan.next_end(start, ALL) == lasting.next_end(start, ALL) == start
    del cluster.logs[TopicPartition("u", 0)]
    with pytest.raises(DataLost, match="u-0 no longer exists"):
        plan.next_end(start, ALL)
    assert lasting.next_end(start, ALL) == {T0: 5}
    assert ranges(lasting, start, {T0: 5}) == []


def test_an_unsubscribed_topic_is_distinguished_from_a_deleted_one() -> None:
    start = {T0: 5, TopicPartition("other", 0): 5}
    with pytest.raises(DataLost, match=r"offsets of other-0, which the query no longer reads \(subscribe t\)"):
        planner(Cluster(t0=(0, 5))).next_end(start, ALL)


def test_a_deleted_topic_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster(t0=(0, 5))
    plan = planner(cluster, fail=False)
    for _ in range(3):
        plan.next_end({T0: 5, T1: 5}, ALL)
    assert [record.getMessage() for record in caplog.records] == [
        "t-1 no longer exists: the topic was deleted, and its unread records are gone. The query continues without it."
    ]


def test_a_recreated_topic_is_a_loss_even_if_it_is_as_long_as_the_old_one() -> None:
    cluster = Cluster(t0=(0, 5))
    plan = planner(cluster)
    plan.next_end({T0: 5}, ALL)
    cluster.topic_id = NEW
    with pytest.raises(DataLost, match="deleted and recreated"):
        plan.next_end({T0: 5}, ALL)


@pytest.mark.parametrize("new_end", [1, 3, 5, 9])
def test_a_recreated_topic_is_read_from_its_beginning(new_end: int) -> None:
    """Also if it is as long as the old one: then Spark has to be given another end, or it sees nothing new."""
    cluster = Cluster(t0=(0, 5))
    plan = planner(cluster, fail=False)
    plan.next_end({T0: 5}, ALL)
    cluster.topic_id, cluster.logs[T0] = NEW, (0, new_end)
    start, read = {T0: 5}, []
    while (end := plan.next_end(start, ALL)) != start:
        assert end is not None
        read += ranges(plan, start, end)
        start = end
    assert start == {T0: new_end}
    assert [offset for each in read for offset in range(each.start, each.end)] == list(range(new_end))
    assert {each.topic_id for each in read} == {NEW}


def test_a_recreated_topic_while_its_offsets_are_asked_for_is_noticed() -> None:
    cluster = Cluster(t0=(0, 5))
    plan = planner(cluster, fail=False)
    plan.next_end({T0: 5}, ALL)
    known = cluster.assignment(max_age_s=0.0)
    cluster.topic_id, cluster.logs[T0] = NEW, (0, 9)
    cluster.cached = known
    assert plan.next_end({T0: 5}, ALL) == {T0: 9}
    assert ranges(plan, {T0: 5}, {T0: 9}) == [OffsetRange("t", 0, 0, 9, NEW)]


def test_the_position_is_where_reading_begins() -> None:
    """Which is what the group has done, also where records were lost."""
    plan = planner(Cluster(t0=(7, 9), t1=(0, 4)), fail=False)
    plan.next_end({T0: 2, T1: 4}, ALL)
    assert plan.position() == {T0: 7, T1: 4}


# --- a batch that is run again ----------------------------------------------------------------------------------------


def test_a_restarted_query_reads_the_batch_it_had_begun() -> None:
    plan = planner(Cluster(t0=(0, 50), t1=(0, 50)))
    assert ranges(plan, {T0: 2}, {T0: 5, T1: 3}) == [OffsetRange("t", 0, 2, 5, OLD), OffsetRange("t", 1, 0, 3, OLD)]


def test_a_restarted_query_reports_what_its_batch_lost_meanwhile() -> None:
    with pytest.raises(DataLost, match="from offset 2 to 3 are gone"):
        planner(Cluster(t0=(4, 50))).ranges({T0: 2}, {T0: 9})
    with pytest.raises(DataLost, match="was read up to offset 9 but now ends at 6"):
        planner(Cluster(t0=(0, 6))).ranges({T0: 2}, {T0: 9})
    lasting = planner(Cluster(t0=(4, 6)), fail=False)
    assert ranges(lasting, {T0: 2}, {T0: 9}) == [OffsetRange("t", 0, 4, 6, OLD)]
    gone = planner(Cluster(), fail=False)
    assert gone.ranges({T0: 2}, {T0: 9}) == []


def test_a_restarted_query_waits_for_a_leader_that_is_late_to_know_the_end_of_its_batch() -> None:
    cluster = Cluster(t0=(0, 6))

    def catch_up(seconds: float) -> None:
        cluster.sleep(seconds)
        cluster.logs[T0] = (0, 9)

    plan = planner(cluster, sleep=catch_up)
    assert ranges(plan, {T0: 2}, {T0: 9}) == [OffsetRange("t", 0, 2, 9, OLD)]
    assert cluster.slept == 1.0


def test_an_open_transaction_is_no_truncation_to_a_restarted_query() -> None:
    cluster = Cluster(t0=(0, 5))
    cluster.in_open_transactions = 3
    plan = planner(cluster, isolation_level="read_committed")
    assert ranges(plan, {T0: 2}, {T0: 8}) == [OffsetRange("t", 0, 2, 8, OLD)]
    with pytest.raises(DataLost, match="was read up to offset 9 but now ends at 8"):
        planner(cluster, isolation_level="read_committed").ranges({T0: 2}, {T0: 9})
