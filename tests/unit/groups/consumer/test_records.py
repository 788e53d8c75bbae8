"""What a consumer group writes, and in which order: as Kafka does, so that each opens the folder of the other."""

from collections.abc import Sequence
from typing import Any

import pytest

from kaspar.coordination import AnyRecord, EncodedRecord, StoredRecord
from kaspar.groups.consumer.member import NOTHING_OWNED, Member, OwnedPartitions
from kaspar.groups.consumer.records import CurrentRecords, current_record
from kaspar.groups.consumer.states import MemberState
from kaspar.groups.records import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    CurrentTopicPartitions,
    GroupMetadataKey,
    encode,
)
from kaspar.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.unit.groups.consumer.shell import ClassicConsumer, Consumer, ConsumerShell, topic_id
from tests.unit.groups.shell import GROUP

KINDS = {
    GroupMetadataKey: "2",
    ConsumerGroupMetadataKey: "3",
    ConsumerGroupPartitionMetadataKey: "4",
    ConsumerGroupMemberMetadataKey: "5",
    ConsumerGroupTargetAssignmentMetadataKey: "6",
    ConsumerGroupTargetAssignmentMemberKey: "7",
    ConsumerGroupCurrentMemberAssignmentKey: "8",
    ConsumerGroupRegularExpressionKey: "16",
}


def kinds(records: list[StoredRecord]) -> str:
    """ "5a 3 -8b": the kind, whose it is, and a minus if it is a tombstone."""
    return " ".join(
        f"{'-' if record.value is None else ''}{KINDS[type(record.key)]}{getattr(record.key, 'member_id', '')}"
        for record in records
    )


def written(shell: ConsumerShell, do: object) -> str:
    before = len(shell.log)
    do()  # type: ignore[operator]
    return kinds(shell.since(before))


def test_a_first_member() -> None:
    shell = ConsumerShell()
    assert written(shell, shell.consumer("a").join) == "5a 3 7a 6 8a"


def test_a_second_member() -> None:
    shell = ConsumerShell()
    shell.consumer("a").join()
    assert written(shell, shell.consumer("b").join) == "5b 3 7a 7b 6 8b"


def test_revocation_and_what_follows_is_a_record_each() -> None:
    shell = ConsumerShell()
    first, second = shell.consumer("a").join(), shell.consumer("b").join()
    assert written(shell, first.heartbeat) == "8a"
    assert written(shell, first.heartbeat) == "8a"
    assert written(shell, second.heartbeat) == "8b"
    assert written(shell, second.heartbeat) == ""


def test_a_heartbeat_with_nothing_new_writes_nothing() -> None:
    shell = ConsumerShell()
    only = shell.consumer("a").join()
    assert written(shell, only.heartbeat) == ""


def test_leaving() -> None:
    shell = ConsumerShell()
    only = shell.consumer("a").join()
    assert written(shell, only.leave) == "-8a -7a -5a 3"


def test_leaving_for_a_while_and_coming_back() -> None:
    shell = ConsumerShell()
    static = shell.consumer("a", instance_id="i").join()
    assert written(shell, lambda: static.leave(-2)) == "8a"
    assert written(shell, shell.consumer("b", instance_id="i").join) == "-8a -7a -5a 5b 7b 8b 8b"


def test_patterns() -> None:
    shell = ConsumerShell()
    member = shell.consumer("a", pattern=".*")
    assert written(shell, member.join) == "5a 8a"
    assert written(shell, shell.work) == "16 3"
    assert written(shell, member.heartbeat) == "7a 6 8a"
    assert written(shell, member.leave) == "-8a -7a -5a -16 3"


def test_deleting_a_group() -> None:
    shell = ConsumerShell()
    shell.consumer("a").join().leave()
    assert (
        written(
            shell,
            lambda: shell.submit(lambda shard, ticket, now: shard.delete(GROUP, now), lambda code: None),  # type: ignore[arg-type, return-value]
        )
        == "-6 -4 -3"
    )
    assert not shell.shard.groups


def test_an_upgrade_and_a_downgrade() -> None:
    shell = ConsumerShell()
    classic = ClassicConsumer(shell).join()
    classic.sync({})
    ours = shell.consumer("b")
    its = classic.member_id
    assert written(shell, ours.join) == f"-2 5{its} 3 7{its} 6 8{its} 5b 3 7{its} 7b 6 8b"
    assert written(shell, ours.leave) == f"-8{its} -8b -7{its} -7b -6 -5{its} -5b -4 -3 2"


def test_the_metadata_of_partitions_from_before_kafka_4_1_is_deleted_where_it_is_met() -> None:
    shell = ConsumerShell()
    shell.append(
        StoredRecord(ConsumerGroupPartitionMetadataKey(group_id=GROUP), ConsumerGroupPartitionMetadataValue(topics=()))
    )
    assert written(shell, shell.consumer("a").join) == "5a 3 -4 7a 6 8a"


