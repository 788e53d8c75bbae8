"""A changed program runs beside its first version, from the start of the same input, and then replaces it."""

import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from kaspar.client import Client
from kaspar.client.offsets import fetch_committed
from kaspar.streams import StreamsBuilder, Topology
from kaspar.tools.consumer_groups.command import main as consumer_groups
from kaspar.tools.streams_reset.command import main as reset
from tests.peers.kaspar import KasparProcess
from tests.spark.programs.apps import counts, running
from tests.spark.topics import Message, Topics, wait_until

FIRST, SECOND = "words", "words-2"
STORES = {FIRST: "counts", SECOND: "long-counts"}


def word_count(lines: str, results: str, store: str, shortest: int) -> Topology:
    builder = StreamsBuilder()
    words = builder.stream(lines).flat_map_values(lambda line: [word for word in line.split() if len(word) >= shortest])
    words.group_by(lambda key, word: word).count(store).to_stream().to(results)
    return builder.build()


def processed(broker: KasparProcess, group: str, topic: str) -> int:
    """How many records its group has committed."""
    with Client(broker.bootstrap) as client:
        return sum(each.offset for where, each in fetch_committed(client, group).items() if where.topic == topic)


def changelogs(broker: KasparProcess) -> set[str]:
    names = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=30).topics
    return {name for name in names if name.startswith(f"{FIRST}-") and name.endswith("-changelog")}


@pytest.mark.timeout(200)
def test_second_version_runs_beside_the_first_and_replaces_it(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    lines, results, new_results = topics.create(partitions=2), topics.create(), topics.create()
    topics.produce(lines, [Message(b"be or not", partition=0), Message(b"to be", partition=1)])
    first = word_count(lines, results, STORES[FIRST], 1)
    second = word_count(lines, new_results, STORES[SECOND], 3)
    settings = {"processing_guarantee": "exactly_once_v2"}
    with ExitStack() as first_version:
        old = first_version.enter_context(running(first, broker.bootstrap, tmp_path, FIRST, **settings))
        old.wait_for(lambda: counts(topics, results) == {"be": 2, "or": 1, "not": 1, "to": 1}, "the words are counted")
        with running(second, broker.bootstrap, tmp_path, SECOND, **settings) as new:
            new.wait_for(lambda: counts(topics, new_results) == {"not": 1}, "it has read the input from its start")
            topics.produce(lines, [b"not now"])
            both = {"be": 2, "or": 1, "not": 2, "to": 1, "now": 1}
            old.wait_for(lambda: counts(topics, results) == both, "the first version goes on")
            new.wait_for(lambda: counts(topics, new_results) == {"not": 2, "now": 1}, "and so does the second")
            new.wait_for(
                lambda: all(processed(broker, name, lines) == 3 for name in (FIRST, SECOND)), "both groups have offsets"
            )
            assert changelogs(broker) == {f"{name}-{store}-changelog" for name, store in STORES.items()}
            assert len(topics.read(results)) == 7, "the first version has written each update once"
            assert {each.name for each in tmp_path.iterdir()} == {FIRST, SECOND}

            first_version.close()
            server = ["--bootstrap-server", broker.bootstrap]
            assert reset([*server, "--application-id", FIRST]) == 0
            assert consumer_groups([*server, "--delete", "--group", FIRST]) == 0
            shutil.rmtree(tmp_path / FIRST)
            wait_until(lambda: changelogs(broker) == {f"{SECOND}-{STORES[SECOND]}-changelog"}, "its topic is deleted")
            assert FIRST not in topics.groups()
            topics.produce(lines, [b"now or never"])
            wanted = {"not": 2, "now": 2, "never": 1}
            new.wait_for(lambda: counts(topics, new_results) == wanted, "the second version goes on without it")
    shutil.rmtree(tmp_path / SECOND)
    topics.produce(lines, [b"now"])
    with running(second, broker.bootstrap, tmp_path, SECOND, **settings) as new:
        new.wait_for(lambda: counts(topics, new_results) == {**wanted, "now": 3}, "it has its state, by its changelog")
    assert counts(topics, results) == both
