"""Committed offsets: what a commit stores, what a fetch returns, and when it expires."""

import uuid
from dataclasses import replace

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ZERO_UUID
from kaspar.groups.offsets.committed import Offsets
from kaspar.groups.records import OffsetCommitKey, OffsetCommitValue, encode
from kaspar.protocol.messages.offset_commit import OffsetCommitRequest
from tests.unit.groups.offsets.requests import (
    GROUP,
    MINUTE_MS,
    NO_OFFSET,
    NOW_MS,
    RETENTION_MINUTES,
    TOPIC,
    SomeGroup,
    commit,
    commit_in_transaction,
    commit_in_transaction_request,
    commit_request,
    decide,
    delete_request,
    deleted,
    expire,
    fetch,
    fetch_all,
    make_offsets,
    offset_of,
    replay,
    topics_deleted,
)

RETENTION_MS = RETENTION_MINUTES * MINUTE_MS
TOPIC_ID = uuid.UUID(int=1)
OTHER_TOPIC_ID = uuid.UUID(int=2)
PRODUCER = 7
OTHER_PRODUCER = 8


@pytest.fixture
def offsets() -> Offsets:
    return make_offsets()


# --- Commits ----------------------------------------------------------------------------------------------------------


def test_commit_changes_nothing_before_it_is_in_the_log(offsets: Offsets) -> None:
    records, response = decide(offsets, commit_request((0, 5)), None, NOW_MS)
    assert [partition.error_code for topic in response.topics for partition in topic.partitions] == [0]
    assert offset_of(offsets) == NO_OFFSET
    replay(offsets, records)
    assert offset_of(offsets) == 5


def test_commit_is_returned_as_it_was_made(offsets: Offsets) -> None:
    commit(offsets, commit_request((0, 5), (3, 6), metadata="größe 🦊", leader_epoch=4))
    first, second, third = fetch(offsets, 3, 1, 0)
    assert (first.partition_index, first.committed_offset) == (3, 6)
    assert (second.partition_index, second.committed_offset, second.committed_leader_epoch) == (1, NO_OFFSET, -1)
    assert (second.metadata, second.error_code) == ("", 0)
    assert (third.committed_offset, third.committed_leader_epoch, third.metadata) == (5, 4, "größe 🦊")


def test_record_of_a_commit_says_when_and_for_which_topic(offsets: Offsets) -> None:
    request = commit_request((2, 5), topic_id=TOPIC_ID, metadata=None, leader_epoch=4)
    ((key, value),), response = decide(offsets, request, None, NOW_MS)
    assert key == OffsetCommitKey(group=GROUP, topic=TOPIC, partition=2)
    assert value == OffsetCommitValue(offset=5, leader_epoch=4, metadata="", commit_timestamp=NOW_MS, topic_id=TOPIC_ID)
    assert (response.topics[0].name, response.topics[0].topic_id) == (TOPIC, TOPIC_ID)


def test_retention_time_of_an_old_request_becomes_an_expire_timestamp(offsets: Offsets) -> None:
    ((_, value),), _ = decide(offsets, commit_request((0, 5), retention_time_ms=1000), None, NOW_MS)
    assert isinstance(value, OffsetCommitValue)
    assert value.expire_timestamp == NOW_MS + 1000


@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize(
    ("metadata", "fits"), [("x" * 10, True), ("x" * 11, False), ("ß" * 10, True), ("🦊" * 5, True), ("🦊" * 6, False)]
)
def test_metadata_is_limited_in_characters_as_java_counts_them(metadata: str, fits: bool, transactional: bool) -> None:
    offsets = make_offsets(offset_metadata_max_bytes=10)
    partitions: list[int]
    if transactional:
        records, fetched = offsets.commit_in_transaction(
            commit_in_transaction_request((0, 5), metadata=metadata), None, NOW_MS
        )
        partitions = [partition.error_code for partition in fetched.topics[0].partitions]
    else:
        records, response = decide(offsets, commit_request((0, 5), metadata=metadata), None, NOW_MS)
        partitions = [partition.error_code for partition in response.topics[0].partitions]
    assert partitions == [0 if fits else ErrorCode.OFFSET_METADATA_TOO_LARGE]
    assert len(records) == fits


