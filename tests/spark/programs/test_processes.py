"""A streams program as a process of its own: stopped by SIGTERM, and killed in the middle of its batches."""

import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from kaspar.client import Client
from kaspar.client.offsets import commit_offsets, fetch_committed
from tests.peers.kaspar import KasparProcess
from tests.spark.chaos.processes import Program
from tests.spark.programs.apps import TIMEOUT_SECONDS, counts
from tests.spark.programs.word_count_program import JOINS
from tests.spark.topics import Message, Topics, wait_until

WORDS = [f"word-{number}" for number in range(50)]
MODULE = "tests.spark.programs.word_count_program"


def program(broker: KasparProcess, folder: Path, lines: str, *more: str) -> Program:
    arguments = [broker.bootstrap, str(folder), lines, f"{lines}-counts", f"app-{lines}", *more]
    return Program([sys.executable, "-m", MODULE, *arguments], folder / "program.log")


def produce(topics: Topics, lines: str, rng: random.Random, count: int) -> Counter[str]:
    """Random lines, and how often each word is among them."""
    texts = [rng.choices(WORDS, k=10) for _ in range(count)]
    topics.produce(lines, [Message(" ".join(text).encode(), partition=rng.randrange(2)) for text in texts])
    return Counter(word for text in texts for word in text)


class Joined:
    """What the program joins, if it does: records with unique keys, each with a row of the table that is older."""

    def __init__(self, topics: Topics, prefix: str) -> None:
        self._topics = topics
        self._prefix = prefix
        self._now_ms = time.time_ns() // 1_000_000
        self._count = 0
        self._seen = 0
        for name in ("left", "right", "names", "named", "pairs"):
            topics.create(name=f"{prefix}-{name}", partitions=2)

    def produce(self, count: int) -> None:
        numbers = range(self._count, self._count + count)
        self._count += count
        for topic, earlier_ms in (("names", 60_000), ("left", 0), ("right", 0)):
            self._topics.produce(
                f"{self._prefix}-{topic}",
                [
                    Message(
                        f"{topic}{number}".encode(),
                        key=f"{number}".encode(),
                        partition=number % 2,
                        timestamp_ms=self._now_ms + number - earlier_ms,
                    )
                    for number in numbers
                ],
            )

    def wait_for_more(self) -> None:
        wait_until(lambda: len(self._read("pairs")) > self._seen, "it joins", seconds=TIMEOUT_SECONDS)
        self._seen = len(self._read("pairs"))

    def wait_for_all(self) -> None:
        for topic in ("named", "pairs"):
            wait_until(lambda: len(self._read(topic)) >= self._count, f"all are {topic}", seconds=TIMEOUT_SECONDS)  # noqa: B023

    def check(self) -> None:
        """Each result is written once."""
        for topic, other in (("named", "names"), ("pairs", "right")):
            wanted = {f"{number}": f"left{number}+{other}{number}" for number in range(self._count)}
            assert sorted(self._read(topic)) == sorted(wanted.items()), topic

    def _read(self, topic: str) -> list[tuple[str, str]]:
        found = self._topics.read(f"{self._prefix}-{topic}")
        return [((each.key or b"").decode(), (each.value or b"").decode()) for each in found]


