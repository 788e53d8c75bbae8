"""What holds for every serde: null, names, two functions of one's own, and the way to Spark's workers."""

import dataclasses
import json
import uuid
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from pyspark import cloudpickle

from kaspar.base.errors import InvalidSetting, KasparError
from kaspar.streams import serdes
from kaspar.streams.serdes import Serde, SerializationError
from kaspar.streams.windows import Window, Windowed


@dataclasses.dataclass
class Order:
    id: int


def hexadecimal(number: int) -> bytes:
    return f"{number:x}".encode()


def from_hexadecimal(data: bytes) -> int:
    return int(data, 16)


def in_a_worker(serde: Serde[Any]) -> Any:
    return cloudpickle.loads(cloudpickle.dumps(serde))  # type: ignore[no-untyped-call]


EVERY: list[tuple[Serde[Any], Any]] = [
    (serdes.text(), "word"),
    (serdes.raw(), b"word"),
    (serdes.short(), 1),
    (serdes.integer(), 1),
    (serdes.long(), 1),
    (serdes.single(), 1.5),
    (serdes.double(), 1.5),
    (serdes.boolean(), False),
    (serdes.uuid(), uuid.UUID(int=1)),
    (serdes.json(), {"a": [1]}),
    (serdes.structured(Order), Order(1)),
    (serdes.avro({"type": "array", "items": "long"}), [1, 2]),
    (serdes.protobuf(Timestamp), Timestamp(seconds=1)),
    (serdes.windowed(serdes.text(), 10), Windowed("a", Window(0, 10))),
    (serdes.session_windowed(serdes.text()), Windowed("a", Window(0, 10))),
    (serdes.list_of(serdes.long()), [1, None]),
    (serdes.of(hexadecimal, from_hexadecimal), 255),
    (serdes.of(lambda value: json.dumps(value).encode(), json.loads), {"a": 1}),
]


@pytest.mark.parametrize(("serde", "value"), EVERY)
def test_null_is_null_both_ways(serde: Serde[Any], value: Any) -> None:
    assert serde.serialize("t", None) is None
    assert serde.deserialize("t", None) is None


@pytest.mark.parametrize(("serde", "value"), EVERY)
def test_serdes_travel_to_workers(serde: Serde[Any], value: Any) -> None:
    unpickled = in_a_worker(serde)
    written = unpickled.serialize("t", value)
    assert isinstance(written, bytes)
    assert serde.serialize("t", value) == written
    assert unpickled.deserialize("t", written) == value


@pytest.mark.parametrize(("serde", "value"), EVERY[:10])
def test_serdes_without_parameters_stay_the_same_object(serde: Serde[Any], value: Any) -> None:
    assert in_a_worker(serde) is serde


def test_functions_of_ones_own_are_a_serde() -> None:
    serde = serdes.of(hexadecimal, from_hexadecimal)
    assert serde.serialize("t", 255) == b"ff"
    assert serde.deserialize("t", b"ff") == 255


def test_what_such_functions_raise_is_named() -> None:
    serde = serdes.of(hexadecimal, from_hexadecimal)
    with pytest.raises(
        SerializationError, match=r"of\(hexadecimal, from_hexadecimal\) serde cannot write a str .* Value"
    ):
        serde.serialize("t", "ff")  # type: ignore[arg-type]
    with pytest.raises(SerializationError, match=r"cannot read 4 bytes \(6e6f7065\) of topic t: ValueError: invalid"):
        serde.deserialize("t", b"nope")


def test_such_a_serializer_returns_bytes() -> None:
    serde: Serde[Any] = serdes.of(str, float)  # type: ignore[arg-type]
    with pytest.raises(SerializationError, match="its serializer must return bytes, not a str"):
        serde.serialize("t", 1.5)


@pytest.mark.parametrize(
    ("name", "serde"),
    [
        ("text", serdes.text()),
        ("json", serdes.json()),
        ("raw", serdes.raw()),
        ("single", serdes.single()),
        ("org.apache.kafka.common.serialization.Serdes$StringSerde", serdes.text()),
        ("org.apache.kafka.common.serialization.Serdes$LongSerde", serdes.long()),
        ("org.apache.kafka.common.serialization.Serdes$FloatSerde", serdes.single()),
        ("org.apache.kafka.common.serialization.Serdes$ByteArraySerde", serdes.raw()),
        ("org.apache.kafka.common.serialization.Serdes$UUIDSerde", serdes.uuid()),
    ],
)
def test_settings_name_serdes_shortly_or_as_java_does(name: str, serde: Serde[Any]) -> None:
    assert serdes.serde_for(name) is serde


def test_settings_also_take_a_serde() -> None:
    serde = serdes.structured(Order)
    assert serdes.serde_for(serde) is serde


@pytest.mark.parametrize(
    "name", ["string", "", "avro", "org.apache.kafka.common.serialization.Serdes$VoidSerde", "StringSerde"]
)
def test_an_unknown_name_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(InvalidSetting, match=r"Unknown serde .* text, raw, short, integer, long"):
        serdes.serde_for(name)


@pytest.mark.parametrize("value", [5, None, str, serdes.text])
def test_what_is_no_serde_is_refused(value: Any) -> None:
    with pytest.raises(InvalidSetting, match="A serde must have the methods"):
        serdes.serde_for(value)


def test_errors_are_sentences_for_people() -> None:
    assert issubclass(SerializationError, KasparError)