def test_commit_that_the_group_refuses_for_one_partition_leaves_nothing(offsets: Offsets) -> None:
    def check(topic: str, topic_id: uuid.UUID, partition: int) -> None:
        if partition == 1:
            raise Refused(ErrorCode.STALE_MEMBER_EPOCH, "partition 1 has gone to another")

    with pytest.raises(Refused) as refusal:
        decide(offsets, commit_request((0, 5), (1, 6)), check, NOW_MS)
    assert refusal.value.code is ErrorCode.STALE_MEMBER_EPOCH
    with pytest.raises(Refused) as refusal:
        offsets.commit_in_transaction(commit_in_transaction_request((0, 5), (1, 6)), check, NOW_MS)
    assert refusal.value.code is ErrorCode.ILLEGAL_GENERATION
    assert not offsets.groups()


def test_commit_may_go_back_if_asked(offsets: Offsets) -> None:
    commit(offsets, commit_request((0, 5)))
    commit(offsets, commit_request((0, 3)))
    assert offset_of(offsets) == 3


def test_groups_do_not_see_each_other(offsets: Offsets) -> None:
    commit(offsets, commit_request((0, 5), group="a"))
    assert offset_of(offsets, group="b") == NO_OFFSET
    assert not fetch_all(offsets, group="b")


def test_count_is_of_places_and_not_of_commits(offsets: Offsets) -> None:
    commit(offsets, commit_request((0, 5), (1, 5)))
    commit(offsets, commit_request((0, 6)))
    commit(offsets, commit_request((0, 6), group="b"))
    assert offsets.count == 3
    replay(offsets, offsets.forget_group(GROUP))
    assert (offsets.count, set(offsets.groups())) == (1, {"b"})


# --- Questions --------------------------------------------------------------------------------------------------------


def test_all_offsets_of_a_group_are_returned(offsets: Offsets) -> None:
    commit(offsets, commit_request((0, 5), (1, 6), topic="a"))
    commit(offsets, commit_request((2, 7), topic="b"))
    fetched = fetch_all(offsets)
    assert {place: partition.committed_offset for place, partition in fetched.items()} == {
        ("a", 0): 5,
        ("a", 1): 6,
        ("b", 2): 7,
    }


@pytest.mark.parametrize(
    ("committed_for", "asked_for", "fetched"),
    [
        (TOPIC_ID, TOPIC_ID, 5),
        (TOPIC_ID, OTHER_TOPIC_ID, NO_OFFSET),
        (ZERO_UUID, TOPIC_ID, 5),
        (TOPIC_ID, ZERO_UUID, 5),
    ],
)
def test_offset_of_a_former_topic_of_that_name_is_not_returned(
    offsets: Offsets, committed_for: uuid.UUID, asked_for: uuid.UUID, fetched: int
) -> None:
    commit(offsets, commit_request((0, 5), topic_id=committed_for))
    (partition,) = fetch(offsets, 0, topic_id=asked_for)
    assert (partition.committed_offset, partition.error_code) == (fetched, 0)


def test_pending_offset_is_unstable_where_stable_ones_are_required(offsets: Offsets) -> None:
    commit(offsets, commit_request((0, 5), (1, 6)))
    commit_in_transaction(offsets, PRODUCER, commit_in_transaction_request((0, 9), (2, 9)))
    fetched = fetch(offsets, 0, 1, 2, require_stable=True)
    unstable = ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert [(each.committed_offset, each.error_code) for each in fetched] == [(-1, unstable), (6, 0), (-1, unstable)]
    assert fetch_all(offsets, require_stable=True)[TOPIC, 0].error_code == unstable
    assert [each.committed_offset for each in fetch(offsets, 0, 1, 2)] == [5, 6, NO_OFFSET]
    assert set(fetch_all(offsets)) == {(TOPIC, 0), (TOPIC, 1)}


