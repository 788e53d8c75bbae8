"""The shard of groups: which group a request is for; what is listed, deleted and forgotten; what replay makes of it."""

import uuid
from typing import Any

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.config.broker.groups import GroupSettings
from kaspar.coordination import StoredRecord
from kaspar.groups.expiration import EXPIRE
from kaspar.groups.group import GroupKind
from kaspar.groups.offsets.commits import DecodedCommit, TransactionalCommit
from kaspar.groups.offsets.committed import PIECE
from kaspar.groups.records import ConsumerGroupMetadataKey, ConsumerGroupMetadataValue, GroupMetadataKey
from kaspar.groups.rounds import MAX_DELETED_PER_SLICE, MAX_VISITED_PER_SLICE
from kaspar.groups.topics import TopicView
from kaspar.protocol.messages.list_groups import ListGroupsRequest
from kaspar.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kaspar.protocol.messages.offset_fetch import OffsetFetchRequestGroup
from kaspar.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from tests.unit.groups.shell import DELAY_MS, GROUP, SESSION_MS, Shell, Waiting

TOPIC_ID = uuid.UUID(int=5)

MINUTE_MS = 60_000
RETENTION_MINUTES = 60
CHECK_MS = 10 * MINUTE_MS
PRODUCER = ProducerIdAndEpoch(7, 0)


def commit(
    shell: Shell,
    *partitions: int,
    member_id: str = "",
    generation: int = -1,
    group_id: str = GROUP,
    version: int = 9,
    topic: str = "words",
) -> ErrorCode:
    request = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=(
            OffsetCommitRequestTopic(
                name=topic,
                partitions=tuple(
                    OffsetCommitRequestPartition(partition_index=each, committed_offset=5, committed_metadata=None)
                    for each in partitions or (0,)
                ),
            ),
        ),
    )
    ticket = shell.submit(
        lambda shard, ticket, now: shard.commit(DecodedCommit(request, version), now),
        _commit_refused,
    )
    return _code(ticket)


def _commit_refused(code: ErrorCode) -> OffsetCommitResponse:
    refused = OffsetCommitResponsePartition(partition_index=0, error_code=code)
    return OffsetCommitResponse(topics=(OffsetCommitResponseTopic(name="words", partitions=(refused,)),))


def _code(ticket: Waiting) -> ErrorCode:
    return ErrorCode(ticket.response.topics[0].partitions[0].error_code)


def committed(shell: Shell, group_id: str = GROUP) -> dict[int, int]:
    request = OffsetFetchRequestGroup(group_id=group_id, topics=None)
    response = shell.shard.fetch(request, False, shell.now)
    return {each.partition_index: each.committed_offset for topic in response.topics for each in topic.partitions}


def retaining(**settings: Any) -> Shell:
    return Shell(
        GroupSettings(
            group_initial_rebalance_delay_ms=DELAY_MS,
            offsets_retention_minutes=RETENTION_MINUTES,
            offsets_retention_check_interval_ms=CHECK_MS,
            **settings,
        )
    )


# -- listing and describing --------------------------------------------------------------------------------------------


