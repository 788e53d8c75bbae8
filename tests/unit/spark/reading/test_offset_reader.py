"""What the driver asks of the cluster is asked again where that helps, and given up in time where it does not."""

from collections.abc import Callable

import pytest

from kaspar.base.errors import ErrorCode, MalformedBytes, Refused
from kaspar.base.ids import ZERO_UUID, TopicPartition
from kaspar.client import Client
from kaspar.records import ControlType, EndTransactionMarker, Record, build_batch, build_end_transaction_marker
from kaspar.spark.offsets import EARLIEST, LATEST
from kaspar.spark.reading.offset_reader import ClusterUnreachable, OffsetReader
from kaspar.spark.reading.options import InvalidOption, OffsetLimit, ReadOptions
from kaspar.spark.reading.subscription import Assignment

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
BOTH = frozenset({T0, T1})


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


def reader(clock: Clock, **options: str) -> OffsetReader:
    read = ReadOptions.of({"kafka.bootstrap.servers": "a:1,b:2", "subscribe": "t", **options})
    return OffsetReader(read, now=clock.now, sleep=clock.sleep)


def failing(*failures: Exception) -> Callable[[Client], str]:
    """Raises each of them once, then succeeds."""
    left = list(failures)

    def ask(client: Client) -> str:
        if left:
            raise left.pop(0)
        return "done"

    return ask


def test_a_cluster_that_was_never_reached_is_given_up_soon() -> None:
    clock = Clock()
    with pytest.raises(ClusterUnreachable, match=r"No broker responds at a:1,b:2 .*3 attempts within 2 s\): nobody"):
        reader(clock).request(failing(*[ConnectionRefusedError("nobody")] * 3))


def test_a_cluster_that_has_responded_is_waited_for_as_long_as_a_request_may_take() -> None:
    clock = Clock()
    offsets = reader(clock)
    assert offsets.request(failing()) == "done"
    assert offsets.request(failing(*[ConnectionResetError("restarting")] * 20)) == "done"
    with pytest.raises(ClusterUnreachable):
        offsets.request(failing(*[ConnectionResetError("gone")] * 100))
    assert 50 < clock.seconds < 60


def test_a_peer_that_is_no_broker_is_reported_at_once() -> None:
    clock = Clock()
    with pytest.raises(
        ClusterUnreachable, match="does not speak the Kafka protocol, or requires TLS: a frame of 1347375956"
    ):
        reader(clock).request(failing(MalformedBytes("a frame of 1347375956 bytes")))
    assert clock.seconds == 0


def test_a_refusal_that_stays_is_not_asked_for_again() -> None:
    clock = Clock()
    with pytest.raises(Refused, match="no"):
        reader(clock).request(failing(Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "no")))
    assert clock.seconds == 0


def test_a_partition_that_is_not_there_is_looked_for_with_new_metadata_a_few_times() -> None:
    clock = Clock()
    offsets = reader(clock)
    ask = failing(*[Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "unknown")] * 2)
    assert offsets.retry_if_gone(lambda: offsets.request(ask)) == "done"
    assert clock.seconds == 2


def test_a_partition_of_assign_that_is_not_there_is_passed_over_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Spark's own source passes over it without one."""
    clock = Clock()
    offsets = OffsetReader(
        ReadOptions.of({"kafka.bootstrap.servers": "a:1", "assign": '{"t":[0,1]}'}), now=clock.now, sleep=clock.sleep
    )
    found = Assignment({"t": ZERO_UUID}, frozenset({T0}), absent=(T1,))
    monkeypatch.setattr(offsets, "assignment", lambda *, max_age_s: found)
    assert offsets.complete_assignment() == found
    (warning,) = caplog.records
    assert warning.getMessage() == "Option 'assign' names t-1, which does not exist yet."
    assert clock.seconds == 0


# --- where to start and to end ----------------------------------------------------------------------------------------


def resolving(
    monkeypatch: pytest.MonkeyPatch, responses: dict[tuple[TopicPartition, int], int], **options: str
) -> OffsetReader:
    """A reader whose cluster gives these offsets for these timestamps."""
    offsets = reader(Clock(), **options)
    monkeypatch.setattr(
        offsets, "_listed", lambda asked: {where: responses[where, timestamp] for where, timestamp in asked.items()}
    )
    return offsets


