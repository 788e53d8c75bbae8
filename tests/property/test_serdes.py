"""Every serde reads back what it has written, and refuses other bytes with a SerializationError and nothing else."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaspar.streams import serdes
from kaspar.streams.serdes import Serde, SerializationError
from kaspar.streams.windows import Window, Windowed

TEXT = st.text(st.characters(codec="utf-8"))
TIMES = st.integers(0, 2**62)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.booleans() | st.integers() | FINITE | TEXT,
    lambda inner: st.lists(inner | st.none()) | st.dictionaries(TEXT, inner | st.none()),
    max_leaves=10,
)
AVRO = {
    "type": "record",
    "name": "Trade",
    "fields": [{"name": "symbol", "type": "string"}, {"name": "sizes", "type": {"type": "array", "items": "long"}}],
}
LONGS = st.integers(-(2**63), 2**63 - 1)

EVERY: dict[str, tuple[Serde[Any], st.SearchStrategy[Any]]] = {
    "text": (serdes.text(), TEXT),
    "raw": (serdes.raw(), st.binary()),
    "short": (serdes.short(), st.integers(-(2**15), 2**15 - 1)),
    "integer": (serdes.integer(), st.integers(-(2**31), 2**31 - 1)),
    "long": (serdes.long(), LONGS),
    "single": (serdes.single(), st.floats(width=32, allow_nan=False)),
    "double": (serdes.double(), st.floats(allow_nan=False)),
    "boolean": (serdes.boolean(), st.booleans()),
    "uuid": (serdes.uuid(), st.uuids()),
    "json": (serdes.json(), JSON),
    "avro": (serdes.avro(AVRO), st.fixed_dictionaries({"symbol": TEXT, "sizes": st.lists(LONGS)})),
    "list of texts": (serdes.list_of(serdes.text()), st.lists(TEXT | st.none())),
    "list of longs": (serdes.list_of(serdes.long()), st.lists(LONGS | st.none())),
    "windowed": (
        serdes.windowed(serdes.text(), 1000),
        st.builds(lambda key, start: Windowed(key, Window(start, start + 1000)), TEXT, TIMES),
    ),
    "session": (serdes.session_windowed(serdes.text()), st.builds(Windowed, TEXT, st.builds(Window, TIMES, TIMES))),
}


@pytest.mark.parametrize("name", EVERY)
@given(data=st.data())
def test_what_is_written_is_read_back(name: str, data: st.DataObject) -> None:
    serde, values = EVERY[name]
    value = data.draw(values)
    read = serde.deserialize("t", serde.serialize("t", value))
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize("name", EVERY)
@given(data=st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(name: str, data: bytes) -> None:
    serde, _ = EVERY[name]
    try:
        read = serde.deserialize("t", data)
    except SerializationError:
        return
    if not (isinstance(read, float) and math.isnan(read)):
        assert serde.deserialize("t", serde.serialize("t", read)) == read
