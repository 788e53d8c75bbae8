"""What a consumer group writes, and in which order: as Kafka does, so that each opens the folder of the other."""

from kaspar.coordination import StoredRecord
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
)
from tests.unit.groups.consumer_shell import ClassicConsumer, ConsumerShell, topic_id
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
            lambda: shell.submit(lambda shard, ticket, now: shard.delete(GROUP, ticket, now), lambda code: None),  # type: ignore[arg-type, return-value]
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
