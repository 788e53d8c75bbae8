"""What the driver fixes for a batch, so that a repeated one sees the same."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest

from kaspar.spark.kafka_settings import ConnectionSettings
from kaspar.streams import StreamsBuilder
from kaspar.streams.running import query
from kaspar.streams.running.config import StreamsConfig
from kaspar.streams.running.folder import BatchFacts, RunFolder
from kaspar.streams.running.query import SubTopologyQuery
from kaspar.streams.running.topics import TopicPlan
from kaspar.streams.topology.graph import GlobalTable


def started(folder: Path, *tables: str) -> SubTopologyQuery:
    builder = StreamsBuilder()
    stream = builder.stream("lines")
    for table in tables:
        stream = stream.join(
            builder.global_table(table), lambda value, other: value, key_selector=lambda key, value: key
        )
    stream.to("out")
    (plan,) = builder.build().sub_topologies
    config = StreamsConfig.of({"application.id": "app", "bootstrap.servers": "nowhere:1"})
    topics = TopicPlan({0: 1}, {"lines": 1, **dict.fromkeys(tables, 1)})
    return SubTopologyQuery(plan, config, topics, RunFolder(folder), {})


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[int]]:
    """The present ends of topics."""
    present: dict[str, list[int]] = {}

    def fixed_ends(client: object, tables: Sequence[GlobalTable], counts: Mapping[str, int]) -> dict[str, list[int]]:
        return {topic: present[topic] for table in tables for topic in table.source.topics}

    monkeypatch.setattr(query, "fixed_ends", fixed_ends)
    monkeypatch.setattr(ConnectionSettings, "client", lambda self: nullcontext())
    return present


def test_a_repeated_batch_sees_the_same_tables(tmp_path: Path, ends: dict[str, list[int]]) -> None:
    ends["rates"] = [5]
    first = started(tmp_path, "rates")._facts(7)
    ends["rates"] = [6]
    assert started(tmp_path, "rates")._facts(7) == first
    assert started(tmp_path, "rates")._facts(8).global_ends == {"rates": [6]}


def test_a_repeated_batch_finds_a_table_that_the_program_has_got_since(
    tmp_path: Path, ends: dict[str, list[int]]
) -> None:
    ends |= {"rates": [5], "names": [9]}
    first = started(tmp_path, "rates")._facts(7)
    ends |= {"rates": [6]}
    repeated = started(tmp_path, "rates", "names")._facts(7)
    assert repeated == BatchFacts(7, first.wall_clock_ms, {"rates": [5], "names": [9]})
    ends |= {"names": [10]}
    assert started(tmp_path, "rates", "names")._facts(7) == repeated
