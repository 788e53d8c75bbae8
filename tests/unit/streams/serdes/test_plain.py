"""Text, bytes, truth values and UUIDs, as Java writes and reads them."""

from uuid import UUID

import pytest

from kaspar.streams import serdes
from kaspar.streams.serdes import SerializationError

ID = UUID("12345678-9abc-4def-8123-456789abcdef")


@pytest.mark.parametrize("value", ["", "word", "Größe", "日本", "😀"])
def test_text_is_utf_8(value: str) -> None:
    assert serdes.text().serialize("t", value) == value.encode()
    assert serdes.text().deserialize("t", value.encode()) == value


def test_half_of_a_surrogate_pair_is_written_as_a_question_mark() -> None:
    assert serdes.text().serialize("t", "a\ud83db") == b"a?b"


@pytest.mark.parametrize(
    ("data", "read"),
    [
        (b"a\xffb", "a�b"),
        (b"\xe2\x82", "�"),  # a sequence that ends too early is replaced as a whole
        (b"\xc0\x80", "��"),  # an overlong one, by its bytes
        (b"\xed\xa0\x80", "�"),  # half of a surrogate pair, as a whole
        (b"\xed\xa0", "�"),
        (b"\xed\xa0a", "�a"),
        (b"\xf4\x90\x80\x80", "����"),  # beyond the last character
    ],
)
def test_bytes_that_are_not_utf_8_are_replaced_as_by_java(data: bytes, read: str) -> None:
    assert serdes.text().deserialize("t", data) == read


def test_text_refuses_other_types_with_the_serde_to_use() -> None:
    with pytest.raises(SerializationError) as raised:
        serdes.text().serialize("counts", 5)  # type: ignore[arg-type]
    assert str(raised.value) == (
        "The text serde cannot write an int to topic counts: set key_serde or value_serde to serdes.long(), or convert "
        "it to str."
    )


def test_bytes_pass_as_they_are() -> None:
    data = b"\x00\xff"
    assert serdes.raw().serialize("t", data) is data
    assert serdes.raw().deserialize("t", data) is data


@pytest.mark.parametrize("value", [bytearray(b"ab"), memoryview(b"ab")])
def test_what_is_written_does_not_change_with_a_buffer(value: bytearray | memoryview) -> None:
    assert type(serdes.raw().serialize("t", value)) is bytes  # type: ignore[arg-type]


def test_raw_refuses_text() -> None:
    with pytest.raises(SerializationError, match=r"The raw serde cannot write a str .* serdes\.text\(\)"):
        serdes.raw().serialize("t", "word")  # type: ignore[arg-type]


def test_a_boolean_is_one_byte() -> None:
    assert serdes.boolean().serialize("t", True) == b"\x01"
    assert serdes.boolean().serialize("t", False) == b"\x00"
    assert serdes.boolean().deserialize("t", b"\x01") is True
    assert serdes.boolean().deserialize("t", b"\x00") is False


@pytest.mark.parametrize("data", [b"", b"\x02", b"\x01\x00"])
def test_other_bytes_are_no_boolean(data: bytes) -> None:
    with pytest.raises(SerializationError, match="one byte, 01 or 00"):
        serdes.boolean().deserialize("t", data)


@pytest.mark.parametrize("value", [1, 0, "true", ""])
def test_only_true_and_false_are_booleans(value: object) -> None:
    with pytest.raises(SerializationError, match="The boolean serde cannot write"):
        serdes.boolean().serialize("t", value)  # type: ignore[arg-type]


def test_a_uuid_is_its_text() -> None:
    assert serdes.uuid().serialize("t", ID) == b"12345678-9abc-4def-8123-456789abcdef"
    assert serdes.uuid().deserialize("t", b"12345678-9ABC-4DEF-8123-456789ABCDEF") == ID


@pytest.mark.parametrize("data", [b"", ID.bytes, b"12345678-9abc-4def-8123-456789abcde"])
def test_what_is_not_the_text_of_a_uuid_is_refused(data: bytes) -> None:
    with pytest.raises(SerializationError, match="not a UUID in its text form"):
        serdes.uuid().deserialize("t", data)
