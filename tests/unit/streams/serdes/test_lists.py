"""Lists have the bytes of Java's ListSerde."""

from typing import Any

import pytest

from kaspar.streams import serdes
from kaspar.streams.serdes import Serde, SerializationError


@pytest.mark.parametrize(
    ("inner", "value", "written"),
    [
        (serdes.text(), ["ab", "", "c"], "01 00000003 00000002 6162 00000000 00000001 63"),
        (serdes.text(), [None, "a"], "01 00000002 ffffffff 00000001 61"),
        (serdes.text(), [], "01 00000000"),
        (serdes.boolean(), [True], "01 00000001 00000001 01"),
        (serdes.short(), [1, 2], "00 00000000 00000002 0001 0002"),
        (serdes.integer(), [None, 7, None], "00 00000002 00000000 00000002 00000003 00000007"),
        (serdes.long(), [], "00 00000000 00000000"),
        (serdes.list_of(serdes.short()), [[1]], "01 00000001 0000000b 00 00000000 00000001 0001"),
    ],
)
def test_lists_are_written_as_by_java(inner: Serde[Any], value: list[Any], written: str) -> None:
    serde = serdes.list_of(inner)
    assert serde.serialize("t", value) == bytes.fromhex(written)
    assert serde.deserialize("t", bytes.fromhex(written)) == value


@pytest.mark.parametrize(
    "data",
    [
        "",
        "01",
        "02 00000000",
        "00 00000000 00000000",  # entries of constant size, read by a serde of variable size
        "01 00000002 00000001 61",
        "01 00000001 00000002 61",
        "01 00000001 fffffffe 61",
        "01 ffffffff",
        "01 7fffffff",
        "01 00000001 00000001 61 62",
    ],
)
def test_bytes_that_are_no_list_are_refused(data: str) -> None:
    with pytest.raises(SerializationError, match="The list_of serde cannot read"):
        serdes.list_of(serdes.text()).deserialize("t", bytes.fromhex(data))


def test_what_is_no_list_is_refused() -> None:
    with pytest.raises(SerializationError, match="The list_of serde cannot write a str"):
        serdes.list_of(serdes.text()).serialize("t", "abc")  # type: ignore[arg-type]
