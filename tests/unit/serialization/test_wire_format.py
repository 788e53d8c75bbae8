"""Which schema a record was written with."""

from uuid import UUID

import pytest

from kaspar.serialization.errors import UnreadableBytes
from kaspar.serialization.wire_format import (
    KEY_HEADER,
    VALUE_HEADER,
    Framed,
    guid_header,
    id_prefix,
    read_frame,
    read_indexes,
    write_indexes,
)

GUID = UUID("00112233-4455-6677-8899-aabbccddeeff")


def test_id_is_in_front_of_the_value() -> None:
    assert id_prefix(258) == b"\0\0\0\1\2"
    assert read_frame(b"\0\0\0\1\2value") == Framed(258, 5)


def test_ids_have_32_bits() -> None:
    assert read_frame(id_prefix(0xFFFFFFFF)) == Framed(0xFFFFFFFF, 5)


def test_guid_may_be_in_front_of_the_value() -> None:
    assert read_frame(b"\1" + GUID.bytes + b"value") == Framed(GUID, 17)


@pytest.mark.parametrize(("header", "is_key"), [(KEY_HEADER, True), (VALUE_HEADER, False)])
def test_guid_in_a_header_leaves_the_value_as_it_is(header: str, is_key: bool) -> None:
    headers = [("other", b"x"), (header, guid_header(GUID))]
    assert read_frame(b"\0\0\0\0\1", headers, is_key=is_key) == Framed(GUID, 0)
    assert read_frame(b"\0\0\0\0\1", headers, is_key=not is_key) == Framed(1, 5)


def test_last_header_counts() -> None:
    other = UUID(int=1)
    headers = [(VALUE_HEADER, guid_header(other)), (VALUE_HEADER, guid_header(GUID))]
    assert read_frame(b"", headers).schema == GUID


def test_message_indexes_come_with_the_header() -> None:
    framed = read_frame(b"value", [(VALUE_HEADER, guid_header(GUID, (1, 0)))])
    assert framed == Framed(GUID, 0, b"\x04\x02\x00")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is empty"),
        (b"\0\0\0\1", "has 4 bytes"),
        (b"\1" + GUID.bytes[:-1], "has 16 bytes"),
        (b"{}", "Unknown magic byte 123"),
    ],
)
def test_other_bytes_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableBytes, match=reason):
        read_frame(data)


@pytest.mark.parametrize(
    ("indexes", "data"), [((0,), b"\0"), ((1,), b"\x02\x02"), ((2, 0), b"\x04\x04\0"), ((64,), b"\x02\x80\x01")]
)
def test_message_indexes_are_zigzag_varints(indexes: tuple[int, ...], data: bytes) -> None:
    assert write_indexes(indexes) == data
    assert read_indexes(data + b"rest") == (indexes, len(data))
    assert read_indexes(b"xx" + data, 2) == (indexes, 2 + len(data))


def test_first_message_may_be_written_out() -> None:
    assert read_indexes(b"\x02\0") == ((0,), 2)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "ends within its message indexes"),
        (b"\x04\x02", "ends within its message indexes"),
        (b"\x01", "claims to have -1"),
        (b"\xfe\xff\x03", "claims to have 32767"),
        (b"\x02\x01", "message index -1"),
        (b"\x02" + b"\xff" * 9, "more than 32 bits"),
    ],
)
def test_broken_message_indexes_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableBytes, match=reason):
        read_indexes(data)
