"""Records of internal topics as JSON. tests/compat/commands compares them with what Kafka's formatters print."""

import uuid

import pytest

from kaspar.base.errors import MalformedBytes
from kaspar.base.ids import ZERO_UUID
from kaspar.coordination.decision import StoredRecord
from kaspar.groups import records as groups
from kaspar.tools.internal_records import decode_group_record, decode_transaction_record, record_type
from kaspar.tools.message_json import json_line
from kaspar.transactions import records as transactions

TOPIC_ID = uuid.UUID(int=1)


def commit(topic_id: uuid.UUID = ZERO_UUID) -> tuple[bytes, bytes | None]:
    key = groups.OffsetCommitKey(group="grüße", topic="orders", partition=3)
    value = groups.OffsetCommitValue(offset=7, metadata="", commit_timestamp=1, topic_id=topic_id)
    return groups.encode(StoredRecord(key, value))


def test_committed_offset() -> None:
    record = decode_group_record(*commit())
    assert record is not None
    assert (record.type, record.version) == (1, 4)
    assert json_line(record.key) == '{"group":"grüße","topic":"orders","partition":3}'
    assert json_line(record.value) == '{"offset":7,"leaderEpoch":-1,"metadata":"","commitTimestamp":1}'


def test_tagged_fields_appear_where_they_are_set() -> None:
    record = decode_group_record(*commit(TOPIC_ID))
    assert record is not None
    assert record.value is not None
    assert record.value["topicId"] == "AAAAAAAAAAAAAAAAAAAAAQ"


def test_tombstone() -> None:
    key, _ = commit()
    record = decode_group_record(key, None)
    assert record is not None
    assert (record.version, record.value) == (None, None)


def test_structs_and_bytes() -> None:
    member = groups.MemberMetadata(
        member_id="m", client_id="c", client_host="/h", session_timeout=1, subscription=b"\0\1", assignment=b""
    )
    value = groups.GroupMetadataValue(
        protocol_type="consumer", generation=1, protocol=None, leader=None, members=(member,)
    )
    record = decode_group_record(*groups.encode(StoredRecord(groups.GroupMetadataKey(group="g"), value)))
    assert record is not None
    assert record.value is not None
    (shown,) = record.value["members"]
    assert shown == {
        "memberId": "m",
        "groupInstanceId": None,
        "clientId": "c",
        "clientHost": "/h",
        "rebalanceTimeout": -1,
        "sessionTimeout": 1,
        "subscription": "AAE=",
        "assignment": "",
    }


def test_transaction() -> None:
    value = transactions.TransactionLogValue(
        producer_id=1,
        producer_epoch=2,
        transaction_timeout_ms=3,
        transaction_status=1,
        transaction_partitions=(transactions.PartitionsSchema(topic="t", partition_ids=(0, 1)),),
        transaction_last_update_timestamp_ms=4,
        transaction_start_timestamp_ms=5,
    )
    stored = StoredRecord(transactions.TransactionLogKey(transactional_id="one"), value)
    record = decode_transaction_record(*transactions.KINDS.encode(stored))
    assert record is not None
    assert record.key == {"transactionalId": "one"}
    assert record.value is not None
    assert record.value["transactionPartitions"] == [{"topic": "t", "partitionIds": [0, 1]}]
    assert "nextProducerId" not in record.value


def test_other_types_are_left_to_the_caller() -> None:
    assert decode_group_record(b"\0\x09", b"") is None
    assert record_type(b"\0\x09") == 9
    with pytest.raises(MalformedBytes):
        decode_group_record(b"\0", None)
