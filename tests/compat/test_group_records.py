"""Kafka's own classes read our records of `__consumer_offsets` as what we meant, and write the same bytes."""

import random

from kaspar.coordination import StoredRecord
from kaspar.groups.records import KINDS, decode
from kaspar.protocol.schema import VersionRange
from tests.compat.kafka_records import check_with_kafka
from tests.unit.groups.record_samples import random_message

SERDE = "org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde"
SAMPLES_OF_EACH = 25


def test_kafkas_classes_agree_with_every_record() -> None:
    check_with_kafka(SERDE, KINDS, decode, samples())


def samples() -> list[tuple[StoredRecord, int]]:
    """Records of every kind, at every version that their values have."""
    made = []
    for kind in KINDS:
        first, last = VersionRange.parse(kind.value.SCHEMA.versions)
        for version in range(first, last + 1):
            for seed in range(SAMPLES_OF_EACH):
                randomness = random.Random(seed)
                key = random_message(kind.key, 0, randomness)
                made.append((StoredRecord(key, random_message(kind.value, version, randomness)), version))
    return made
