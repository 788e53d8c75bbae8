"""A program that was reset, or whose internal topics were deleted, starts on its old folder."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.client.offsets import CommittedOffset, commit_offsets, fetch_committed
from kaspar.streams import StreamsBuilder, Topology, serdes
from kaspar.streams.running.config import StreamsConfig
from kaspar.streams.running.pipeline import StreamsPipeline
from kaspar.streams.running.topics import prepare_topics
from kaspar.tools.streams_reset.command import main as reset
from tests.peers.kaspar import KasparProcess
from tests.spark.programs.apps import counts, last_values, running
from tests.spark.topics import Message, Topics


def two_counts(lines: str, output: str) -> Topology:
    """How often each word has come, and how many updates of counts there were for words of each first letter: behind a
    re-partition topic."""
    builder = StreamsBuilder()
    words = builder.stream(lines).group_by_key().count("words")
    letters = words.to_stream().group_by(lambda word, count: word[:1], value_serde=serdes.long())
    letters.count("letters").to_stream().to(output)
    return builder.build()


def words(*keys: str) -> list[Message]:
    return [Message(b"", key=key.encode()) for key in keys]


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_reset_program_processes_its_input_again_with_empty_state(
    guarantee: str, spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    lines, output = topics.create(partitions=2), topics.create()
    name = f"reset-{guarantee.replace('_', '-')}"
    topics.produce(lines, words("a", "a", "ab", "b"))
    topology = two_counts(lines, output)
    with running(topology, broker.bootstrap, tmp_path, name, processing_guarantee=guarantee) as app:
        app.wait_for(lambda: counts(topics, output) == {"a": 3, "b": 1}, "all is counted")
        app.wait_for(lambda: len(app.pipeline.queries) == 2, "both sub-topologies run")
        metadata = app.pipeline.folder.metadata
    topics.produce(lines, words("b"))  # while it is stopped

    assert reset(["--bootstrap-server", broker.bootstrap, "--application-id", name, "--input-topics", lines]) == 0
    topics.delete(output)
    topics.create(name=output)
    with running(two_counts(lines, output), broker.bootstrap, tmp_path, name, processing_guarantee=guarantee) as app:
        assert app.pipeline.folder.metadata != metadata
        app.wait_for(lambda: counts(topics, output) == {"a": 3, "b": 2}, "all is counted again, from nothing")
        assert app.store("words").get("a").value == 2
        topics.produce(lines, words("a"))
        app.wait_for(lambda: counts(topics, output) == {"a": 4, "b": 2}, "it goes on")
        metadata = app.pipeline.folder.metadata
    with Client(broker.bootstrap) as client:
        committed = fetch_committed(client, name)
    assert {committed[TopicPartition(lines, each)].metadata for each in (0, 1)} == {metadata}
    topics.produce(lines, words("a"))
    with running(two_counts(lines, output), broker.bootstrap, tmp_path, name, processing_guarantee=guarantee) as app:
        assert app.pipeline.folder.metadata == metadata, "its own offsets are no reset"
        app.wait_for(lambda: counts(topics, output) == {"a": 5, "b": 2}, "it goes on")


def test_offsets_of_a_reset_are_taken_over_before_anything_is_processed(
    broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    """Otherwise a start after a crash would take them for another reset, and process the same input twice."""
    lines = topics.create(partitions=2)
    settings = {"application.id": "taken-over", "bootstrap.servers": broker.bootstrap, "state.dir": tmp_path}
    config = StreamsConfig.of({**settings, "replication.factor": 1})
    topology = two_counts(lines, f"{lines}-output")
    wanted = {TopicPartition(lines, 0): 0, TopicPartition(lines, 1): 0}
    internal = {TopicPartition("taken-over-letters-repartition", number): 0 for number in range(2)}
    with Client(broker.bootstrap) as client:
        assert not commit_offsets(client, "taken-over", wanted)
        first, second = StreamsPipeline(topology, config), StreamsPipeline(topology, config)
        for each in (first, second):
            assert each.open_folder(prepare_topics(topology, config)) == wanted | internal
            found = fetch_committed(client, "taken-over")
            assert found == {where: CommittedOffset(0, first.folder.metadata) for where in wanted | internal}
    assert second.folder.metadata == first.folder.metadata


def test_deleted_changelog_is_the_end_of_the_state_and_not_of_the_offsets(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    lines, output = topics.create(), topics.create()

    def topology() -> Topology:
        builder = StreamsBuilder()
        builder.stream(lines).group_by_key().count("words").to_stream().to(output)
        return builder.build()

    topics.produce(lines, words("a", "a", "b"))
    with running(topology(), broker.bootstrap, tmp_path, "without-changelog") as app:
        app.wait_for(lambda: counts(topics, output) == {"a": 2, "b": 1}, "all is counted")
    topics.delete("without-changelog-words-changelog")
    topics.produce(lines, words("b"))
    with running(topology(), broker.bootstrap, tmp_path, "without-changelog") as app:
        app.wait_for(lambda: len(topics.read(output)) > 2, "the new record is counted")
        assert counts(topics, output) == {"a": 2, "b": 1}, "from nothing; what was processed is not read again"
        assert app.store("words").get("a") is None
        changelog = "without-changelog-words-changelog"
        app.wait_for(lambda: list(last_values(topics, changelog)) == [b"b"], "the changelog has the new count alone")
