"""JSON values, and instances of classes in their JSON form."""

import dataclasses
import json
import sys
from typing import Any

import msgspec
import pytest

from kaspar.streams import serdes
from kaspar.streams.serdes import SerializationError


@dataclasses.dataclass(frozen=True, slots=True)
class Trade:
    symbol: str
    ask: float
    sizes: list[int] = dataclasses.field(default_factory=list)


class Click(msgspec.Struct):
    page: str
    user: int | None = None


@pytest.mark.parametrize(
    "value",
    [
        {"b": 1, "a": [True, False, None, -3, 0.25], "é": {"deep": '😀\n"\\/\x1f\u2028'}},
        [],
        {},
        "word",
        0,
        2**70,
        -1.5,
        True,
        {"1": 123456.789},
    ],
)
def test_json_is_compact_utf_8_in_the_order_of_the_dict(value: Any) -> None:
    written = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    assert serdes.json().serialize("t", value) == written
    assert serdes.json().deserialize("t", written) == value


@pytest.mark.parametrize("value", [1e16, 1e-7, 5e-324, 1.7976931348623157e308, 0.1])
def test_floats_read_back_equal(value: float) -> None:
    assert serdes.json().deserialize("t", serdes.json().serialize("t", value)) == value


@pytest.mark.parametrize("data", [b"", b"{", b"nope", b"\xff", b"1 2", b'{"a":1,}'])
def test_what_is_not_json_is_refused(data: bytes) -> None:
    with pytest.raises(SerializationError, match=r"The json serde cannot read \d bytes .* of topic t: "):
        serdes.json().deserialize("t", data)


def test_json_refuses_what_has_no_json_form() -> None:
    with pytest.raises(SerializationError, match=r"cannot write an object to topic t: set .* serdes\.of\("):
        serdes.json().serialize("t", object())
    with pytest.raises(SerializationError, match=r"cannot write a dict to topic t: .*object"):
        serdes.json().serialize("t", {"a": object()})


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (Trade("ACME", 12.5, [100, 200]), b'{"symbol":"ACME","ask":12.5,"sizes":[100,200]}'),
        (Click("/hats"), b'{"page":"/hats","user":null}'),
    ],
)
def test_instances_are_written_in_json_and_read_back_as_such(value: Any, written: bytes) -> None:
    serde = serdes.structured(type(value))
    assert serde.serialize("t", value) == written
    assert serde.deserialize("t", written) == value


def test_fields_with_defaults_may_be_missing_and_unknown_ones_are_ignored() -> None:
    assert serdes.structured(Trade).deserialize("t", b'{"symbol":"ACME","ask":1,"x":0}') == Trade("ACME", 1.0)


def test_a_field_of_another_type_is_refused_by_name() -> None:
    with pytest.raises(SerializationError, match=r"structured\(Trade\) serde cannot read .*\$\.ask"):
        serdes.structured(Trade).deserialize("t", b'{"symbol":"ACME","ask":"much"}')


def test_an_instance_of_another_class_is_refused() -> None:
    with pytest.raises(
        SerializationError, match=r"structured\(Trade\) serde cannot write a Click .*structured\(Click\)"
    ):
        serdes.structured(Trade).serialize("t", Click("/"))  # type: ignore[arg-type]


@pytest.mark.parametrize("cls", [dict, str, object])
def test_a_class_without_declared_fields_is_refused(cls: type) -> None:
    with pytest.raises(SerializationError, match="takes a dataclass, a msgspec Struct or a pydantic model"):
        serdes.structured(cls)


def test_a_class_whose_fields_have_no_json_form_is_refused() -> None:
    @dataclasses.dataclass
    class Odd:
        field: list[int] | tuple[int, ...]

    with pytest.raises(SerializationError, match="The fields of Odd cannot be represented as JSON"):
        serdes.structured(Odd)


def test_pydantic_is_not_imported_for_other_classes() -> None:
    loaded = "pydantic" in sys.modules
    serdes.structured(Trade)
    assert ("pydantic" in sys.modules) == loaded


def test_models_of_pydantic_are_validated() -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Order", id=(int, ...), note=(str, pydantic.Field(default="", max_length=5)))
    serde = serdes.structured(model)
    assert serde.serialize("t", model(id=1, note="é")) == '{"id":1,"note":"é"}'.encode()
    assert serde.deserialize("t", b'{"id":1}') == model(id=1)
    with pytest.raises(SerializationError, match=r"structured\(Order\) serde cannot read"):
        serde.deserialize("t", b'{"id":1,"note":"too long"}')
