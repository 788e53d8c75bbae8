import pytest

from kaspar.base.errors import MalformedBytes
from kaspar.records import (
    ControlType,
    EndTransactionMarker,
    Record,
    build_end_transaction_marker,
    build_leader_change,
    check_batch,
    control_type,
    iter_records,
    read_end_transaction_marker,
)
from tests.unit.records.batches import NOW_MS


@pytest.mark.parametrize("kind", [ControlType.COMMIT, ControlType.ABORT])
def test_end_transaction_marker_is_read_back(kind: ControlType) -> None:
    marker = EndTransactionMarker(kind, 42)
    batch = build_end_transaction_marker(marker, producer_id=9, producer_epoch=2, timestamp=NOW_MS, leader_epoch=3)
    checked = check_batch(batch, 0, len(batch))
    assert checked.is_control
    assert checked.is_transactional
    assert (checked.producer_id, checked.producer_epoch, checked.base_sequence) == (9, 2, -1)
    (record,) = iter_records(batch)
    assert read_end_transaction_marker(record) == marker
    assert (record.key, record.value) == (bytes([0, 0, 0, kind]), b"\0\0\0\0\0\x2a")


def test_transaction_ends_in_one_of_two_ways() -> None:
    with pytest.raises(ValueError, match="not LEADER_CHANGE"):
        build_end_transaction_marker(
            EndTransactionMarker(ControlType.LEADER_CHANGE, 0), producer_id=1, producer_epoch=0, timestamp=NOW_MS
        )


def test_leader_change_names_leader_and_voters() -> None:
    batch = build_leader_change(1, (1, 2), (1,), timestamp=NOW_MS, leader_epoch=6)
    checked = check_batch(batch, 0, len(batch))
    assert checked.is_control
    assert not checked.is_transactional
    assert checked.leader_epoch == 6
    (record,) = iter_records(batch)
    assert control_type(record) is ControlType.LEADER_CHANGE
    assert record.value == b"\0\0" + b"\0\0\0\1" + b"\3\0\0\0\1\0\0\0\0\2\0" + b"\2\0\0\0\1\0" + b"\0"


def test_control_record_of_a_newer_kafka_is_unknown() -> None:
    assert control_type(Record(NOW_MS, b"\0\0\0\x63", None)) is ControlType.UNKNOWN


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0", b"\xff\xff\0\0"])
def test_control_record_without_a_type_is_malformed(key: bytes | None) -> None:
    with pytest.raises(MalformedBytes):
        control_type(Record(NOW_MS, key, None))


@pytest.mark.parametrize(
    ("key", "value"),
    [(b"\0\0\0\2", b"\0" * 6), (b"\0\0\0\1", None), (b"\0\0\0\1", b"\0" * 5), (b"\0\0\0\0", b"\xff\xff\0\0\0\0")],
)
def test_wrong_end_transaction_marker_is_malformed(key: bytes, value: bytes | None) -> None:
    with pytest.raises(MalformedBytes):
        read_end_transaction_marker(Record(NOW_MS, key, value))
