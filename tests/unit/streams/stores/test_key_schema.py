"""The keys of window and session stores, byte for byte as Java writes them."""

from kaspar.streams.stores import key_schema


def test_a_window_key_is_key_start_and_sequence_number() -> None:
    key = key_schema.window_key(b"k", 0x0102030405060708, 0x11223344)
    assert key == b"k" + bytes.fromhex("0102030405060708 11223344")
    assert key_schema.window_start(b"12345678" + key) == 0x0102030405060708


def test_a_session_key_is_key_end_and_start() -> None:
    key = key_schema.session_key(b"key", 1, 2)
    assert key == b"key" + bytes.fromhex("0000000000000002 0000000000000001")
    assert key_schema.session_end(b"12345678" + key) == 2


def test_the_empty_key_is_a_key() -> None:
    assert key_schema.window_key(b"", 1) == bytes.fromhex("0000000000000001 00000000")
    assert key_schema.session_key(b"", 1, 1) == bytes.fromhex("0000000000000001 0000000000000001")
