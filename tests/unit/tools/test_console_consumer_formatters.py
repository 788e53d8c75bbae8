"""How records are printed. tests/compat/commands compares whole runs with Kafka's command."""

import struct
from dataclasses import dataclass
from typing import Any, cast

import pytest

from kaspar.tools.console_consumer.deserializers import (
    DeserializationFailed,
    deserializer,
)
from kaspar.tools.console_consumer.formatters import default_formatter, formatter

PACKAGE = "org.apache.kafka.common.serialization."


@dataclass
class Record:
    """With the methods of confluent_kafka's."""

    a_key: bytes | None = None
    a_value: bytes | None = b"value"
    some_headers: tuple[tuple[str, bytes | None], ...] = ()
    a_timestamp: tuple[int, int] = (1, 1000)

    def key(self) -> bytes | None:
        return self.a_key

    def value(self) -> bytes | None:
        return self.a_value

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        return list(self.some_headers) or None

    def timestamp(self) -> tuple[int, int]:
        return self.a_timestamp

    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return 7


def printed(record: Record, **properties: str) -> bytes:
    """`_` in a name stands for a dot."""
    write = default_formatter({name.replace("_", "."): value for name, value in properties.items()})
    return write(cast(Any, record))


def test_values_are_lines() -> None:
    assert printed(Record()) == b"value\n"
    assert printed(Record(a_value=None)) == b"null\n"
    assert printed(Record(a_value=b"\xff\0")) == b"\xff\0\n"


def test_parts_have_an_order_and_separators() -> None:
    shown = dict.fromkeys(("timestamp", "partition", "offset", "delivery", "epoch", "headers", "key"), "true")
    record = Record(a_key=b"k", some_headers=(("a", b"1"), ("b", None)))
    assert printed(record, **{f"print_{name}": value for name, value in shown.items()}) == (
        b"CreateTime:1000\tPartition:3\tOffset:7\tDelivery:NOT_PRESENT\tEpoch:NOT_PRESENT\ta:1,b:null\tk\tvalue\n"
    )
    assert printed(record, print_key="TRUE", key_separator="=", line_separator=";") == b"k=value;"
    assert printed(record, print_key="true", print_value="false") == b"k\n"
    assert printed(record, print_headers="true", headers_separator="|", null_literal="-") == b"a:1|b:-\tvalue\n"


def test_what_a_record_lacks() -> None:
    record = Record(a_timestamp=(0, -1))
    expected = b"NO_TIMESTAMP\tNO_HEADERS\tnull\tvalue\n"
    assert printed(record, print_timestamp="true", print_headers="true", print_key="true") == expected
    assert printed(Record(a_timestamp=(2, 5)), print_timestamp="true") == b"LogAppendTime:5\tvalue\n"


def test_nothing_may_be_printed() -> None:
    assert printed(Record(), print_value="false") == b""
    nothing = formatter("org.apache.kafka.tools.consumer.NoOpMessageFormatter", {})
    assert nothing is not None
    assert nothing(cast(Any, Record())) == b""
    assert formatter("com.example.Formatter", {}) is None


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("String", "grün".encode(), "grün"),
        ("Long", struct.pack(">q", -5), "-5"),
        ("Integer", struct.pack(">i", 1 << 30), "1073741824"),
        ("Short", b"\xff\xff", "-1"),
        ("Double", struct.pack(">d", 0.5), "0.5"),
        ("Float", struct.pack(">f", 0.1), "0.1"),
        ("Boolean", b"\1", "true"),
        ("UUID", b"0E5F9D5B-7C5E-4F7B-9D1C-000000000001", "0e5f9d5b-7c5e-4f7b-9d1c-000000000001"),
        ("Bytes", b"a\\\xff", r"a\x5C\xFF"),
        ("ByteArray", b"abc", "abc"),
    ],
)
def test_deserializers(name: str, data: bytes, text: str) -> None:
    deserialize = deserializer(f"{PACKAGE}{name}Deserializer")
    assert deserialize is not None
    assert deserialize(data).decode() == text


@pytest.mark.parametrize("name", ["Long", "Integer", "Short", "Double", "Float", "Boolean", "UUID", "Void"])
def test_data_of_another_size_is_refused(name: str) -> None:
    deserialize = deserializer(f"{PACKAGE}{name}Deserializer")
    assert deserialize is not None
    with pytest.raises(DeserializationFailed):
        deserialize(b"abc")


def test_classes_of_others_are_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert deserializer("com.example.Deserializer") is None
    assert printed(Record(), value_deserializer="com.example.Deserializer") == b"value\n"
    assert "Unable to instantiate a deserializer from com.example.Deserializer" in capsys.readouterr().err
