"""Kafka's own classes read our records of `__transaction_state` as what we meant, and write the same bytes: also the
second epoch of a prepared transaction, which Kafka 4.3 has in its records and does not use yet.
"""

import json
import random
import subprocess
from pathlib import Path

from kaspar.coordination import StoredRecord
from kaspar.transactions.records import KINDS, TransactionLogKey, TransactionLogValue
from tests.peers.downloads import require_tool
from tests.peers.kafka import LIGHT_JVM, TOOL_TIMEOUT_SECONDS, classpath, kafka_jars
from tests.peers.missing import unless_missing
from tests.unit.groups.record_samples import as_kafka_json, random_message

PROGRAM = Path(__file__).parent / "drivers" / "java" / "TransactionRecords.java"
SAMPLES_OF_EACH = 50


def test_kafkas_classes_agree_with_every_record() -> None:
    unless_missing(kafka_jars)
    records = samples()
    written = [KINDS.encode(record, value_version=version) for record, version in records]
    answers = read_by_kafka([(key, value) for key, value in written if value is not None])
    assert len(answers) == len(records)
    for (record, version), (key, value), answer in zip(records, written, answers, strict=True):
        key_json, value_json, key_hex, value_hex = answer.split("\t")
        assert isinstance(record.value, TransactionLogValue)
        assert json.loads(key_json) == as_kafka_json(record.key, 0)
        assert json.loads(value_json) == as_kafka_json(record.value, version)
        assert (bytes.fromhex(key_hex), bytes.fromhex(value_hex)) == (key, value)
        assert KINDS.decode(bytes.fromhex(key_hex), bytes.fromhex(value_hex)) == record


def samples() -> list[tuple[StoredRecord, int]]:
    made = []
    for version in (0, 1):
        for seed in range(SAMPLES_OF_EACH):
            randomness = random.Random(seed)
            key = random_message(TransactionLogKey, 0, randomness)
            made.append((StoredRecord(key, random_message(TransactionLogValue, version, randomness)), version))
    return made


def read_by_kafka(records: list[tuple[bytes, bytes]]) -> list[str]:
    lines = "".join(f"{key.hex()} {value.hex()}\n" for key, value in records)
    done = subprocess.run(
        [require_tool("java"), "-Xmx256m", *LIGHT_JVM, "-cp", classpath(), str(PROGRAM)],
        input=lines,
        capture_output=True,
        text=True,
        check=False,
        timeout=TOOL_TIMEOUT_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