# --- Transactions -----------------------------------------------------------------------------------------------------


def test_pending_offset_counts_when_its_transaction_commits(offsets: Offsets) -> None:
    commit_in_transaction(offsets, PRODUCER, commit_in_transaction_request((0, 9)))
    offsets.replay_marker(PRODUCER, committed=True)
    (fetched,) = fetch(offsets, 0, require_stable=True)
    assert (fetched.committed_offset, fetched.error_code, offsets.count) == (9, 0, 1)


def test_pending_offset_vanishes_when_its_transaction_aborts(offsets: Offsets) -> None:
    commit(offsets, commit_request((0, 5)))
    commit_in_transaction(offsets, PRODUCER, commit_in_transaction_request((0, 9), (1, 9)))
    offsets.replay_marker(PRODUCER, committed=False)
    fetched = fetch(offsets, 0, 1, require_stable=True)
    assert [(each.committed_offset, each.error_code) for each in fetched] == [(5, 0), (NO_OFFSET, 0)]


def test_marker_of_a_transaction_without_offsets_changes_nothing(offsets: Offsets) -> None:
    commit(offsets, commit_request((0, 5)))
    offsets.replay_marker(PRODUCER, committed=True)
    assert offset_of(offsets) == 5


def test_commit_behind_a_pending_one_in_the_log_counts(offsets: Offsets) -> None:
    commit_in_transaction(offsets, PRODUCER, commit_in_transaction_request((0, 9)))
    commit(offsets, commit_request((0, 5)))
    offsets.replay_marker(PRODUCER, committed=True)
    assert offset_of(offsets) == 5


def test_pending_offset_of_the_same_transaction_behind_a_commit_counts(offsets: Offsets) -> None:
    commit_in_transaction(offsets, PRODUCER, commit_in_transaction_request((0, 9)))
    commit(offsets, commit_request((0, 5)))
    commit_in_transaction(offsets, PRODUCER, commit_in_transaction_request((0, 7)))
    offsets.replay_marker(PRODUCER, committed=True)
    assert offset_of(offsets) == 7


@pytest.mark.parametrize("first", [PRODUCER, OTHER_PRODUCER])
def test_last_pending_offset_in_the_log_wins_in_any_order_of_ends(offsets: Offsets, first: int) -> None:
    commit_in_transaction(offsets, PRODUCER, commit_in_transaction_request((0, 9)))
    commit_in_transaction(offsets, OTHER_PRODUCER, commit_in_transaction_request((0, 7)))
    offsets.replay_marker(first, committed=True)
    offsets.replay_marker(PRODUCER + OTHER_PRODUCER - first, committed=True)
    assert offset_of(offsets) == 7


def test_aborted_transaction_overtakes_nobody(offsets: Offsets) -> None:
    commit_in_transaction(offsets, PRODUCER, commit_in_transaction_request((0, 9)))
    commit_in_transaction(offsets, OTHER_PRODUCER, commit_in_transaction_request((0, 7)))
    offsets.replay_marker(OTHER_PRODUCER, committed=False)
    offsets.replay_marker(PRODUCER, committed=True)
    assert offset_of(offsets) == 9


def test_tombstone_takes_what_is_pending_with_it(offsets: Offsets) -> None:
    commit(offsets, commit_request((0, 5)))
    commit_in_transaction(offsets, PRODUCER, commit_in_transaction_request((0, 9), (1, 9)))
    records, _ = offsets.delete(delete_request(0), SomeGroup())
    replay(offsets, records)
    offsets.replay_marker(PRODUCER, committed=True)
    assert (offset_of(offsets, 0), offset_of(offsets, 1)) == (NO_OFFSET, 9)


# --- Deletion ---------------------------------------------------------------------------------------------------------