def listed(shell: Shell, states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> dict[str, tuple[str, str, str]]:
    request = ListGroupsRequest(states_filter=states, types_filter=types)
    groups = (each for each in shell.shard.list_groups(request) if each is not None)
    return {each.group_id: (each.protocol_type, each.group_state, each.group_type) for each in groups}


def three_groups() -> Shell:
    shell = Shell()
    shell.stable(1, group_id="stable")
    (member,) = shell.stable(1, group_id="empty")
    shell.leave((member, None), group_id="empty")
    commit(shell, group_id="simple")
    return shell


def test_groups_are_listed_with_type_and_state() -> None:
    assert listed(three_groups()) == {
        "stable": ("consumer", "Stable", "classic"),
        "empty": ("consumer", "Empty", "classic"),
        "simple": ("", "Empty", "classic"),
    }


@pytest.mark.parametrize(
    ("states", "types", "found"),
    [
        (("Stable",), (), {"stable"}),
        (("stable", " EMPTY "), (), {"stable", "empty", "simple"}),
        (("no such state",), (), set()),
        ((), ("Classic",), {"stable", "empty", "simple"}),
        ((), ("consumer",), set()),
        ((), ("no such type",), set()),
        (("Empty",), ("classic",), {"empty", "simple"}),
    ],
)
def test_lists_are_filtered_by_state_and_type(states: tuple[str, ...], types: tuple[str, ...], found: set[str]) -> None:
    assert listed(three_groups(), states, types).keys() == found


def test_a_stable_group_is_described_with_metadata_and_assignments() -> None:
    shell = Shell()
    (member,) = shell.stable(1, protocols={"range": b"metadata"}, client_id="app")
    group = shell.shard.describe(GROUP, 6, shell.now)
    assert (group.error_code, group.group_state, group.protocol_type, group.protocol_data) == (
        ErrorCode.NONE,
        "Stable",
        "consumer",
        "range",
    )
    (described,) = group.members
    assert described.member_id == member
    assert (described.client_id, described.client_host) == ("app", "/10.0.0.1")
    assert (described.member_metadata, described.member_assignment) == (b"metadata", member.encode())


def test_a_group_that_rebalances_is_described_without_them() -> None:
    shell = Shell()
    leader, _ = shell.stable(2)
    shell.join(leader)
    group = shell.shard.describe(GROUP, 6, shell.now)
    assert (group.group_state, group.protocol_data) == ("PreparingRebalance", "")
    assert [(each.member_metadata, each.member_assignment) for each in group.members] == [(b"", b"")] * 2


def test_a_group_that_is_not_there_is_dead_and_since_version_6_not_found() -> None:
    shell = Shell()
    before, since = (shell.shard.describe("nobody", version, shell.now) for version in (5, 6))
    assert (before.error_code, before.error_message, before.group_state) == (ErrorCode.NONE, None, "Dead")
    assert (since.error_code, since.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert since.error_message == "Group nobody not found."


# -- deleting ----------------------------------------------------------------------------------------------------------


def test_a_group_that_is_not_there_cannot_be_deleted() -> None:
    assert Shell().delete("nobody").code is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_with_members_cannot_be_deleted() -> None:
    shell = Shell()
    leader, _ = shell.stable(2)
    assert shell.delete().code is ErrorCode.NON_EMPTY_GROUP
    shell.join(leader)
    assert shell.delete().code is ErrorCode.NON_EMPTY_GROUP


def test_a_deleted_group_is_gone_with_its_offsets_also_after_a_restart() -> None:
    shell = Shell()
    (member,) = shell.stable(1)
    commit(shell, 0, 1, member_id=member, generation=1)
    shell.leave((member, None))
    group = shell.shard.groups[GROUP]
    assert shell.delete().code is ErrorCode.NONE
    assert group.state_name == "Dead"
    for _ in range(2):
        assert GROUP not in shell.shard.groups
        assert committed(shell) == {}
        shell.crash()


def test_a_deletion_that_the_log_refuses_deletes_nothing() -> None:
    shell = Shell()
    commit(shell)
    shell.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert shell.delete().code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert committed(shell) == {0: 5}


# -- commits -----------------------------------------------------------------------------------------------------------


def test_offsets_of_no_group_make_a_group_without_members() -> None:
    shell = Shell()
    assert commit(shell) is ErrorCode.NONE
    for _ in range(2):
        assert shell.state == "Empty"
        assert shell.shard.groups[GROUP].protocol_type is None
        shell.crash()


def test_a_generation_of_a_group_that_is_not_there_is_refused_in_the_words_of_the_version() -> None:
    shell = Shell()
    assert commit(shell, member_id="m", generation=1, version=8) is ErrorCode.ILLEGAL_GENERATION
    assert commit(shell, member_id="m", generation=1, version=9) is ErrorCode.GROUP_ID_NOT_FOUND
    assert not shell.shard.groups


def test_members_commit_with_their_generation() -> None:
    shell = Shell()
    (member,) = shell.stable(1)
    assert commit(shell, member_id=member, generation=1) is ErrorCode.NONE
    assert commit(shell, member_id=member, generation=0) is ErrorCode.ILLEGAL_GENERATION
    assert commit(shell, member_id="stranger", generation=1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(shell) is ErrorCode.UNKNOWN_MEMBER_ID


def test_nobody_commits_while_the_leader_assigns() -> None:
    shell = Shell()
    member, _ = shell.enter()
    shell.advance(DELAY_MS)
    assert commit(shell, member_id=member, generation=1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_members_may_commit_while_all_are_to_join_again() -> None:
    shell = Shell()
    leader, follower = shell.stable(2)
    shell.join(leader)
    assert commit(shell, member_id=follower, generation=1) is ErrorCode.NONE


def test_a_commit_keeps_a_session_alive() -> None:
    shell = Shell()
    (member,) = shell.stable(1)
    for _ in range(3):
        shell.advance(SESSION_MS - 1)
        assert commit(shell, member_id=member, generation=1) is ErrorCode.NONE


def test_a_commit_that_is_refused_keeps_nobody_alive() -> None:
    shell = Shell()
    (member,) = shell.stable(1)
    shell.advance(SESSION_MS - 1)
    commit(shell, member_id=member, generation=0)
    shell.advance(1)
    assert shell.heartbeat(member, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_transactional_commit_is_part_of_its_producers_transaction() -> None:
    shell = Shell()
    request = TxnOffsetCommitRequest(
        transactional_id="t",
        group_id=GROUP,
        producer_id=PRODUCER.producer_id,
        producer_epoch=PRODUCER.producer_epoch,
        topics=(
            TxnOffsetCommitRequestTopic(
                name="words",
                partitions=(
                    TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=9, committed_metadata=None),
                ),
            ),
        ),
    )
    shell.submit(
        lambda shard, ticket, now: shard.commit_in_transaction(TransactionalCommit(request, 5), now),
        lambda code: TxnOffsetCommitResponse(topics=()),
    )
    assert committed(shell) == {}
    shell.shard.replay_marker(PRODUCER, committed=True)
    assert committed(shell) == {0: 9}


# -- forgetting --------------------------------------------------------------------------------------------------------


def test_offsets_of_an_empty_group_are_forgotten_and_then_the_group() -> None:
    shell = retaining()
    (member,) = shell.stable(1)
    commit(shell, 0, 1, member_id=member, generation=1)
    shell.leave((member, None))
    shell.advance(RETENTION_MINUTES * MINUTE_MS - 1)
    assert committed(shell) == {0: 5, 1: 5}
    shell.advance(2 * CHECK_MS)
    for _ in range(2):
        assert committed(shell) == {}
        assert GROUP not in shell.shard.groups
        shell.crash()


def test_a_group_is_not_forgotten_between_the_two_requests_with_which_a_member_joins() -> None:
    shell = retaining()
    first = shell.join()
    assert first.code is ErrorCode.MEMBER_ID_REQUIRED
    shell.carry_out(shell.shard.timer_fired(EXPIRE, shell.now))
    assert shell.join(first.response.member_id).waits


def test_a_group_that_nobody_came_back_to_is_forgotten() -> None:
    shell = retaining()
    shell.join()
    shell.advance(2 * CHECK_MS)
    assert GROUP not in shell.shard.groups


def test_offsets_of_a_group_in_use_are_kept() -> None:
    shell = retaining()
    (member,) = shell.stable(1, protocol_type="connect", session_timeout_ms=10**9)
    commit(shell, member_id=member, generation=1)
    shell.advance(3 * RETENTION_MINUTES * MINUTE_MS)
    assert committed(shell) == {0: 5}


def test_a_simple_groups_offsets_are_forgotten_one_by_one() -> None:
    shell = retaining()
    commit(shell, 0)
    shell.advance(RETENTION_MINUTES * MINUTE_MS // 2)
    commit(shell, 1)
    shell.advance(RETENTION_MINUTES * MINUTE_MS // 2 + CHECK_MS)
    assert committed(shell) == {1: 5}
    shell.advance(RETENTION_MINUTES * MINUTE_MS)
    assert GROUP not in shell.shard.groups


def test_many_offsets_are_forgotten_in_slices() -> None:
    shell = retaining()
    count = 2 * MAX_DELETED_PER_SLICE + 1
    commit(shell, *range(count))
    commit(shell, group_id="another")
    shell.now = shell.now._replace(believed_ms=shell.now.believed_ms + RETENTION_MINUTES * MINUTE_MS)
    slices = []
    while shell.shard.groups:
        decision = shell.shard.timer_fired(EXPIRE, shell.now)
        slices.append(len(decision.records))
        shell.carry_out(decision)
    assert sum(slices) == count + 1 + 2, "the offsets, and both groups"
    assert all(number < MAX_DELETED_PER_SLICE + PIECE for number in slices)
    assert shell.timers[EXPIRE] == shell.now.steady_ms + CHECK_MS


def test_no_offset_is_forgotten_because_the_wall_clock_jumps() -> None:
    """Only when the new time is believed. One that goes back keeps what there is, for as long as it would have been."""
    shell = retaining()
    commit(shell)
    now = shell.now
    shell.now = now._replace(wall_ms=now.wall_ms + 10 * RETENTION_MINUTES * MINUTE_MS)
    shell.advance(2 * CHECK_MS)
    assert committed(shell) == {0: 5}
    shell.now = shell.now._replace(believed_ms=shell.now.wall_ms)
    shell.advance(CHECK_MS)
    assert committed(shell) == {}


def test_a_group_goes_in_the_round_in_which_the_last_of_its_many_offsets_goes() -> None:
    shell = retaining()
    commit(shell, *range(4 * MAX_DELETED_PER_SLICE))
    shell.advance(RETENTION_MINUTES * MINUTE_MS + CHECK_MS)
    assert GROUP not in shell.shard.groups


def test_offsets_that_do_not_expire_are_looked_at_in_slices() -> None:
    """What a slice costs does not depend on how much there is, not even in a single group."""
    shell = retaining()
    count = 3 * MAX_VISITED_PER_SLICE
    for first in range(0, count, 1000):
        commit(shell, *range(first, first + 1000))
    slices = 0
    while slices == 0 or shell.timers[EXPIRE] == shell.now.steady_ms:
        shell.carry_out(shell.shard.timer_fired(EXPIRE, shell.now))
        slices += 1
    assert slices >= 3
    assert len(committed(shell)) == count


def test_what_the_log_refuses_to_forget_is_forgotten_in_the_next_round() -> None:
    shell = retaining()
    count = MAX_DELETED_PER_SLICE + 1
    commit(shell, *range(count))
    shell.refuses = ErrorCode.NOT_COORDINATOR
    shell.advance(RETENTION_MINUTES * MINUTE_MS + CHECK_MS)
    assert len(committed(shell)) == count
    shell.refuses = None
    shell.advance(CHECK_MS)
    assert committed(shell) == {}


def test_offsets_of_a_topic_that_is_gone_go_with_it() -> None:
    shell = Shell()
    shell.carry_out(shell.shard.topics_changed(_Topics("words", "others"), {"words", "others"}, shell.now))
    commit(shell, topic="words")
    commit(shell, 3, topic="others")
    topics = _Topics("others")
    shell.carry_out(shell.shard.topics_changed(topics, {"words", "others"}, shell.now, deleted={"words": {TOPIC_ID}}))
    shell.advance(0)
    assert committed(shell) == {3: 5}


@pytest.mark.parametrize("count", [1, MAX_DELETED_PER_SLICE + 1])
def test_offsets_of_a_topic_that_is_gone_go_when_the_log_takes_that(count: int) -> None:
    shell = Shell()
    shell.carry_out(shell.shard.topics_changed(_Topics("words"), {"words"}, shell.now))
    commit(shell, *range(count))
    shell.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
    shell.carry_out(shell.shard.topics_changed(_Topics(), {"words"}, shell.now, deleted={"words": {TOPIC_ID}}))
    shell.advance(10_000)
    assert len(committed(shell)) == count
    shell.refuses = None
    shell.advance(10_000)
    assert committed(shell) == {}


class _Topics:
    def __init__(self, *names: str) -> None:
        self._names = names

    def topic(self, name: str) -> Any:
        return TopicView(name, TOPIC_ID, 1) if name in self._names else None

    def name_of(self, topic_id: object) -> None:
        return None

    def names(self) -> tuple[str, ...]:
        return self._names


# -- replay ------------------------------------------------------------------------------------------------------------


def test_a_new_group_that_the_log_refuses_never_was() -> None:
    shell = Shell()
    shell.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert shell.join().code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert shell.join(version=3).code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not shell.shard.groups
    shell.refuses = None
    shell.advance(SESSION_MS)
    assert shell.stable(1)


def test_groups_are_restored_as_stable_with_new_sessions_for_their_members() -> None:
    shell = Shell()
    leader, follower = shell.stable(2)
    shell.advance(SESSION_MS - 1)
    shell.crash()
    assert shell.state == "Stable"
    shell.advance(SESSION_MS - 1)
    assert shell.heartbeat(leader, 1) is ErrorCode.NONE
    assert shell.sync(follower, 1).response.assignment == follower.encode()
    shell.advance(1)
    assert shell.heartbeat(follower, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_that_a_crash_ended_restarts() -> None:
    shell = Shell()
    leader, follower = shell.stable(2)
    waiting = shell.join(leader)
    shell.crash()
    assert waiting.code is ErrorCode.NOT_COORDINATOR
    assert shell.state == "Stable"
    joined = {leader: shell.join(leader), follower: shell.join(follower)}
    assert {each.response.generation_id for each in joined.values()} == {2}


def test_records_of_the_consumer_protocol_take_the_place_of_a_classic_group_and_the_reverse() -> None:
    shell = Shell()
    (member,) = shell.stable(1)
    commit(shell, member_id=member, generation=1)
    shell.leave((member, None))
    group_record = shell.records[-1]
    shell.append(StoredRecord(GroupMetadataKey(group=GROUP), None))
    shell.append(StoredRecord(ConsumerGroupMetadataKey(group_id=GROUP), ConsumerGroupMetadataValue(epoch=1)))
    for _ in range(2):
        assert shell.shard.groups[GROUP].kind is GroupKind.CONSUMER
        assert committed(shell) == {0: 5}
        shell.crash()
    shell.append(StoredRecord(ConsumerGroupMetadataKey(group_id=GROUP), None))
    shell.append(group_record)
    for _ in range(2):
        assert shell.shard.groups[GROUP].kind is GroupKind.CLASSIC
        assert committed(shell) == {0: 5}
        shell.crash()


def test_consumer_records_take_the_place_of_a_group_that_only_has_offsets() -> None:
    shell = Shell()
    commit(shell)
    shell.append(StoredRecord(ConsumerGroupMetadataKey(group_id=GROUP), ConsumerGroupMetadataValue(epoch=1)))
    assert shell.shard.groups[GROUP].kind is GroupKind.CONSUMER
    assert committed(shell) == {0: 5}


def test_an_empty_consumer_group_gives_way_to_a_classic_one() -> None:
    shell = Shell()
    shell.append(StoredRecord(ConsumerGroupMetadataKey(group_id=GROUP), ConsumerGroupMetadataValue(epoch=1)))
    shell.stable(1)
    for _ in range(2):
        assert shell.shard.groups[GROUP].kind is GroupKind.CLASSIC
        shell.crash()


def test_a_tombstone_of_one_kind_leaves_a_group_of_the_other_alone() -> None:
    shell = Shell()
    shell.append(StoredRecord(ConsumerGroupMetadataKey(group_id=GROUP), ConsumerGroupMetadataValue(epoch=1)))
    shell.append(StoredRecord(GroupMetadataKey(group=GROUP), None))
    assert shell.shard.groups[GROUP].kind is GroupKind.CONSUMER
    shell.stable(1, group_id="classic")
    shell.append(StoredRecord(ConsumerGroupMetadataKey(group_id="classic"), None))
    assert shell.shard.groups["classic"].kind is GroupKind.CLASSIC
