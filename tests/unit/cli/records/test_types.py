"""Types of keys and values."""

from typing import Any

import pytest

from kaspar.cli.records.record import RawRecord, ReadRecord
from kaspar.cli.records.types import WRITABLE, CannotRead, RecordType, deserialize, serialize

EXAMPLES: dict[RecordType, tuple[str, bytes, Any]] = {
    RecordType.STRING: ("zoë", "zoë".encode(), "zoë"),
    RecordType.JSON: ('{"a": 1}', b'{"a": 1}', {"a": 1}),
    RecordType.LONG: ("-2", b"\xff" * 7 + b"\xfe", -2),
    RecordType.INT: ("258", b"\0\0\1\2", 258),
    RecordType.SHORT: ("258", b"\1\2", 258),
    RecordType.DOUBLE: ("1.5", b"\x3f\xf8" + b"\0" * 6, 1.5),
    RecordType.FLOAT: ("1.5", b"\x3f\xc0\0\0", 1.5),
    RecordType.UUID: (
        "7B6F2A1C-0000-4000-8000-000000000001",
        b"7b6f2a1c-0000-4000-8000-000000000001",
        "7b6f2a1c-0000-4000-8000-000000000001",
    ),
    RecordType.HEX: ("00ff", b"\0\xff", "00ff"),
    RecordType.BASE64: ("AP8=", b"\0\xff", "AP8="),
}


@pytest.mark.parametrize("kind", WRITABLE)
def test_typed_text_becomes_bytes_and_back(kind: RecordType) -> None:
    typed, data, read = EXAMPLES[kind]
    assert serialize(typed, kind) == data
    assert deserialize(data, kind) == read


@pytest.mark.parametrize(
    ("kind", "typed"),
    [
        (RecordType.JSON, "{a: 1}"),
        (RecordType.LONG, "ten"),
        (RecordType.LONG, str(2**63)),
        (RecordType.INT, "1.5"),
        (RecordType.DOUBLE, "x"),
        (RecordType.FLOAT, "1e300"),
        (RecordType.UUID, "123"),
        (RecordType.HEX, "0g"),
        (RecordType.BASE64, "!"),
    ],
)
def test_text_that_is_not_of_the_type_is_refused(kind: RecordType, typed: str) -> None:
    with pytest.raises(ValueError, match=f"'{typed}' is not "):
        serialize(typed, kind)


@pytest.mark.parametrize("kind", [RecordType.LONG, RecordType.INT, RecordType.DOUBLE, RecordType.UUID, RecordType.JSON])
def test_bytes_that_are_not_of_the_type_are_refused(kind: RecordType) -> None:
    with pytest.raises(CannotRead, match=r"'\\xffab' is not "):
        deserialize(b"\xffab", kind)


def test_auto_tells_json_text_and_bytes_apart() -> None:
    assert deserialize(b'{"a": [1]}', RecordType.AUTO) == {"a": [1]}
    assert deserialize(b"17", RecordType.AUTO) == 17
    assert deserialize(b"hello", RecordType.AUTO) == "hello"
    assert deserialize(b"\xff\xfe", RecordType.AUTO) == b"\xff\xfe"
    assert deserialize(None, RecordType.AUTO) is None


def test_auto_leaves_keys_text() -> None:
    record = ReadRecord(RawRecord("t", 0, 0, 0, b"17", b"17"), RecordType.AUTO, RecordType.AUTO)
    assert (record.key, record.value) == ("17", 17)


def test_plain_lines_show_bytes_as_they_are_unless_a_type_is_asked_for() -> None:
    raw = RawRecord("t", 0, 0, 0, b"\0\0\0\7", b'{"a":  1}')
    assert ReadRecord(raw, RecordType.AUTO, RecordType.AUTO).value_bytes() == b'{"a":  1}'
    assert ReadRecord(raw, RecordType.AUTO, RecordType.AUTO).key_bytes() == b"\0\0\0\7"
    assert ReadRecord(raw, RecordType.INT, RecordType.JSON).key_bytes() == b"7"
    assert ReadRecord(raw, RecordType.INT, RecordType.JSON).value_bytes() == b'{"a": 1}'
