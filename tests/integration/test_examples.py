"""The programs in examples/ do what the pages that show them say."""

import subprocess
import sys
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, TopicPartition

from kaspar.testing import Broker

EXAMPLES = Path(__file__).parents[2] / "examples"
SECONDS = 100.0
CLEANED_SOON = {"log.cleaner.backoff.ms": "50"}
SMALL = ("--people", "30", "--changes", "3000", "--rate", "3000")


def _run(example: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [sys.executable, EXAMPLES / example, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)


def _records(bootstrap: str, topic: str) -> list[tuple[bytes, bytes | None]]:
    settings = {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.partition.eof": True}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[tuple[bytes, bytes | None]] = []
    while True:
        message = consumer.poll(10)
        assert message is not None, "the end of the topic did not come"
        problem = message.error()
        if problem is not None:
            assert problem.code() == KafkaError._PARTITION_EOF
            consumer.close()
            return found
        key, value = message.key(), message.value()
        assert isinstance(key, bytes)
        assert value is None or isinstance(value, bytes)
        found.append((key, value))


def test_the_topic_of_salaries_shrinks_to_one_record_a_person() -> None:
    with Broker(process=True, overrides=CLEANED_SOON) as broker:
        done = _run("salaries.py", "--bootstrap-server", broker.bootstrap_servers, *SMALL)
        assert done.returncode == 0, done.stdout + done.stderr
        records = _records(broker.bootstrap_servers, "salaries")
    people = [key for key, _ in records]
    assert len(people) == len(set(people)), "one record a person"
    assert all(value is not None for _, value in records), "nothing is left of deleted keys"
    hired = 30 + len([person for person in people if person > b"employee-0030"])
    assert len(people) == hired - 30 // 5
    assert f"One record a person: {len(people)} records, {len(people)} people" in done.stdout


def test_an_example_brings_its_own_broker() -> None:
    done = _run("salaries.py", *SMALL)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "One record a person" in done.stdout
