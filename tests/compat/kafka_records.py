"""Records of internal topics, read and written again by Kafka's own classes."""

import json
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

from kaspar.coordination import StoredRecord
from kaspar.coordination.record_kinds import RecordKinds
from tests.peers.downloads import require_tool
from tests.peers.kafka import LIGHT_JVM, TOOL_TIMEOUT_SECONDS, classpath, kafka_jars
from tests.peers.missing import unless_missing
from tests.unit.groups.record_samples import as_kafka_json

PROGRAM = Path(__file__).parent / "drivers" / "java" / "CoordinatorRecords.java"
Decode = Callable[[bytes, bytes | None], StoredRecord | None]


def check_with_kafka(
    serde: str, kinds: RecordKinds, decode: Decode, samples: Iterable[tuple[StoredRecord, int]]
) -> None:
    """Each record, its value at that version, means the same to Kafka's classes, and has the same bytes there."""
    unless_missing(kafka_jars)
    records = list(samples)
    written = [kinds.encode(record, value_version=version) for record, version in records]
    responses = _read_by_kafka(serde, [(key, value) for key, value in written if value is not None])
    assert len(responses) == len(records)
    for (record, version), (key, value), response in zip(records, written, responses, strict=True):
        key_class, key_json, value_json, key_hex, value_hex = response.split("\t")
        assert record.value is not None
        assert key_class == type(record.key).__name__
        assert json.loads(key_json) == as_kafka_json(record.key, 0)
        assert json.loads(value_json) == as_kafka_json(record.value, version)
        assert (bytes.fromhex(key_hex), bytes.fromhex(value_hex)) == (key, value)
        assert decode(bytes.fromhex(key_hex), bytes.fromhex(value_hex)) == record


def _read_by_kafka(serde: str, records: list[tuple[bytes, bytes]]) -> list[str]:
    lines = "".join(f"{key.hex()} {value.hex()}\n" for key, value in records)
    done = subprocess.run(
        [require_tool("java"), "-Xmx256m", *LIGHT_JVM, "-cp", classpath(), str(PROGRAM), serde],
        input=lines,
        capture_output=True,
        text=True,
        check=False,
        timeout=TOOL_TIMEOUT_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