def test_special_offsets_become_real_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    offsets = resolving(monkeypatch, {(T0, EARLIEST): 3, (T1, LATEST): 9})
    limit = OffsetLimit(offsets={T0: EARLIEST, T1: LATEST})
    assert offsets.resolved(limit, BOTH, side="starting") == {T0: 3, T1: 9}


def test_a_topic_named_as_a_whole_stands_for_all_its_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    other = TopicPartition("u", 0)
    offsets = resolving(monkeypatch, {(T0, EARLIEST): 3, (T1, EARLIEST): 4})
    limit = OffsetLimit(offsets={other: 7}, topics={"t": EARLIEST})
    assert offsets.resolved(limit, BOTH | {other}, side="starting") == {T0: 3, T1: 4, other: 7}
    with pytest.raises(InvalidOption, match="it omits u-0"):
        offsets.resolved(OffsetLimit(offsets={}, topics={"t": EARLIEST}), BOTH | {other}, side="starting")
    with pytest.raises(InvalidOption, match="v is not read by the query"):
        offsets.resolved(OffsetLimit(offsets={}, topics={"t": LATEST, "v": LATEST}), BOTH, side="ending")


def test_every_partition_must_be_named_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    offsets = resolving(monkeypatch, {})
    with pytest.raises(InvalidOption, match="it omits t-1"):
        offsets.resolved(OffsetLimit(offsets={T0: 1}), BOTH, side="starting")
    with pytest.raises(InvalidOption, match=r"endingOffsetsByTimestamp.*t-1 is not read by the query"):
        offsets.resolved(OffsetLimit(timestamps={T0: 1, T1: 1}), frozenset({T0}), side="ending")


def test_a_timestamp_that_nothing_matches_is_refused_at_the_start_by_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    responses = {(T0, 1000): 5, (T1, 1000): -1, (T1, LATEST): 9}
    limit = OffsetLimit(timestamp=1000)
    with pytest.raises(InvalidOption, match="No record of t-1 has timestamp 1000 or a later one"):
        resolving(monkeypatch, responses).resolved(limit, BOTH, side="starting")
    lasting = resolving(monkeypatch, responses, startingOffsetsByTimestampStrategy="latest")
    assert lasting.resolved(limit, BOTH, side="starting") == {T0: 5, T1: 9}
    assert resolving(monkeypatch, responses).resolved(limit, BOTH, side="ending") == {T0: 5, T1: 9}


# --- timestamps of records --------------------------------------------------------------------------------------------


def test_timestamps_are_those_of_the_next_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Transaction markers are none, and compaction leaves gaps in batches and between them."""
    marker = EndTransactionMarker(ControlType.COMMIT, 0)
    log = {
        0: build_batch([Record(50, b"k", b"v", offset=0), Record(60, b"k", b"v", offset=2)]),
        3: build_end_transaction_marker(marker, producer_id=1, producer_epoch=0, timestamp=9000, base_offset=3),
        10: build_batch([Record(70, b"k", b"v")], base_offset=10),
    }
    ends = {0: 2, 3: 3, 10: 10}

    def fetched(client: object, where: TopicPartition, offset: int) -> memoryview:
        return next((memoryview(log[base]) for base, last in ends.items() if last >= offset), memoryview(b""))

    monkeypatch.setattr("kaspar.spark.reading.offset_reader._fetched", fetched)
    offsets = reader(Clock())
    monkeypatch.setattr(offsets, "request", lambda ask: ask(None))
    assert offsets.stamps(T0, 0) == [(0, 50), (2, 60)]
    assert offsets.stamps(T0, 1) == [(2, 60)]
    assert offsets.stamps(T0, 3) == offsets.stamps(T0, 7) == [(10, 70)]
    assert offsets.stamps(T0, 11) == []


# --- sizes ------------------------------------------------------------------------------------------------------------


def test_unknown_sizes_are_reported_once_where_bytes_are_limited(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("kaspar.spark.reading.offset_reader._sizes", lambda client, partitions: {})
    clock = Clock()
    limited, others = reader(clock, maxBytesPerTrigger="1000"), reader(clock)
    for _ in range(3):
        assert limited.bytes_per_offset(BOTH) == others.bytes_per_offset(BOTH) == {}
        clock.sleep(60)
    (record,) = caplog.records
    assert "'maxBytesPerTrigger' assumes 256 bytes per record" in record.getMessage()
