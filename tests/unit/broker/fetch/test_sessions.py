import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.fetch.sessions import EVICT_AFTER_S, FetchedPartition, FetchSession, FetchSessions
from kaspar.protocol.shapes import EpochEndOffset, PartitionData


def partitions(count: int, *, topic: str = "t") -> list[FetchedPartition]:
    return [FetchedPartition(topic, index, 0, 1000) for index in range(count)]


def create(
    sessions: FetchSessions, count: int = 1, *, now: float = 0.0, privileged: bool = False
) -> FetchSession | None:
    return sessions.create(partitions(count), privileged=privileged, uses_topic_ids=False, now=now)


def made(sessions: FetchSessions, count: int = 1, *, now: float = 0.0) -> FetchSession:
    session = create(sessions, count, now=now)
    assert session is not None
    return session


def resume(sessions: FetchSessions, session: FetchSession, epoch: int, *, now: float = 0.0) -> FetchSession:
    return sessions.resume(session.session_id, epoch, uses_topic_ids=False, now=now)


def test_a_session_goes_on_from_epoch_to_epoch() -> None:
    sessions = FetchSessions(10)
    session = made(sessions)
    assert resume(sessions, session, 1) is session
    session.next_epoch()
    with pytest.raises(Refused) as refusal:
        resume(sessions, session, 1)
    assert refusal.value.code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert resume(sessions, session, 2) is session


def test_the_epoch_after_the_largest_is_one() -> None:
    session = made(FetchSessions(1))
    session.epoch = 0x7FFFFFFF
    session.next_epoch()
    assert session.epoch == 1


def test_an_unknown_session_is_refused() -> None:
    with pytest.raises(Refused) as refusal:
        FetchSessions(1).resume(7, 1, uses_topic_ids=False, now=0.0)
    assert refusal.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_by_name_cannot_go_on_by_id() -> None:
    sessions = FetchSessions(1)
    session = made(sessions)
    with pytest.raises(Refused) as refusal:
        sessions.resume(session.session_id, 1, uses_topic_ids=True, now=0.0)
    assert refusal.value.code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_an_incremental_fetch_changes_adds_and_forgets_partitions() -> None:
    session = made(FetchSessions(1), 3)
    session.update([FetchedPartition("t", 1, 50, 9), FetchedPartition("u", 0, 0, 9)], [("t", 0)])
    assert list(session.partitions) == [("t", 1), ("t", 2), ("u", 0)]
    assert session.partitions["t", 1].fetch_offset == 50


def test_served_partitions_come_last_next_time() -> None:
    session = made(FetchSessions(1), 3)
    session.served([("t", 0)])
    assert list(session.partitions) == [("t", 1), ("t", 2), ("t", 0)]


def test_only_changes_are_reported() -> None:
    partition = FetchedPartition("t", 0, 0, 1000)
    quiet = PartitionData(0, high_watermark=5, log_start_offset=0)
    assert partition.note_sent(quiet, 0)
    assert not partition.note_sent(quiet, 0)
    assert partition.note_sent(quiet, 12)
    assert partition.note_sent(quiet._replace(high_watermark=6), 0)
    assert partition.note_sent(quiet._replace(high_watermark=6, log_start_offset=2), 0)


def test_the_first_success_after_an_error_is_a_change() -> None:
    partition = FetchedPartition("t", 0, 0, 1000)
    good = PartitionData(0, high_watermark=5, log_start_offset=0)
    partition.note_sent(good, 0)
    assert partition.note_sent(PartitionData(0, error_code=6), 0)
    assert partition.note_sent(good, 0)


@pytest.mark.parametrize("log_start_offset", [-1, 0])
def test_a_follower_that_names_a_partition_again_is_sent_the_high_watermark_again(log_start_offset: int) -> None:
    """A follower that has to truncate its log takes nothing else from the response."""
    partition = partitions(1)[0]
    good = PartitionData(0, high_watermark=5, log_start_offset=0)
    assert partition.note_sent(good._replace(diverging_epoch=EpochEndOffset(1, 5)), 0)
    partition.update(FetchedPartition(*partition.key, 5, 1000, log_start_offset=log_start_offset))
    assert partition.note_sent(good, 0) == (log_start_offset >= 0)
    assert not partition.note_sent(good, 0)


def test_without_room_there_is_no_session() -> None:
    sessions = FetchSessions(1)
    made(sessions)
    assert create(sessions) is None
    assert create(FetchSessions(0)) is None


def test_an_empty_fetch_gets_a_session_that_partitions_can_join() -> None:
    sessions = FetchSessions(1)
    session = create(sessions, 0)
    assert session is not None
    session.update(partitions(1), ())
    resumed = sessions.resume(session.session_id, 1, uses_topic_ids=False, now=0.0)
    assert list(resumed.partitions) == [each.key for each in partitions(1)]


def test_an_idle_session_makes_room() -> None:
    sessions = FetchSessions(1)
    old = made(sessions)
    fresh = made(sessions, now=EVICT_AFTER_S)
    assert len(sessions) == 1
    assert sessions.evictions == 1
    assert resume(sessions, fresh, 1) is fresh
    with pytest.raises(Refused):
        resume(sessions, old, 1)


def test_a_follower_takes_the_place_of_a_consumer() -> None:
    sessions = FetchSessions(1)
    made(sessions)
    assert create(sessions, privileged=True) is not None
    assert create(sessions, privileged=False) is None


def test_a_larger_session_replaces_a_smaller_one_that_has_had_its_time() -> None:
    sessions = FetchSessions(1)
    small = made(sessions, 1)
    assert create(sessions, 5, now=1.0) is None
    resume(sessions, small, 1, now=EVICT_AFTER_S - 1)
    assert create(sessions, 5, now=EVICT_AFTER_S) is not None


def test_a_small_session_that_is_too_young_does_not_protect_a_larger_one_that_is_not() -> None:
    sessions = FetchSessions(2)
    old = made(sessions, 3)
    resume(sessions, old, 1, now=EVICT_AFTER_S - 1)
    young = made(sessions, 1, now=EVICT_AFTER_S - 1)
    assert create(sessions, 5, now=EVICT_AFTER_S) is not None
    assert resume(sessions, young, 1, now=EVICT_AFTER_S) is young