def test_delete_leaves_a_tombstone_for_what_is_there(offsets: Offsets) -> None:
    commit(offsets, commit_request((0, 5)))
    commit_in_transaction(offsets, PRODUCER, commit_in_transaction_request((1, 9)))
    records, response = offsets.delete(delete_request(0, 1, 2), SomeGroup())
    assert deleted(records) == {(GROUP, TOPIC, 0), (GROUP, TOPIC, 1)}
    assert [each.error_code for each in response.topics[0].partitions] == [0, 0, 0]
    replay(offsets, records)
    assert (offsets.count, offset_of(offsets)) == (0, NO_OFFSET)


def test_offsets_of_a_subscribed_topic_are_not_deleted(offsets: Offsets) -> None:
    commit(offsets, commit_request((0, 5)))
    records, response = offsets.delete(delete_request(0), SomeGroup(subscribed={TOPIC}))
    assert not records
    assert response.topics[0].partitions[0].error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


def test_forgotten_group_leaves_tombstones_for_pending_offsets_too(offsets: Offsets) -> None:
    commit(offsets, commit_request((0, 5), (1, 5)))
    commit_in_transaction(offsets, PRODUCER, commit_in_transaction_request((1, 9), (2, 9)))
    records = offsets.forget_group(GROUP)
    assert len(records) == 3
    assert deleted(records) == {(GROUP, TOPIC, partition) for partition in range(3)}


def test_offsets_go_with_their_topic(offsets: Offsets) -> None:
    commit(offsets, commit_request((0, 5), topic="gone"))
    commit(offsets, commit_request((0, 5), topic="gone", group="b", topic_id=TOPIC_ID))
    commit(offsets, commit_request((0, 5), topic="stays"))
    commit_in_transaction(offsets, PRODUCER, commit_in_transaction_request((0, 9), (1, 9), topic="gone"))
    records = topics_deleted(offsets, {"gone": ZERO_UUID, "never there": ZERO_UUID})
    assert len(records) == 3
    assert deleted(records) == {(GROUP, "gone", 0), ("b", "gone", 0), (GROUP, "gone", 1)}


def test_offsets_of_a_new_topic_of_the_same_name_stay(offsets: Offsets) -> None:
    commit(offsets, commit_request((0, 5), topic_id=TOPIC_ID))
    commit(offsets, commit_request((1, 5), topic_id=OTHER_TOPIC_ID))
    commit(offsets, commit_request((2, 5)))
    assert deleted(topics_deleted(offsets, {TOPIC: OTHER_TOPIC_ID})) == {(GROUP, TOPIC, 0), (GROUP, TOPIC, 2)}


# --- Expiry -----------------------------------------------------------------------------------------------------------


def test_offset_expires_when_its_retention_has_passed(offsets: Offsets) -> None:
    commit(offsets, commit_request((0, 5)))
    group = SomeGroup(expire_from=NOW_MS + 10)
    assert expire(offsets, group, NOW_MS + 10 + RETENTION_MS - 1) == ([], False, 1)
    records, nothing_left, _ = expire(offsets, group, NOW_MS + 10 + RETENTION_MS)
    assert deleted(records) == {(GROUP, TOPIC, 0)}
    assert nothing_left


def test_offset_in_use_does_not_expire(offsets: Offsets) -> None:
    commit(offsets, commit_request((0, 5), retention_time_ms=1))
    assert expire(offsets, SomeGroup(expire_from=None), NOW_MS + 2 * RETENTION_MS) == ([], False, 1)


def test_offset_of_a_subscribed_topic_does_not_expire(offsets: Offsets) -> None:
    commit(offsets, commit_request((0, 5), topic="read"))
    commit(offsets, commit_request((0, 5), topic="left"))
    records, nothing_left, _ = expire(offsets, SomeGroup(subscribed={"read"}), NOW_MS + RETENTION_MS)
    assert deleted(records) == {(GROUP, "left", 0)}
    assert not nothing_left


