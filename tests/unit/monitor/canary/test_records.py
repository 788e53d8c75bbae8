"""The records of the canary, among those of others."""

import pytest

from kaspar.monitor.canary.records import CanaryRecord, parse


def test_record_is_read_as_it_was_written() -> None:
    record = CanaryRecord("a1b2", 17)
    assert parse(record.to_bytes()) == record


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"hello",
        b"\xff\xfe",
        b"[]",
        b"17",
        b'{"canary": 1, "sequence": 2}',
        b'{"canary": "x"}',
        b"[" * 100_000,
    ],
)
def test_what_others_write_is_ignored(value: bytes | None) -> None:
    assert parse(value) is None
