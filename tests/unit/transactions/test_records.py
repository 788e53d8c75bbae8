"""The records of `__transaction_state`: their bytes, and what is read of older and of foreign ones. That Kafka's own
classes agree is shown in tests/compat/test_transaction_records.py.
"""

import pytest

from kaspar.base.errors import MalformedBytes
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.coordination import StoredRecord
from kaspar.transactions import stored
from kaspar.transactions.records import PartitionsSchema, TransactionLogKey, TransactionLogValue
from kaspar.transactions.state import Transaction, TransactionState

KEY = TransactionLogKey(transactional_id="tx")
KEY_BYTES = bytes.fromhex("0000 0002 7478")
VALUE = TransactionLogValue(
    producer_id=1,
    producer_epoch=2,
    transaction_timeout_ms=3,
    transaction_status=1,
    transaction_partitions=(PartitionsSchema(topic="a", partition_ids=(0, 7)),),
    transaction_last_update_timestamp_ms=4,
    transaction_start_timestamp_ms=5,
)
BODY = "0000000000000001 0002 00000003 01"
TIMES = "0000000000000004 0000000000000005"


def changed(**changes: object) -> TransactionLogValue:
    fields = {name: getattr(VALUE, name) for name in VALUE.__slots__}
    return TransactionLogValue(**{**fields, **changes})


@pytest.mark.parametrize(
    ("value", "version", "octets"),
    [
        (VALUE, 0, f"0000 {BODY} 00000001 0001 61 00000002 00000000 00000007 {TIMES}"),
        (VALUE, 1, f"0001 {BODY} 02 02 61 03 00000000 00000007 00 {TIMES} 00"),
        (changed(transaction_partitions=None), 0, f"0000 {BODY} ffffffff {TIMES}"),
        (changed(transaction_partitions=None), 2, f"0001 {BODY} 00 {TIMES} 00"),
        (
            changed(
                transaction_partitions=(),
                previous_producer_id=8,
                next_producer_id=9,
                client_transaction_version=2,
                next_producer_epoch=6,
            ),
            2,
            f"0001 {BODY} 01 {TIMES} 04 00 08 0000000000000008 01 08 0000000000000009 02 02 0002 03 02 0006",
        ),
        (None, 2, None),
    ],
)
def test_records_have_kafkas_bytes(value: TransactionLogValue | None, version: int, octets: str | None) -> None:
    record = StoredRecord(KEY, value)
    expected = None if octets is None else bytes.fromhex(octets)
    assert stored.encode(record, version=version) == (KEY_BYTES, expected)
    assert stored.decode(KEY_BYTES, expected) == record


@pytest.mark.parametrize("changes", [{"next_producer_id": 9}, {"client_transaction_version": 2}])
def test_what_version_0_has_no_room_for_is_written_in_version_1(changes: dict[str, object]) -> None:
    record = StoredRecord(KEY, changed(**changes))
    key, value = stored.encode(record, version=0)
    assert stored.decode(key, value) == record


def test_version_0_leaves_out_an_id_that_only_repeats_what_is_known() -> None:
    record = StoredRecord(KEY, changed(previous_producer_id=1))
    assert stored.decode(*stored.encode(record, version=0)) == StoredRecord(KEY, VALUE)


def test_tags_of_a_later_release_are_passed_over() -> None:
    octets = bytes.fromhex(f"0001 {BODY} 02 02 61 03 00000000 00000007 00 {TIMES} 01 09 02 ffff")
    assert stored.decode(KEY_BYTES, octets) == StoredRecord(KEY, VALUE)


def test_a_key_of_a_later_release_is_passed_over() -> None:
    assert stored.decode(bytes.fromhex("0001 0002 7478"), None) is None


@pytest.mark.parametrize(
    "octets",
    [
        "",
        "0002",
        f"0001 {BODY}",
        f"0000 {BODY[:-2]} 06 ffffffff {TIMES}",
        f"0000 {BODY[:-2]} 07 ffffffff {TIMES}",
        f"0000 {BODY[:-2]} 7f ffffffff {TIMES}",
    ],
)
def test_what_is_no_record_is_malformed(octets: str) -> None:
    with pytest.raises(MalformedBytes):
        stored.decode(KEY_BYTES, bytes.fromhex(octets))


def test_a_transaction_is_read_back_as_it_was_in_every_state_the_log_keeps() -> None:
    transaction = Transaction(
        transactional_id="tx",
        producer=ProducerIdAndEpoch(5, 1),
        timeout_ms=100,
        last_update_ms=7,
        start_ms=6,
        partitions=frozenset({TopicPartition("a", 1), TopicPartition("a", 0), TopicPartition("b", 3)}),
        previous_producer_id=4,
        client_version=2,
    )
    now = {"version": 2, "now_ms": 9}
    ongoing = transaction.with_partitions(frozenset(), **now)
    kept = ongoing.kept(ProducerIdAndEpoch(5, 2), 100, 9)
    ends = [(each, commit) for each in (ongoing, kept) for commit in (True, False)]
    ended = [each.ended(committed=commit, next_producer_id=int, **now) for each, commit in ends]
    for each in (ongoing, kept, *ended, *(one.completed(10) for one in ended)):
        assert stored.from_record(stored.to_record(each)) == each
    dead = ended[0].completed(10).expired()
    assert dead.state is TransactionState.DEAD
    assert stored.to_record(dead).value is None
