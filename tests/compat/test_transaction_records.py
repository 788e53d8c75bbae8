"""Kafka's own classes read our records of `__transaction_state` as what we meant, and write the same bytes: also the
second epoch of a prepared transaction, which Kafka 4.3 has in its records and does not use yet.
"""

import random

from kaspar.coordination import StoredRecord
from kaspar.transactions.records import KINDS, TransactionLogKey, TransactionLogValue
from tests.compat.kafka_records import check_with_kafka
from tests.unit.groups.record_samples import random_message

SERDE = "org.apache.kafka.coordinator.transaction.TransactionCoordinatorRecordSerde"
SAMPLES_OF_EACH = 50


def test_kafkas_classes_agree_with_every_record() -> None:
    check_with_kafka(SERDE, KINDS, KINDS.decode, samples())


def samples() -> list[tuple[StoredRecord, int]]:
    made = []
    for version in (0, 1):
        for seed in range(SAMPLES_OF_EACH):
            randomness = random.Random(seed)
            key = random_message(TransactionLogKey, 0, randomness)
            made.append((StoredRecord(key, random_message(TransactionLogValue, version, randomness)), version))
    return made
