"""How records of internal topics are shown: the names and numbers of Kafka's JSON."""

import struct
from uuid import UUID

import pytest

from kaspar.base.errors import MalformedBytes
from kaspar.coordination import StoredRecord
from kaspar.groups.records import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    TargetTopicPartitions,
    encode,
)
from kaspar.tools.internal_records import (
    InternalRecord,
    UnknownRecordType,
    group_record,
    java_double,
    json_text,
    message_json,
    transaction_record,
)


def test_fields_have_their_names_in_camel_case() -> None:
    message = TargetTopicPartitions(topic_id=UUID(int=1), partitions=(1, 2))
    assert message_json(message, 0) == {"topicId": "AAAAAAAAAAAAAAAAAAAAAQ", "partitions": [1, 2]}


def test_tagged_field_with_its_default_is_left_out() -> None:
    assert message_json(ConsumerGroupMetadataValue(epoch=1), 0) == {"epoch": 1}
    assert message_json(ConsumerGroupMetadataValue(epoch=1, metadata_hash=5), 0) == {"epoch": 1, "metadataHash": 5}


def test_record_has_type_and_version() -> None:
    stored = StoredRecord(ConsumerGroupMetadataKey(group_id="g"), ConsumerGroupMetadataValue(epoch=1))
    assert group_record(*encode(stored)) == InternalRecord(3, {"groupId": "g"}, 0, {"epoch": 1})


def test_record_without_value_deletes() -> None:
    stored = StoredRecord(ConsumerGroupMetadataKey(group_id="g"), None)
    assert group_record(*encode(stored)) == InternalRecord(3, {"groupId": "g"}, None, None)


def test_what_consumers_sent_is_shown_where_it_can_be_read() -> None:
    subscription = struct.pack(">hi", 0, 1) + struct.pack(">h", 1) + b"t" + struct.pack(">i", -1)
    member = MemberMetadata(
        member_id="m", client_id="c", client_host="h", session_timeout=1, subscription=subscription, assignment=b"x"
    )
    value = GroupMetadataValue(protocol_type="consumer", generation=1, protocol=None, leader=None, members=(member,))
    shown = group_record(*encode(StoredRecord(GroupMetadataKey(group="g"), value))).value
    assert shown is not None
    assert shown["members"][0]["subscription"] == {"topics": ["t"], "userData": None}
    assert shown["members"][0]["assignment"] == "eA=="


def test_unknown_kinds_and_damage_are_told_apart() -> None:
    with pytest.raises(UnknownRecordType):
        transaction_record(struct.pack(">h", 77), None)
    for key in (b"", b"\0", b"\0\0\0\x09x"):
        with pytest.raises(MalformedBytes):
            transaction_record(key, None)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (1024.0, "1024.0"),
        (0.001, "0.001"),
        (1e7, "1.0E7"),
        (12345678.5, "1.23456785E7"),
        (1.5e-7, "1.5E-7"),
        (1e300, "1.0E300"),
        (float("inf"), "Infinity"),
    ],
)
def test_floating_point_numbers_are_written_as_in_java(number: float, text: str) -> None:
    assert java_double(number) == text


def test_json_has_no_spaces() -> None:
    assert json_text({"a": [1, None, True, "ü\n"], "b": {"c": 1.0}}) == '{"a":[1,null,true,"ü\\n"],"b":{"c":1.0}}'