def test_the_program_goes_on_until_sigterm_and_then_ends_its_batch(
    broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    lines = topics.create(partitions=2)
    topics.create(name=f"{lines}-counts")
    topics.produce(lines, [b"to be or not to be"])
    with program(broker, tmp_path, lines) as running:
        wanted = {"to": 2, "be": 2, "or": 1, "not": 1}
        wait_until(lambda: _counted(topics, lines, wanted), "the words are counted", seconds=TIMEOUT_SECONDS)
        running.terminate()
        assert running.wait(TIMEOUT_SECONDS) == 0, running.end_of_log()


@pytest.mark.timeout(300)  # three starts of Spark
@pytest.mark.parametrize("rounds", [1, pytest.param(6, marks=(pytest.mark.long, pytest.mark.timeout(1800)))])
def test_results_are_as_if_nothing_had_happened_after_kills_in_mid_batch(
    broker: KasparProcess, topics: Topics, tmp_path: Path, rounds: int
) -> None:
    """Killed, it goes on with its folder; killed again, without it, behind the last batch that it has published. It
    counts, joins a stream with a table, and joins two streams."""
    rng = random.Random(1)
    lines = topics.create(partitions=2)
    wanted = produce(topics, lines, rng, 1000)
    joined = Joined(topics, lines)
    joined.produce(400)
    topics.create(name=f"{lines}-counts", partitions=2)
    for loses_folder in (False, True) * rounds:
        before = len(topics.read(f"{lines}-counts"))
        with program(broker, tmp_path, lines, JOINS, "max.offsets.per.trigger=100") as running:
            _wait_for_more(topics, lines, before)
            joined.wait_for_more()
            time.sleep(rng.random() / 2)  # into the middle of a batch, most likely
            running.kill()
        wanted += produce(topics, lines, rng, 400)
        joined.produce(100)
        if loses_folder:
            shutil.rmtree(tmp_path / f"app-{lines}")
            _set_back(broker, f"app-{lines}", lines)
    with program(broker, tmp_path, lines, JOINS) as running:
        joined.wait_for_all()
        _check_end(running, topics, lines, wanted)
    joined.check()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kills", [1, pytest.param(6, marks=(pytest.mark.long, pytest.mark.timeout(900)))])
def test_results_are_as_if_nothing_had_happened_when_workers_are_killed(
    broker: KasparProcess, topics: Topics, tmp_path: Path, kills: int
) -> None:
    """Spark starts others, and repeats their tasks; where that does not help, the query is started again."""
    rng = random.Random(2)
    lines = topics.create(partitions=2)
    topics.create(name=f"{lines}-counts", partitions=2)
    wanted = produce(topics, lines, rng, 400)
    with program(broker, tmp_path, lines, "max.offsets.per.trigger=100") as running:
        for _ in range(kills):
            before = len(topics.read(f"{lines}-counts"))
            wanted += produce(topics, lines, rng, 100)
            _wait_for_more(topics, lines, before)
            time.sleep(rng.random() / 4)
            workers = [each for each in running.processes() if each.is_python_worker]
            assert workers
            running.kill(workers)
        _check_end(running, topics, lines, wanted)


def _check_end(running: Program, topics: Topics, lines: str, wanted: Mapping[str, int]) -> None:
    wait_until(lambda: _counted(topics, lines, wanted), "all words are counted", seconds=TIMEOUT_SECONDS)
    running.terminate()
    assert running.wait(TIMEOUT_SECONDS) == 0, running.end_of_log()
    written = Counter((record.key, record.value) for record in topics.read(f"{lines}-counts"))
    expected = {(word.encode(), number.to_bytes(8)) for word, count in wanted.items() for number in range(1, count + 1)}
    assert written.keys() == expected
    assert set(written.values()) == {1}, "every update is written once"


def _counted(topics: Topics, lines: str, wanted: Mapping[str, int]) -> bool:
    return counts(topics, f"{lines}-counts") == wanted


def _set_back(broker: KasparProcess, group: str, prefix: str) -> None:
    """As if the program had been killed between the end of its last batch and the commit of the group's offsets."""
    with Client(broker.bootstrap) as client:
        committed = {
            where: each for where, each in fetch_committed(client, group).items() if where.topic.startswith(prefix)
        }
        earlier = {where: max(0, each.offset - 50) for where, each in committed.items()}
        assert any(earlier[where] < each.offset for where, each in committed.items())
        (metadata,) = {each.metadata for each in committed.values()}
        assert not commit_offsets(client, group, earlier, metadata=metadata)


def _wait_for_more(topics: Topics, lines: str, before: int) -> None:
    wait_until(lambda: len(topics.read(f"{lines}-counts")) > before, "it writes results", seconds=TIMEOUT_SECONDS)
