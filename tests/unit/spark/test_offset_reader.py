"""What the driver asks of the cluster is asked again where that helps, and given up in time where it does not."""

from collections.abc import Callable

import pytest

from kaspar.base.errors import ErrorCode, MalformedBytes, Refused
from kaspar.base.ids import ZERO_UUID, TopicPartition
from kaspar.client import Client
from kaspar.spark.offset_reader import ClusterUnreachable, OffsetReader
from kaspar.spark.offsets import EARLIEST, LATEST
from kaspar.spark.options import InvalidOption, OffsetLimit, ReadOptions
from kaspar.spark.subscription import Assignment

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
    """Raises each of them once, and then answers."""
    left = list(failures)

    def ask(client: Client) -> str:
        if left:
            raise left.pop(0)
        return "answered"

    return ask


def test_a_cluster_that_was_never_reached_is_given_up_soon() -> None:
    clock = Clock()
    with pytest.raises(ClusterUnreachable, match=r"No broker answers at a:1,b:2 .*3 attempts within 2 s\): nobody"):
        reader(clock).asking(failing(*[ConnectionRefusedError("nobody")] * 3))


def test_a_cluster_that_has_answered_is_waited_for_as_long_as_a_request_may_take() -> None:
    clock = Clock()
    offsets = reader(clock)
    assert offsets.asking(failing()) == "answered"
    assert offsets.asking(failing(*[ConnectionResetError("restarting")] * 20)) == "answered"
    with pytest.raises(ClusterUnreachable):
        offsets.asking(failing(*[ConnectionResetError("gone")] * 100))
    assert 50 < clock.seconds < 60


def test_a_peer_that_is_no_broker_is_told_at_once() -> None:
    clock = Clock()
    with pytest.raises(
        ClusterUnreachable, match="does not speak Kafka's protocol, or wants TLS: a frame of 1347375956"
    ):
        reader(clock).asking(failing(MalformedBytes("a frame of 1347375956 bytes")))
    assert clock.seconds == 0


def test_a_refusal_that_stays_is_not_asked_for_again() -> None:
    clock = Clock()
    with pytest.raises(Refused, match="no"):
        reader(clock).asking(failing(Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "no")))
    assert clock.seconds == 0


def test_a_partition_that_is_not_there_is_looked_for_with_new_metadata_a_few_times() -> None:
    clock = Clock()
    offsets = reader(clock)
    ask = failing(*[Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "unknown")] * 2)
    assert offsets.looking_again(lambda: offsets.asking(ask)) == "answered"
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
    assert offsets.whole_assignment() == found
    assert [record.getMessage() for record in caplog.records] == ["Option 'assign' names t-1, not there so far."]
    assert clock.seconds == 0


# --- where to start and to end ----------------------------------------------------------------------------------------


def resolving(
    monkeypatch: pytest.MonkeyPatch, answers: dict[tuple[TopicPartition, int], int], **options: str
) -> OffsetReader:
    """A reader whose cluster gives these offsets for these timestamps."""
    offsets = reader(Clock(), **options)
    monkeypatch.setattr(
        offsets, "_listed", lambda asked: {where: answers[where, timestamp] for where, timestamp in asked.items()}
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
    with pytest.raises(InvalidOption, match="it leaves out u-0"):
        offsets.resolved(OffsetLimit(offsets={}, topics={"t": EARLIEST}), BOTH | {other}, side="starting")
    with pytest.raises(InvalidOption, match="v is not among what the query reads"):
        offsets.resolved(OffsetLimit(offsets={}, topics={"t": LATEST, "v": LATEST}), BOTH, side="ending")


def test_every_partition_must_be_named_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    offsets = resolving(monkeypatch, {})
    with pytest.raises(InvalidOption, match="it leaves out t-1"):
        offsets.resolved(OffsetLimit(offsets={T0: 1}), BOTH, side="starting")
    with pytest.raises(InvalidOption, match=r"endingOffsetsByTimestamp.*t-1 is not among what the query reads"):
        offsets.resolved(OffsetLimit(timestamps={T0: 1, T1: 1}), frozenset({T0}), side="ending")


def test_a_timestamp_that_nothing_matches_is_refused_at_the_start_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = {(T0, 1000): 5, (T1, 1000): -1, (T1, LATEST): 9}
    limit = OffsetLimit(timestamp=1000)
    with pytest.raises(InvalidOption, match="No record of t-1 has the timestamp 1000 or a later one"):
        resolving(monkeypatch, answers).resolved(limit, BOTH, side="starting")
    lasting = resolving(monkeypatch, answers, startingOffsetsByTimestampStrategy="latest")
    assert lasting.resolved(limit, BOTH, side="starting") == {T0: 5, T1: 9}
    assert resolving(monkeypatch, answers).resolved(limit, BOTH, side="ending") == {T0: 5, T1: 9}


# --- sizes ------------------------------------------------------------------------------------------------------------


def test_that_nobody_tells_sizes_is_told_once_to_who_limits_bytes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("kaspar.spark.offset_reader._sizes", lambda client, partitions: {})
    clock = Clock()
    limited, others = reader(clock, maxBytesPerTrigger="1000"), reader(clock)
    for _ in range(3):
        assert limited.bytes_per_offset(BOTH) == others.bytes_per_offset(BOTH) == {}
        clock.sleep(60)
    (record,) = caplog.records
    assert "'maxBytesPerTrigger' takes every record for 256 bytes" in record.getMessage()
