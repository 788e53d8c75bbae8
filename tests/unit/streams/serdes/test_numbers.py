"""Numbers have the bytes that Java's ByteBuffer gives them."""

import math

import pytest

from kaspar.streams import serdes
from kaspar.streams.serdes import Serde, SerializationError


@pytest.mark.parametrize(
    ("serde", "value", "written"),
    [
        (serdes.short(), 258, "0102"),
        (serdes.short(), -1, "ffff"),
        (serdes.short(), -(2**15), "8000"),
        (serdes.integer(), 16909060, "01020304"),
        (serdes.integer(), -2, "fffffffe"),
        (serdes.integer(), 2**31 - 1, "7fffffff"),
        (serdes.long(), 1, "0000000000000001"),
        (serdes.long(), -1, "ffffffffffffffff"),
        (serdes.long(), -(2**63), "8000000000000000"),
        (serdes.single(), 1.5, "3fc00000"),
        (serdes.single(), -0.0, "80000000"),
        (serdes.double(), 1.5, "3ff8000000000000"),
        (serdes.double(), -math.inf, "fff0000000000000"),
        (serdes.double(), math.pi, "400921fb54442d18"),
    ],
)
def test_numbers_are_big_endian_as_in_java(serde: Serde[float], value: float, written: str) -> None:
    assert serde.serialize("t", value) == bytes.fromhex(written)
    assert serde.deserialize("t", bytes.fromhex(written)) == value


def test_nan_has_the_bits_of_java() -> None:
    assert serdes.double().serialize("t", math.nan) == bytes.fromhex("7ff8000000000000")
    assert serdes.single().serialize("t", math.nan) == bytes.fromhex("7fc00000")


def test_a_double_takes_whole_numbers() -> None:
    assert serdes.double().serialize("t", 3) == bytes.fromhex("4008000000000000")


def test_a_single_reads_back_the_nearest_number_of_its_precision() -> None:
    assert serdes.single().deserialize("t", serdes.single().serialize("t", 0.1)) == pytest.approx(0.1, rel=1e-7)


@pytest.mark.parametrize(
    ("serde", "value", "sentence"),
    [
        (
            serdes.long(),
            "five",
            "The long serde cannot write a str to topic counts: set key_serde or value_serde to serdes.text(), or "
            "convert it to int.",
        ),
        (
            serdes.integer(),
            1.5,
            "The integer serde cannot write a float to topic counts: set key_serde or value_serde to serdes.double(), "
            "or convert it to int.",
        ),
        (
            serdes.short(),
            32768,
            "The short serde cannot write an int to topic counts: 32768 does not fit into its 2 bytes, use a wider "
            "serde.",
        ),
        (
            serdes.single(),
            1e300,
            "The single serde cannot write a float to topic counts: 1e+300 does not fit into its 4 bytes, use a wider "
            "serde.",
        ),
    ],
)
def test_what_is_no_such_number_is_refused_with_advice(serde: Serde[object], value: object, sentence: str) -> None:
    with pytest.raises(SerializationError) as raised:
        serde.serialize("counts", value)
    assert str(raised.value) == sentence


@pytest.mark.parametrize("data", [b"", b"1234567", b"123456789"])
def test_bytes_of_another_size_are_refused(data: bytes) -> None:
    with pytest.raises(
        SerializationError, match=r"The long serde cannot read \d bytes .* of topic counts: its numbers"
    ):
        serdes.long().deserialize("counts", data)