def test_before_kafka_4_3_the_log_did_not_say_when_a_partition_was_assigned() -> None:
    shell = ConsumerShell()
    shell.consumer("a").join()
    shell.append(
        StoredRecord(
            ConsumerGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id="a"),
            ConsumerGroupCurrentMemberAssignmentValue(
                member_epoch=7,
                previous_member_epoch=6,
                state=0,
                assigned_partitions=(CurrentTopicPartitions(topic_id=topic_id("orders"), partitions=(2, 3)),),
                partitions_pending_revocation=(),
            ),
        )
    )
    assert shell.member("a").assigned == {topic_id("orders"): {2: 7, 3: 7}}


def test_a_member_of_the_classic_protocol_is_kept_with_all_its_protocols() -> None:
    shell = ConsumerShell()
    classic = ClassicConsumer(shell).join()
    classic.sync({})
    shell.consumer("b").join()
    kept = shell.member(classic.member_id).classic
    assert isinstance(kept, ClassicMemberMetadata)
    assert [protocol.name for protocol in kept.supported_protocols] == ["cooperative-sticky"]


# -- members that move to another epoch --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("assigned", "pending"),
    [
        (NOTHING_OWNED, NOTHING_OWNED),
        ({topic_id("orders"): {3: 5, 1: 4}}, NOTHING_OWNED),
        ({topic_id("orders"): {0: 1}, topic_id("parcels"): {7: 2}}, {topic_id("orders"): {1: 1}}),
    ],
)
def test_members_that_keep_what_they_have_are_written_like_any_other(
    assigned: OwnedPartitions, pending: OwnedPartitions
) -> None:
    records = CurrentRecords(GROUP)
    replayed: list[Member] = []
    for epoch, state in ((1, MemberState.UNREVOKED_PARTITIONS), (2, MemberState.STABLE), (1 << 30, MemberState.STABLE)):
        for member_id in ("a", "b"):
            member = Member(member_id, epoch, epoch - 1, state, assigned=assigned, pending_revocation=pending)
            record = records.record(member, replayed.append)
            assert record.encoded == encode(current_record(GROUP, member))
            record.replay()
            assert replayed.pop() is member


def test_what_a_member_has_is_encoded_again_when_it_has_changed() -> None:
    records = CurrentRecords(GROUP)
    one, two = {topic_id("orders"): {0: 1}}, {topic_id("orders"): {0: 1, 1: 2}}
    for assigned, pending in ((one, NOTHING_OWNED), (two, NOTHING_OWNED), (one, two), (one, one)):
        member = Member("a", 3, 2, assigned=assigned, pending_revocation=pending)
        assert records.record(member, lambda member: None).encoded == encode(current_record(GROUP, member))


def decided(shell: ConsumerShell, consumer: Consumer, **said: Any) -> Sequence[AnyRecord]:
    """The records of a heartbeat, which are not written."""
    said.setdefault("topic_partitions", None)
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP, member_id=consumer.member_id, member_epoch=consumer.epoch, **said
    )
    return shell.shard.consumer_heartbeat(request, shell.client(1), shell.now).records


def test_a_member_that_moves_to_another_epoch_and_keeps_what_it_has_is_not_encoded_again() -> None:
    shell = ConsumerShell(orders=4, parcels=1)
    first, second = shell.consumer("a").join(), shell.consumer("b").join()
    shell.settle(first, second)
    for number in range(2):
        shell.consumer(f"other-{number}", "parcels").join()
        (record,) = decided(shell, first)
        assert isinstance(record, EncodedRecord)
        assert written(shell, first.heartbeat) == "8a"
        assert first.epoch == shell.membership.state.assignment_epoch
    members = dict(shell.membership.state.members)
    shell.crash()
    assert shell.membership.state.members == members


def test_a_member_that_changes_more_than_its_epoch_is_written_in_full() -> None:
    shell = ConsumerShell(orders=4, parcels=1)
    first, second = shell.consumer("a").join(), shell.consumer("b").join()
    shell.settle(first, second)
    shell.consumer("other", "parcels").join()
    changed = decided(shell, first, rebalance_timeout_ms=1)
    assert [type(record) for record in changed] == [StoredRecord, StoredRecord]
    shell.change_topics(orders=6)
    gained = decided(shell, first)
    assert {type(record) for record in gained} == {StoredRecord}


def test_nothing_is_remembered_of_members_that_have_left() -> None:
    shell = ConsumerShell(orders=4, parcels=1)
    first, static = shell.consumer("a").join(), shell.consumer("b", instance_id="i").join()
    shell.settle(first, static)
    other = shell.consumer("c", "parcels").join()
    shell.settle(first, static, other)
    remembered = shell.membership.current_records.written
    assert remembered.keys() == {"a", "b"}
    first.leave()
    static.leave(-2)
    shell.consumer("d", instance_id="i").join()
    shell.advance(60_000)
    assert not remembered
