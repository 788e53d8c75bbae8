"""Texts become values and values become texts as in Kafka."""

import pytest

from kaspar.config.kinds import BOOLEAN, DOUBLE, INT, LIST, LONG, MAX_DOUBLE, SHORT, STRING, Kind


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (INT, " 42 ", 42),
        (INT, "-2147483648", -(2**31)),
        (INT, "+7", 7),
        (LONG, "9223372036854775807", 2**63 - 1),
        (SHORT, "-1", -1),
        (BOOLEAN, "TRUE", True),
        (BOOLEAN, " false ", False),
        (DOUBLE, ".5", 0.5),
        (DOUBLE, "1e3", 1000.0),
        (STRING, "  a b ", "a b"),
        (LIST, " a , b,c ", ("a", "b", "c")),
        (LIST, "", ()),
        (LIST, "a,,b", ("a", "", "b")),
    ],
)
def test_text_is_read_as_kafka_reads_it(kind: Kind[object], text: str, value: object) -> None:
    assert kind.parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text", "problem"),
    [
        (INT, "2147483648", "Not a number of type INT"),
        (INT, "1_000", "Not a number of type INT"),
        (INT, "", "Not a number of type INT"),
        (INT, "9" * 100_000, "Not a number of type INT"),
        (SHORT, "32768", "Not a number of type SHORT"),
        (LONG, "1.0", "Not a number of type LONG"),
        (DOUBLE, "nan", "Not a number of type DOUBLE"),
        (BOOLEAN, "yes", "Expected value to be either true or false"),
    ],
)
def test_wrong_text_is_refused_in_kafkas_words(kind: Kind[object], text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{problem}$"):
        kind.parse(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (1.0, "1.0"),
        (0.0, "0.0"),
        (1e10, "1.0E10"),
        (12345678.0, "1.2345678E7"),
        (0.0001, "1.0E-4"),
        (MAX_DOUBLE, "1.7976931348623157E308"),
    ],
)
def test_a_ratio_is_written_as_java_writes_it(value: float, text: str) -> None:
    assert DOUBLE.format(value) == text
    assert DOUBLE.parse(text) == value
