"""The word count of the documentation, on Spark and brokers."""

import shutil
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kaspar.base.errors import KasparError
from kaspar.streams import StreamsBuilder, Topology
from tests.peers.kaspar import KasparProcess
from tests.spark.programs.apps import counts, running
from tests.spark.topics import Message, Topics

GUARANTEES = ["at_least_once", "exactly_once_v2"]


def word_count(lines: str, results: str) -> Topology:
    builder = StreamsBuilder()
    words = builder.stream(lines).flat_map_values(lambda line: line.lower().split())
    words.group_by(lambda key, word: word).count("counts").to_stream().to(results)
    return builder.build()


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_words_are_counted_and_a_later_run_goes_on(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path, guarantee: str
) -> None:
    lines = topics.create(partitions=2)
    name = f"count-{lines}"
    topology = word_count(lines, f"{name}-results")
    topics.produce(lines, [Message(b"one two two", partition=0), Message(b"Three two three", partition=1)])
    with running(topology, broker.bootstrap, tmp_path, name, processing_guarantee=guarantee) as app:
        wanted = {"one": 1, "two": 3, "three": 2}
        app.wait_for(lambda: counts(topics, f"{name}-results") == wanted, "the words are counted")
    topics.produce(lines, [b"two one"])
    with running(topology, broker.bootstrap, tmp_path, name, processing_guarantee=guarantee) as app:
        wanted = {"one": 2, "two": 4, "three": 2}
        app.wait_for(lambda: counts(topics, f"{name}-results") == wanted, "the words are counted")
        app.wait_for(lambda: app.store("counts").get("two").value == 4, "the batch is published")
    # Every update was written, and none twice.
    written = [(record.key, int.from_bytes(record.value or b"")) for record in topics.read(f"{name}-results")]
    assert Counter(written) == Counter(
        [(word.encode(), number) for word, count in wanted.items() for number in range(1, count + 1)]
    )
    assert topics.partition_count(f"{name}-counts-changelog") == 2


def test_state_that_was_deleted_is_restored_from_the_changelog(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    lines = topics.create()
    name = f"count-{lines}"
    topology = word_count(lines, f"{name}-results")
    topics.produce(lines, [b"one two two"])
    with running(topology, broker.bootstrap, tmp_path, name, processing_guarantee="exactly_once_v2") as app:
        app.wait_for(lambda: counts(topics, f"{name}-results") == {"one": 1, "two": 2}, "the words are counted")
    shutil.rmtree(tmp_path / name / "state")
    with running(topology, broker.bootstrap, tmp_path, name, processing_guarantee="exactly_once_v2") as app:
        assert app.store("counts").get("two").value == 2, "it is restored for those who read it, too"
        topics.produce(lines, [b"two"])
        app.wait_for(lambda: counts(topics, f"{name}-results") == {"one": 1, "two": 3}, "the words are counted")
    with running(topology, broker.bootstrap, tmp_path, name, processing_guarantee="exactly_once_v2") as app:
        assert app.store("counts").get("two").value == 3, "the last batch is seen before there is another"


def test_a_missing_source_topic_is_refused_by_name(spark: SparkSession, broker: KasparProcess, tmp_path: Path) -> None:
    with (
        pytest.raises(KasparError, match="These source topics do not exist: not-there"),
        running(word_count("not-there", "results"), broker.bootstrap, tmp_path, "refused"),
    ):
        pass