@pytest.mark.parametrize(("at_ms", "expired"), [(999, False), (1000, True)])
def test_expire_timestamp_of_a_commit_comes_before_the_retention(offsets: Offsets, at_ms: int, expired: bool) -> None:
    commit(offsets, commit_request((0, 5), retention_time_ms=1000))
    records, *_ = expire(offsets, SomeGroup(), NOW_MS + at_ms)
    assert bool(records) is expired


def test_offset_that_a_transaction_is_about_to_replace_does_not_expire(offsets: Offsets) -> None:
    commit(offsets, commit_request((0, 5), (1, 5)))
    commit_in_transaction(offsets, PRODUCER, commit_in_transaction_request((0, 9)))
    records, nothing_left, _ = expire(offsets, SomeGroup(), NOW_MS + RETENTION_MS)
    assert deleted(records) == {(GROUP, TOPIC, 1)}
    assert not nothing_left


def test_group_without_offsets_has_nothing_left_unless_some_are_pending(offsets: Offsets) -> None:
    assert expire(offsets, SomeGroup(), NOW_MS) == ([], True, 0)
    commit_in_transaction(offsets, PRODUCER, commit_in_transaction_request((0, 9)))
    assert expire(offsets, SomeGroup(), NOW_MS) == ([], False, 0)


# --- Loading ----------------------------------------------------------------------------------------------------------


def load(offsets: Offsets, request: OffsetCommitRequest) -> bool:
    """Whether the records of a commit take the shorter way. Where they do not, they take the usual one."""
    records, _ = decide(offsets, request, None, NOW_MS)
    taken = []
    for record in records:
        key, value = encode(record)
        assert value is not None
        taken.append(offsets.load(key, value))
        if not taken[-1]:
            replay(offsets, [record])
    return all(taken)


@pytest.mark.parametrize("topic_id", [ZERO_UUID, TOPIC_ID])
def test_usual_commit_is_loaded_the_shorter_way_if_its_group_is_known(offsets: Offsets, topic_id: uuid.UUID) -> None:
    assert not load(offsets, commit_request((0, 5), topic_id=topic_id))
    assert load(offsets, commit_request((0, 6), (7, 8), topic_id=topic_id, leader_epoch=3))
    assert not load(offsets, commit_request((0, 9), topic_id=topic_id, group="b"))
    expected = OffsetCommitValue(offset=6, leader_epoch=3, metadata="", commit_timestamp=NOW_MS, topic_id=topic_id)
    assert list(offsets.committed(GROUP)) == [(TOPIC, 0, expected), (TOPIC, 7, replace(expected, offset=8))]
    assert offsets.count == 3


@pytest.mark.parametrize(
    "request_", [commit_request((0, 6), metadata="m"), commit_request((0, 6), retention_time_ms=9)]
)
def test_unusual_commit_is_loaded_the_usual_way(offsets: Offsets, request_: OffsetCommitRequest) -> None:
    load(offsets, commit_request((0, 5)))
    assert not load(offsets, request_)
    assert offset_of(offsets) == 6


def test_commit_behind_a_pending_one_is_loaded_the_usual_way(offsets: Offsets) -> None:
    load(offsets, commit_request((0, 5)))
    commit_in_transaction(offsets, PRODUCER, commit_in_transaction_request((0, 9)))
    assert not load(offsets, commit_request((0, 6)))
    offsets.replay_marker(PRODUCER, committed=True)
    assert offset_of(offsets) == 6


def test_commit_after_a_deletion_is_loaded_into_what_is_there_now(offsets: Offsets) -> None:
    load(offsets, commit_request((0, 5)))
    load(offsets, commit_request((0, 6)))
    replay(offsets, offsets.forget_group(GROUP))
    load(offsets, commit_request((0, 7)))
    assert offset_of(offsets) == 7
    assert load(offsets, commit_request((0, 8)))
    assert (offset_of(offsets), offsets.count) == (8, 1)
