"""The records of `__consumer_offsets`: their bytes, letter by letter where it matters most, and what is read of older
and of foreign ones. That Kafka's own classes agree with all of them is shown in tests/compat/test_group_records.py.
"""

import random
import uuid

import pytest

from kaspar.base.errors import MalformedBytes
from kaspar.coordination import StoredRecord
from kaspar.coordination.record_kinds import RecordKind
from kaspar.groups.records import (
    KINDS,
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    CurrentTopicPartitions,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    decode,
    encode,
)
from kaspar.protocol.schema import VersionRange
from tests.unit.groups.record_samples import random_message

TOPIC_ID = uuid.UUID(int=0x0102030405060708090A0B0C0D0E0F10)
COMMIT_KEY = OffsetCommitKey(group="g", topic="t", partition=3)
COMMIT_KEY_BYTES = bytes.fromhex("0001 0001 67 0001 74 00000003")


def commit(**values: object) -> OffsetCommitValue:
    return OffsetCommitValue(**{"offset": 5, "metadata": "m", "commit_timestamp": 7, **values})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("record", "key", "value"),
    [
        (
            StoredRecord(COMMIT_KEY, commit(leader_epoch=2)),
            "0001 0001 67 0001 74 00000003",
            "0004 0000000000000005 00000002 02 6d 0000000000000007 00",
        ),
        (
            StoredRecord(COMMIT_KEY, commit(topic_id=TOPIC_ID)),
            "0001 0001 67 0001 74 00000003",
            "0004 0000000000000005 ffffffff 02 6d 0000000000000007 01 00 10 0102030405060708090a0b0c0d0e0f10",
        ),
        (
            StoredRecord(COMMIT_KEY, commit(expire_timestamp=9)),
            "0001 0001 67 0001 74 00000003",
            "0001 0000000000000005 0001 6d 0000000000000007 0000000000000009",
        ),
        (StoredRecord(COMMIT_KEY, None), "0001 0001 67 0001 74 00000003", None),
        (
            StoredRecord(
                GroupMetadataKey(group="g"),
                GroupMetadataValue(
                    protocol_type="consumer",
                    generation=1,
                    protocol="range",
                    leader="m",
                    current_state_timestamp=7,
                    members=(
                        MemberMetadata(
                            member_id="m",
                            group_instance_id="i",
                            client_id="c",
                            client_host="/h",
                            rebalance_timeout=4,
                            session_timeout=5,
                            subscription=b"s",
                            assignment=b"",
                        ),
                    ),
                ),
            ),
            "0002 0001 67",
            "0003 0008 636f6e73756d6572 00000001 0005 72616e6765 0001 6d 0000000000000007 00000001"
            "0001 6d 0001 69 0001 63 0002 2f68 00000004 00000005 00000001 73 00000000",
        ),
        (
            StoredRecord(ConsumerGroupMetadataKey(group_id="g"), ConsumerGroupMetadataValue(epoch=3, metadata_hash=6)),
            "0003 0001 67",
            "0000 00000003 01 00 08 0000000000000006",
        ),
        (
            StoredRecord(
                ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"),
                ConsumerGroupMemberMetadataValue(
                    instance_id=None,
                    rack_id=None,
                    client_id="c",
                    client_host="/h",
                    subscribed_topic_names=("t",),
                    subscribed_topic_regex=None,
                    rebalance_timeout_ms=4,
                    server_assignor=None,
                    classic_member_metadata=ClassicMemberMetadata(
                        session_timeout_ms=5, supported_protocols=(ClassicProtocol(name="r", metadata=b"s"),)
                    ),
                ),
            ),
            "0005 0001 67 0001 6d",
            "0000 00 00 02 63 03 2f68 02 02 74 00 00000004 00 01 00 0c 01 00000005 02 02 72 02 73 00 00",
        ),
        (
            StoredRecord(
                ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"),
                ConsumerGroupMemberMetadataValue(
                    instance_id="i",
                    rack_id="r",
                    client_id="c",
                    client_host="/h",
                    subscribed_topic_names=(),
                    subscribed_topic_regex="t.*",
                    server_assignor="range",
                    classic_member_metadata=None,
                ),
            ),
            "0005 0001 67 0001 6d",
            "0000 02 69 02 72 02 63 03 2f68 01 04 742e2a ffffffff 06 72616e6765 01 00 01 00",
        ),
        (
            StoredRecord(
                ConsumerGroupTargetAssignmentMetadataKey(group_id="g"),
                ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=3),
            ),
            "0006 0001 67",
            "0000 00000003 00",
        ),
        (
            StoredRecord(
                ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m"),
                ConsumerGroupCurrentMemberAssignmentValue(
                    member_epoch=3,
                    previous_member_epoch=2,
                    state=1,
                    assigned_partitions=(
                        CurrentTopicPartitions(topic_id=TOPIC_ID, partitions=(0, 1), assignment_epochs=(3, 2)),
                    ),
                    partitions_pending_revocation=(),
                ),
            ),
            "0008 0001 67 0001 6d",
            "0000 00000003 00000002 01 02 0102030405060708090a0b0c0d0e0f10 03 00000000 00000001"
            "01 00 09 03 00000003 00000002 01 00",
        ),
        (
            StoredRecord(
                ConsumerGroupRegularExpressionKey(group_id="g", regular_expression="t.*"),
                ConsumerGroupRegularExpressionValue(topics=("t1",), version=8, timestamp=9),
            ),
            "0010 0001 67 0003 742e2a",
            "0000 02 03 7431 0000000000000008 0000000000000009 00",
        ),
    ],
    ids=lambda value: type(value.key).__name__ if isinstance(value, StoredRecord) else None,
)
def test_bytes_are_what_kafka_writes(record: StoredRecord, key: str, value: str | None) -> None:
    written = (bytes.fromhex(key), None if value is None else bytes.fromhex(value))
    assert encode(record) == written
    assert decode(*written) == record


@pytest.mark.parametrize("kind", list(KINDS), ids=lambda kind: kind.key.__name__)
def test_every_version_of_a_value_is_read(kind: RecordKind) -> None:
    first, last = VersionRange.parse(kind.value.SCHEMA.versions)
    for version in range(first, last + 1):
        for seed in range(20):
            randomness = random.Random(seed)
            record = StoredRecord(
                random_message(kind.key, 0, randomness), random_message(kind.value, version, randomness)
            )
            assert decode(*KINDS.encode(record, value_version=version)) == record


def test_key_of_the_oldest_commits_is_read() -> None:
    key = b"\0\0" + COMMIT_KEY_BYTES[2:]
    value = bytes.fromhex("0000 0000000000000005 0001 6d 0000000000000007")
    assert decode(key, value) == StoredRecord(COMMIT_KEY, commit())


@pytest.mark.parametrize("number", [*range(9, 16), *range(17, 40), -1])
def test_kinds_of_share_and_streams_groups_are_passed_over(number: int) -> None:
    assert decode(number.to_bytes(2, "big", signed=True) + b"\0\x01g", b"\0\0whatever") is None


def test_version_of_a_later_release_is_no_record() -> None:
    with pytest.raises(MalformedBytes, match="version 5"):
        decode(COMMIT_KEY_BYTES, bytes.fromhex("0005 0000000000000005 00000002 02 6d 0000000000000007 00"))


@pytest.mark.parametrize("keep", range(len(COMMIT_KEY_BYTES)))
def test_key_that_is_cut_short_is_no_record(keep: int) -> None:
    with pytest.raises(MalformedBytes):
        decode(COMMIT_KEY_BYTES[:keep], None)
