"""The check itself is checked: it finds lost, doubled and foreign records, and a sink that is only at least once."""

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.peers.kaspar import KasparProcess
from tests.spark.chaos.checking import check, differences
from tests.spark.chaos.program import ProgramSettings, run
from tests.spark.topics import Message, Topics


def test_equal_multisets_differ_in_nothing() -> None:
    assert differences(Counter([b"1", b"2", b"2"]), Counter([b"2", b"1", b"2"])) == []


@pytest.mark.parametrize(
    ("came_out", "word"),
    [([b"1"], "lost"), ([b"1", b"2", b"2", b"2"], "doubled"), ([b"1", b"2", b"2", b"3"], "never went in")],
)
def test_what_differs_is_named(came_out: list[bytes], word: str) -> None:
    (line,) = differences(Counter([b"1", b"2", b"2"]), Counter(came_out))
    assert word in line


@pytest.mark.parametrize(("guarantee", "doubled"), [("at-least-once", 10), ("exactly-once", 0)])
def test_a_batch_that_is_run_again_is_found_doubled_unless_it_is_written_exactly_once(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path, guarantee: str, doubled: int
) -> None:
    """As if the driver had been killed when the sink was done and Spark had not noted it yet."""
    source, targets = topics.create(partitions=2), (topics.create(), topics.create())
    settings = ProgramSettings(
        bootstrap=broker.bootstrap,
        source=source,
        targets=targets,
        checkpoint=str(tmp_path),
        guarantee=guarantee,
        drain=True,
    )
    for batch in range(2):
        topics.produce(source, [Message(f"{batch}.{number}".encode(), partition=number % 2) for number in range(10)])
        run(spark, settings)
    assert check(topics, source, targets) == []
    _forget_the_last_batch(tmp_path / "commits")
    run(spark, settings)
    problems = check(topics, source, targets)
    assert len(problems) == 2 * doubled  # for each of the two readers
    assert all("is doubled: it went in 1 times and came out 2 times" in problem for problem in problems)


def _forget_the_last_batch(commits: Path) -> None:
    last = max(int(file.name) for file in commits.iterdir() if file.name.isdigit())
    (commits / f"{last}").unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)
