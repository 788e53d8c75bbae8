"""The formats without schemas: nothing changes between the JSON of a request and that of a response."""

import base64
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaspar.rest.errors import RestError
from kaspar.rest.formats import UndecodableRecord
from kaspar.rest.formats.plain import NULL, decode_binary, decode_json, encode_binary, encode_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON)
def test_json_is_read_as_it_was_written(value: Any) -> None:
    data = encode_json(msgspec.Raw(json.dumps(value, indent=1).encode()))
    read = decode_json(data)
    assert json.loads(bytes(read)) == value
    if data is not None:
        assert bytes(read) == data == json.dumps(value, separators=(",", ":")).encode()


@given(st.binary())
def test_binary_is_read_as_it_was_written(data: bytes) -> None:
    written = msgspec.Raw(json.dumps(base64.b64encode(data).decode()).encode())
    assert encode_binary(written) == data
    assert decode_binary(data) == written


def test_null_is_no_key_or_value_at_all() -> None:
    assert encode_binary(NULL) is encode_json(NULL) is None
    assert decode_binary(None) == decode_json(None) == NULL


def test_padding_may_be_left_out() -> None:
    assert encode_binary(msgspec.Raw(b'"eA"')) == b"x"


@pytest.mark.parametrize("written", ['"e A=="', '"eA==\\n"', '"eA==eA=="', '"_-8="', '"e"', '"é"', '"eA="', "1", "{}"])
def test_base64_is_strict(written: str) -> None:
    with pytest.raises(RestError) as refused:
        encode_binary(msgspec.Raw(written.encode()))
    assert (refused.value.kind.status, refused.value.kind.code) == (400, 400)


def test_a_long_text_is_not_repeated_in_the_error() -> None:
    with pytest.raises(RestError) as refused:
        encode_binary(msgspec.Raw(b'"' + b"*" * 10_000 + b'"'))
    assert len(refused.value.message) < 200


@pytest.mark.parametrize("data", [b"", b"{", b"NaN", b"1 2", b'"\xff"', b"[" * 100_000, b"\x00\x00\x00\x00\x01abc"])
def test_bytes_that_are_not_json_are_reported(data: bytes) -> None:
    with pytest.raises(UndecodableRecord):
        decode_json(data)
