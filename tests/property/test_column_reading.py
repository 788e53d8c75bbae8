"""Columns against the records one by one, and damaged bytes against both forms of the compiled core."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaspar.base.errors import MalformedBytes
from kaspar.records import Codec, Record, build_batch, iter_records, set_crc
from kaspar.records import column_reading as reading
from kaspar.records.batch import iter_headers
from tests.property.test_records import RECORDS
from tests.unit.protocol.mutation import mutate
from tests.unit.records.columns import ALL_COLUMNS, Row, read_columns, rows_of
from tests.unit.records.forms import FORMS, core_in_form

BATCHES = st.lists(st.tuples(RECORDS, st.sampled_from(Codec), st.integers(0, 5)), min_size=1, max_size=4)


@pytest.fixture(params=FORMS, autouse=True, scope="module")
def form(request: pytest.FixtureRequest) -> object:
    patch = pytest.MonkeyPatch()
    for name in ("column_filling", "batch_selection"):
        patch.setattr(reading, name, core_in_form(request.param, f"kaspar.records.core.{name}"))
    yield
    patch.undo()


def response_of(batches: list[tuple[list[Record], Codec, int]]) -> bytearray:
    """Batches with gaps between them."""
    response = bytearray()
    offset = 0
    for records, codec, gap in batches:
        offset += gap
        response += build_batch(records, base_offset=offset, codec=codec)
        offset += len(records)
    return response


@settings(deadline=None)
@given(
    batches=BATCHES,
    start=st.integers(0, 30),
    length=st.integers(0, 80),
    columns=st.sets(st.sampled_from(ALL_COLUMNS)),
    max_rows=st.integers(1, 40),
    max_bytes=st.integers(1, 3000),
    cut=st.integers(0, 100),
)
def test_columns_have_what_the_records_have(
    batches: list[tuple[list[Record], Codec, int]],
    start: int,
    length: int,
    columns: set[str],
    max_rows: int,
    max_bytes: int,
    cut: int,
) -> None:
    response = response_of(batches)
    response = response[: max(len(response) - cut, 0)]
    whole = max((position + header.size for position, header in iter_headers(response, 0, len(response))), default=0)
    wanted = [record for record in iter_records(response, 0, whole) if start <= record.offset < start + length]
    found = read_columns(
        [response], start=start, until=start + length, columns=columns, max_rows=max_rows, max_bytes=max_bytes
    )
    assert [row for each in found for row in rows_of(each)] == [
        Row(
            record.key if "key" in columns else None,
            record.value if "value" in columns else None,
            record.offset if "offset" in columns else None,
            record.timestamp * 1000 if "timestamp" in columns else None,
            0 if "timestampType" in columns else None,
            (record.headers or None) if "headers" in columns else None,
        )
        for record in wanted
    ]
    for each in found:
        assert 0 < each.rows <= max_rows
        assert each.rows == 1 or len(each.key.data) + len(each.value.data) <= max_bytes


@settings(deadline=None, max_examples=400)
@given(BATCHES, st.integers(0, 1 << 32), st.booleans())
def test_damaged_bytes_are_refused_and_nothing_worse(
    batches: list[tuple[list[Record], Codec, int]], seed: int, with_good_crc: bool
) -> None:
    damaged = bytearray(mutate(bytes(response_of(batches)), random.Random(seed)))
    if with_good_crc:
        try:
            for position, _ in iter_headers(damaged, 0, len(damaged)):
                set_crc(damaged, position)
        except MalformedBytes:
            pass  # the batches before it have a good one
    try:
        found = read_columns([damaged], max_rows=10, max_bytes=1000, aborted=[(-1, 0)])
    except MalformedBytes:
        return
    for each in found:
        rows_of(each)
