"""Windowed keys have the bytes of Java's TimeWindowedSerde and SessionWindowedSerde."""

from typing import Any

import pytest

from kaspar.streams import serdes
from kaspar.streams.serdes import Serde, SerializationError
from kaspar.streams.windows import Window, Windowed

HOUR = 3_600_000


def test_a_time_windows_start_follows_the_key() -> None:
    serde = serdes.windowed(serdes.text(), HOUR)
    key = Windowed("ACME", Window(1_700_000_000_000, 1_700_003_600_000))
    written = b"ACME" + bytes.fromhex("0000018bcfe56800")
    assert serde.serialize("t", key) == written
    assert serde.deserialize("t", written) == key


def test_a_sessions_end_and_then_its_start_follow_the_key() -> None:
    serde = serdes.session_windowed(serdes.long())
    written = bytes.fromhex("0000000000000007" + "0000000000000300" + "0000000000000100")
    assert serde.serialize("t", Windowed(7, Window(0x100, 0x300))) == written
    assert serde.deserialize("t", written) == Windowed(7, Window(0x100, 0x300))


def test_an_empty_key_is_a_key() -> None:
    serde = serdes.windowed(serdes.text(), 5)
    assert serde.serialize("t", Windowed("", Window(1, 6))) == bytes.fromhex("0000000000000001")
    assert serde.deserialize("t", bytes.fromhex("0000000000000001")) == Windowed("", Window(1, 6))


def test_the_end_of_a_window_does_not_overflow() -> None:
    """WindowKeySchema.timeWindowForSize: it is at most Long.MAX_VALUE."""
    read = serdes.windowed(serdes.raw(), HOUR).deserialize("t", bytes.fromhex("7fffffffffffffff"))
    assert read == Windowed(b"", Window(2**63 - 1, 2**63 - 1))


@pytest.mark.parametrize("serde", [serdes.windowed(serdes.text(), 5), serdes.session_windowed(serdes.text())])
class TestBoth:
    def test_no_bytes_are_null(self, serde: Serde[Windowed[str]]) -> None:
        """As TimeWindowedDeserializer and SessionWindowedDeserializer read them."""
        assert serde.deserialize("t", b"") is None

    def test_bytes_without_a_window_are_refused(self, serde: Serde[Windowed[str]]) -> None:
        with pytest.raises(SerializationError, match="cannot read 5 bytes"):
            serde.deserialize("t", b"short")

    @pytest.mark.parametrize("value", ["word", 5, ("a", "b", "c")])
    def test_a_key_without_a_window_is_refused(self, serde: Serde[Any], value: Any) -> None:
        with pytest.raises(SerializationError, match=r"or convert it to Windowed\(key, Window\(start, end\)\)"):
            serde.serialize("t", value)

    def test_a_null_key_has_no_window(self, serde: Serde[Any]) -> None:
        with pytest.raises(SerializationError, match="its key is null"):
            serde.serialize("t", Windowed(None, Window(0, 5)))

    def test_a_window_has_times(self, serde: Serde[Any]) -> None:
        with pytest.raises(SerializationError, match=r"its window is Window\(start='now'"):
            serde.serialize("t", Windowed("a", Window("now", 5)))  # type: ignore[arg-type]

    def test_errors_of_the_inner_serde_name_that_serde(self, serde: Serde[Any]) -> None:
        with pytest.raises(SerializationError, match="The text serde cannot write an int"):
            serde.serialize("t", Windowed(5, Window(0, 5)))


@pytest.mark.parametrize("size", [0, -1])
def test_a_window_has_a_size(size: int) -> None:
    with pytest.raises(SerializationError, match="larger than zero"):
        serdes.windowed(serdes.text(), size)
