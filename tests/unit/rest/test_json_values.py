"""The splitter of concatenated JSON values: where they end, in whatever pieces they arrive, and what ends a stream."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaspar.rest.json_values import (
    MAX_DEPTH,
    SCANNED_BYTES,
    JsonValues,
    MalformedStream,
    ValueTooLarge,
)

SCALARS = st.none() | st.booleans() | st.integers() | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10)
RECORDS = st.lists(st.dictionaries(st.text(), VALUES, max_size=3), max_size=5)
SPACE = st.text(" \t\r\n", max_size=3)


def taken(values: JsonValues) -> list[bytes]:
    found = []
    while (value := values.next()) is not None:
        found.append(value)
    return found


def split(*pieces: bytes, max_bytes: int = 1000) -> list[bytes]:
    values, found = JsonValues(max_bytes), []
    for piece in pieces:
        values.feed(piece)
        found += taken(values)
    values.end()
    return found


@given(RECORDS, SPACE, st.booleans(), st.lists(st.integers(0, 400), max_size=6))
def test_the_pieces_in_which_values_arrive_do_not_matter(
    records: list[Any], space: str, ascii_only: bool, cuts: list[int]
) -> None:
    texts = [json.dumps(record, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass") for record in records]
    stream = space.encode().join([b"", *texts, b""])
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    assert split(*(stream[start:end] for start, end in pairwise(places)), max_bytes=len(stream) + 1) == texts


@pytest.mark.parametrize(
    ("stream", "values"),
    [
        (b"", []),
        (b" \r\n\t", []),
        (b"{}{}", [b"{}", b"{}"]),
        (b'{"a":"}{"}\n{}', [b'{"a":"}{"}', b"{}"]),
        (rb'{"a":"\""}{"b":"\\"}', [rb'{"a":"\""}', rb'{"b":"\\"}']),
        (b"[{},[]] {}", [b"[{},[]]", b"{}"]),
        (b'{"a":}{}', [b'{"a":}', b"{}"]),
    ],
)
def test_values_end_where_their_brackets_close(stream: bytes, values: list[bytes]) -> None:
    assert split(stream) == values
    assert split(*(stream[place : place + 1] for place in range(len(stream)))) == values


@pytest.mark.parametrize("stream", [b"{", b'{"a', b'{"a":"\\', b'{"a":[1,2]'])
def test_a_stream_may_not_end_within_a_value(stream: bytes) -> None:
    with pytest.raises(MalformedStream, match="end-of-input"):
        split(b"{}" + stream)


@pytest.mark.parametrize("stream", [b"}", b"]", b",{}", b"null", b'"a"', b"1", b"\x00{}", b"\xff"])
def test_only_objects_and_arrays_can_begin(stream: bytes) -> None:
    values = JsonValues(100)
    values.feed(b"{} " + stream)
    assert values.next() == b"{}"
    with pytest.raises(MalformedStream, match=rf"code {stream[0]}"):
        values.next()


def test_nesting_is_bounded() -> None:
    assert len(split(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, max_bytes=10_000)) == 1
    with pytest.raises(MalformedStream, match="nested deeper than 500"):
        split(b"[" * (MAX_DEPTH + 1), max_bytes=10_000)


def test_a_value_of_the_largest_size_is_accepted_and_no_larger_one() -> None:
    value = b'{"a":"' + b"x" * 92 + b'"}'
    assert split(value, value, max_bytes=100) == [value, value]
    with pytest.raises(ValueTooLarge, match="larger than 99 bytes"):
        split(value, max_bytes=99)


def test_a_value_that_never_ends_is_refused_before_it_is_all_there() -> None:
    values = JsonValues(100)
    values.feed(b'{"a":"' + b"x" * 60)
    assert values.next() is None
    values.feed(b"x" * 60)
    with pytest.raises(ValueTooLarge):
        values.next()


def test_what_was_taken_is_not_kept() -> None:
    values = JsonValues(1000)
    for _ in range(100):
        values.feed(b'{"a":"' + b"x" * 500 + b'"} ')
        assert values.next() is not None
        assert values.next() is None
    assert len(values._buffer) < 1000


def test_one_call_scans_a_bounded_part() -> None:
    text = b'{"a":"' + b'\\"' * SCANNED_BYTES + b'"}'
    for shift in range(3):  # so that an escape is cut, too
        values = JsonValues(10 * SCANNED_BYTES)
        values.feed(b" " * shift + text + b"{}")
        calls = 1
        while (value := values.next()) is None:
            assert values.has_more
            calls += 1
        assert (value, calls) == (text, 3)
        assert taken(values) == [b"{}"]
        assert not values.has_more
