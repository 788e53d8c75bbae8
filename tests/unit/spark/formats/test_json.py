"""JSON in columns: what it gives, what is bad, and that a bad record spoils nothing around it."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from kaspar.spark.formats.data_types import arrow_type_of, data_type_of
from kaspar.spark.formats.decoder import Decoded
from kaspar.spark.formats.json_columns import FEW, JsonDecoder, schema_for_arrow
from kaspar.spark.formats.json_rows import BadJson, reader_of

SCHEMA = "id bigint, name string, at timestamp, tags array<string>, place struct<lat: double, lon: double>, day date"


def decode(records: list[bytes | None], schema: str = SCHEMA) -> Decoded:
    done = JsonDecoder(data_type_of(schema)).decode(pa.array(records, pa.binary()))
    assert done.values.type == arrow_type_of(data_type_of(schema))
    assert len(done.values) == len(records)
    return done


def one(text: str, schema: str) -> Any:
    """The only column of a record; the reason if it is bad."""
    done = decode([text.encode()], schema)
    return done.bad.get(0) or next(iter(done.values[0].as_py().values()))


def test_a_record_becomes_a_struct_with_what_is_missing_null_and_what_is_unknown_passed_over() -> None:
    done = decode([b'{"id": 1, "name": "x", "new": [{}], "place": {"lon": 2}}', b"{}"])
    nothing = dict.fromkeys(("id", "name", "at", "tags", "place", "day"))
    assert done.values.to_pylist() == [{**nothing, "id": 1, "name": "x", "place": {"lat": None, "lon": 2.0}}, nothing]
    assert done.bad == {}


def test_no_bytes_and_empty_ones_are_null_and_not_bad() -> None:
    done = decode([None, b"", b" \n", b"{}"], "id bigint")
    assert done.values.to_pylist() == [None, None, None, {"id": None}]
    assert done.bad == {}


@pytest.mark.parametrize("where", [0, FEW - 1, FEW, 500, 999])
@pytest.mark.parametrize(
    "spoiler", [b'{"id": "x"}', b'{"id": 1}{"id": 2}', b"{", b"\xff", b"[]", b'{"id": 2', b'{"a": {}']
)
def test_one_bad_record_is_found_wherever_it_is(where: int, spoiler: bytes) -> None:
    records: list[bytes | None] = [b'{"id": %d}' % number for number in range(1000)]
    records[where] = spoiler
    done = decode(records, "id bigint")
    assert list(done.bad) == [where]
    assert [value and value["id"] for value in done.values.to_pylist()] == [
        None if number == where else number for number in range(1000)
    ]


def test_records_that_would_make_one_document_or_two_stay_where_they_are() -> None:
    done = decode([b'{"id": 1}', b'{"id":', b"2}", b'{"id": 3}{"id": 4}', b'{"id":{}', b'{"id": 5}'], "id bigint")
    assert list(done.bad) == [1, 2, 3, 4]
    assert done.values.to_pylist() == [{"id": 1}, None, None, None, None, {"id": 5}]


def test_how_deep_a_record_may_be_does_not_depend_on_its_neighbours() -> None:
    levels = {400: True, 100_000: False}
    for depth, fits in levels.items():
        deep = b'{"more": ' + b"[" * depth + b"]" * depth + b"}"
        for neighbour in (b'{"id": 1}', b'{"id": "bad"}'):
            assert (1 in decode([neighbour, deep], "id int").bad) is not fits


def test_line_ends_within_a_record_are_its_own() -> None:
    done = decode(
        [b'{\n  "id": 1,\r\n  "name": "a\\nb"\n}', b'{"name": "a\nb"}', b'\n{"id": 2}\n'], "id int, name string"
    )
    assert done.values.to_pylist() == [{"id": 1, "name": "a\nb"}, None, {"id": 2, "name": None}]
    assert list(done.bad) == [1]


def test_many_bad_records_among_good_ones() -> None:
    records = [b'{"id": %d}' % row if row % 3 else b'{"id": %d.5}' % row for row in range(700)]
    done = decode(list(records), "id int")
    assert list(done.bad) == [row for row in range(700) if row % 3 == 0]
    assert [value["id"] for value in done.values.to_pylist() if value] == [row for row in range(700) if row % 3]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"v": 1.0}', "v is 1.0, which is not a whole number"),
        ('{"v": "1"}', 'v is "1", which is not a whole number'),
        ('{"v": 2147483648}', "v is 2147483648, which is too large for int"),
        ('{"v": 1', "it is not JSON (Expecting ',' delimiter at character 7)"),
        ('{"v": 1} {', "it is not JSON (Extra data at character 9)"),
        ("null", "it is null, which is not an object"),
        ("[1]", "it is [1], which is not an object"),
        ('{"v": "' + "x" * 100 + '"}', 'v is "' + "x" * 56 + "..., which is not a whole number"),
        ("[" * 100_000, "it is nested too deeply"),
        ('{"v": ' * 800 + "1" + "}" * 800, "it is nested too deeply"),
    ],
)
def test_the_reason_says_what_is_wrong(text: str, reason: str) -> None:
    assert one(text, "v int") == reason


@pytest.mark.parametrize(
    ("text", "data_type", "value"),
    [
        ("1.005", "decimal(6,2)", "1.01"),
        ('"1e2"', "decimal(6,2)", "100.00"),
        ("99999.99", "decimal(6,2)", "v is 99999.99, which is too large for decimal(6,2)"),
        ("1e999999999", "decimal(6,2)", "v is 1e999999999, which is too large for decimal(6,2)"),
        ("1e-999999999", "decimal(6,2)", "0.00"),
        ('"\\u0031e999999999"', "decimal(6,2)", "v is 1e999999999, which is too large for decimal(6,2)"),
        ("-1.5e32", "decimal(38,18)", "v is -1.5e32, which is too large"),
        ("-41777", "decimal(9,9)", "v is -41777, which is too large for decimal(9,9)"),
        ("9" * 39, "decimal(38,38)", "v is 9999"),
        (
            '[{"x": 1.5}, {"x": "-2"}]',
            "array<struct<x: decimal(6,2)>>",
            "[{'x': Decimal('1.50')}, {'x': Decimal('-2.00')}]",
        ),
        ('"NaN"', "decimal(6,2)", 'v is "NaN", which is not decimal(6,2)'),
        ('"Infinity"', "double", "inf"),
        ("1e400", "double", "inf"),
        ('"2024-05-01T12:30:00.1234567+02:00"', "timestamp", "2024-05-01 10:30:00.123456+00:00"),
        ('"2024-05-01 12:30"', "timestamp", "2024-05-01 12:30:00+00:00"),
        ('"2024-07-01T12:00:00 Europe/Berlin"', "timestamp", "2024-07-01 10:00:00+00:00"),
        ("1714566600", "timestamp", "2024-05-01 12:30:00+00:00"),
        ('"2024-02-30"', "timestamp", 'v is "2024-02-30", which is not a timestamp'),
        ('"2024-05-01T12:30:00"', "timestamp_ntz", "2024-05-01 12:30:00"),
        ('"2024-05-01T12:30:00Z"', "timestamp_ntz", 'v is "2024-05-01T12:30:00Z", which is not a timestamp without'),
        ('"2024-5-1"', "date", "2024-05-01"),
        ("5", "date", "v is 5, which is not a date"),
        ('"YQ=="', "binary", "b'a'"),
        ('"?"', "binary", 'v is "?", which is not bytes in base64'),
        ('{"a": 1, "b": null}', "map<string,int>", "[('a', 1), ('b', None)]"),
        ('{"x": [1.50, null]}', "string", '{"x":[1.50,null]}'),
        ("12.50", "string", "12.50"),
        ("true", "string", "true"),
        ('"\\ud800"', "string", "v has an unpaired surrogate"),
    ],
)
def test_values_of_each_type(text: str, data_type: str, value: str) -> None:
    assert str(one('{"v": ' + text + "}", f"v {data_type}")).startswith(value)


def test_arrays_and_maps_may_be_the_root() -> None:
    assert decode([b"[1, null]", b"{}"], "array<int>").values.to_pylist() == [[1, None], None]
    assert decode([b'{"a": [1]}'], "map<string,array<int>>").values.to_pylist() == [[("a", [1])]]


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.sampled_from(
        ["2024-05-01", "2024-05-01T10:00:00", "2024-05-01T10:00:00.5Z", "1.25", "NaN", "2024-13-01", "0000-02-29"]
    ),
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)
)
TYPES = (
    "int", "bigint", "double", "decimal(9,3)", "decimal(38,18)", "decimal(3,3)", "string", "boolean", "date",
    "timestamp", "timestamp_ntz", "array<int>", "array<date>", "struct<x: int, y: string>",
    "array<struct<x: timestamp_ntz, y: decimal(5,2)>>",
)  # fmt: skip


@settings(deadline=None)
@given(
    data_type=st.sampled_from(TYPES),
    values=st.lists(VALUES, min_size=1, max_size=12),
    junk=st.lists(st.binary(max_size=6) | st.sampled_from([b"{", b"}", b"{}{}", b'{"v":', b"1}", b"\n"]), max_size=3),
)
def test_what_arrow_reads_together_is_what_each_record_says_alone(
    data_type: str, values: list[Any], junk: list[bytes]
) -> None:
    schema = data_type_of(f"v {data_type}")
    assert schema_for_arrow(schema) is not None
    records = [json.dumps({"v": value}).encode() for value in values] + junk + [b'{"v": null}']
    done = JsonDecoder(schema).decode(pa.array(records, pa.binary()))
    assert isinstance(schema, StructType)
    for row, record in enumerate(records):
        try:
            record.decode()
            alone = pa.array([reader_of(schema)(record)], arrow_type_of(schema))
        except (BadJson, UnicodeDecodeError):
            assert row in done.bad, record
        else:
            assert row not in done.bad, (record, done.bad)
            together = done.values.slice(row, 1)  # repr: NaN is equal to itself; equals: Python has no year 0
            assert together.equals(alone) or repr(together.to_pylist()) == repr(alone.to_pylist()), record
