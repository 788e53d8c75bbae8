"""A Kafka Streams program, exactly once: a store and its changelog, a repartition topic, a crash in the middle."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.compat.drivers.api import EARLIEST, LATEST, Driver, Record
from tests.compat.platform.reading import read_committed
from tests.compat.scenario import NewTopic, eventually
from tests.peers.brokers import Brokers
from tests.peers.java_program import JavaProgram, compiled, platform_jars
from tests.peers.missing import unless_missing

SOURCE = Path(__file__).with_name("WordCount.java")
LINES = ["the quick brown fox", "jumps over the lazy dog", "the end"]


@pytest.mark.timeout(240)
def test_every_word_is_counted_once_although_the_program_is_killed(
    broker: Brokers, reference: Driver, new_topic: NewTopic, tmp_path: Path
) -> None:
    unless_missing(platform_jars)
    lines, counts = new_topic(partitions=2), new_topic(partitions=2)
    program = word_count(broker, "word-count", tmp_path, lines, counts)
    with program:
        reference.produce(lines, said(LINES * 20))
        wait_for_counts(program, broker, counts, LINES * 20)
        reference.produce(lines, said(LINES * 40))
        eventually(
            lambda: records_in(reference, counts) > len(counted(LINES)) * 25, "it is in the middle of it", seconds=60
        )
        program.kill()
    with program:
        reference.produce(lines, said(LINES * 10))
        wait_for_counts(program, broker, counts, LINES * 70)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_two_instances_that_are_killed_in_turn_count_every_word_once(
    broker: Brokers, reference: Driver, new_topic: NewTopic, tmp_path: Path
) -> None:
    unless_missing(platform_jars)
    lines, counts = new_topic(partitions=4), new_topic(partitions=2)
    instances = [
        word_count(broker, "word-count-of-two", tmp_path / f"instance-{number}", lines, counts) for number in range(2)
    ]
    for instance in instances:
        instance.start()
    try:
        for turn in range(4):
            reference.produce(lines, said(LINES * 100))
            wait_for_more(reference, counts)
            instances[turn % 2].kill()
            instances[turn % 2].start()
        wait_for_counts(instances[0], broker, counts, LINES * 400)
    finally:
        for instance in instances:
            instance.stop()


def word_count(broker: Brokers, application: str, folder: Path, lines: str, counts: str) -> JavaProgram:
    arguments = ("WordCount", broker.bootstrap, application, folder / "state", lines, counts)
    return JavaProgram(folder, *arguments, classes=compiled("word-count", [SOURCE]))


def said(lines: Sequence[str]) -> list[Record]:
    return [Record(line.encode(), partition=number % 2) for number, line in enumerate(lines)]


def counted(lines: Sequence[str]) -> Counter[str]:
    return Counter(word for line in lines for word in line.split())


def records_in(reference: Driver, topic: str) -> int:
    return sum(
        reference.list_offset(topic, LATEST, partition=partition)
        - reference.list_offset(topic, EARLIEST, partition=partition)
        for partition in range(2)
    )


def wait_for_more(reference: Driver, topic: str) -> None:
    before = records_in(reference, topic)
    eventually(lambda: records_in(reference, topic) > before, f"more records in {topic}", seconds=60)


def wait_for_counts(program: JavaProgram, broker: Brokers, topic: str, lines: Sequence[str]) -> None:
    """Each word has been counted 1, 2, 3... up to how often it was said, and no count was written twice."""
    wanted = counted(lines)

    def progress() -> str:
        return f"{wanted}\n{program.log_text()[-3000:]}"

    def reached() -> bool:
        assert program.running, program.log_text()[-5000:]
        return len(read_committed(broker.bootstrap, topic, 2)) >= sum(wanted.values())

    eventually(reached, progress, seconds=90)
    seen: dict[str, list[int]] = {}
    for word, count in read_committed(broker.bootstrap, topic, 2):
        seen.setdefault(word, []).append(int(count))
    assert seen == {word: list(range(1, count + 1)) for word, count in wanted.items()}
