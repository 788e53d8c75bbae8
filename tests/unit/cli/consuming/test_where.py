"""`--where`: Python expressions that choose records."""

import pytest

from kaspar.cli.consuming.where import compile_where
from kaspar.cli.records.record import RawRecord, ReadRecord
from kaspar.cli.records.types import CannotRead, RecordType

RAW = RawRecord("orders", 2, 17, 1_700_000_000_000, b"alice", b'{"amount": 12, "tags": ["x"]}', (("trace", b"7"),))


def _record(raw: RawRecord = RAW, value_type: RecordType = RecordType.AUTO) -> ReadRecord:
    return ReadRecord(raw, RecordType.AUTO, value_type)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('value["amount"] > 10 and key.startswith("a")', True),
        ('value["amount"] > 12', False),
        ('headers["trace"] == "7"', True),
        ('topic == "orders" and partition == 2 and offset % 17 == 0', True),
        ("timestamp >= 1_700_000_000_000", True),
        ('any(tag == key[:0] + "x" for tag in value["tags"])', True),
        ('re.fullmatch("a.*e", key)', True),
        ('(lambda n: n["amount"])(value) == 12', True),
        ("[amount := value['amount'], amount > 11][1]", True),
        ("value is None", False),
    ],
)
def test_expression_decides(expression: str, expected: bool) -> None:
    assert compile_where(expression).matches(_record()) is expected


def test_record_that_the_expression_does_not_fit_is_left_out_and_counted() -> None:
    where = compile_where('value["total"] > 10')
    assert [where.matches(_record()), where.matches(_record())] == [False, False]
    assert where.failures == 2
    assert where.first_failure == "orders/2@17: KeyError: 'total'"


def test_value_of_another_type_is_not_counted_as_unfit() -> None:
    with pytest.raises(CannotRead):
        compile_where("value > 1").matches(_record(value_type=RecordType.LONG))


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("value >", "is not a Python expression: invalid syntax"),
        ("import os", "is not a Python expression"),
        ("x = 1", "is not a Python expression"),
        ("valeu == 1", "a record has no 'valeu': did you mean value"),
        ("amount > 1", "a record has no 'amount': valid names: key, value, headers"),
    ],
)
def test_mistake_is_found_before_the_first_record(expression: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        compile_where(expression)
