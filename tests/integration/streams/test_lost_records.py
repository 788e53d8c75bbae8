"""A program without its folder whose offsets are gone: retention has removed records that it has not read."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.client.offsets import commit_offsets
from kaspar.spark.reading.data_loss import DataLost
from kaspar.streams import StreamsBuilder
from kaspar.streams.running.config import StreamsConfig
from kaspar.streams.running.pipeline import StreamsPipeline
from kaspar.streams.running.topics import prepare_topics
from kaspar.testing import Broker
from tests.spark.topics import Topics

WHERE = TopicPartition("lines", 0)


@pytest.fixture
def topics() -> Iterator[Topics]:
    with Broker() as broker:
        topics = Topics(broker.bootstrap_servers)
        topics.create(name="lines")
        topics.produce("lines", [b"one", b"two", b"three", b"four"])
        with Client(broker.bootstrap_servers) as client:
            commit_offsets(client, "app", {WHERE: 1}, metadata="")
        topics.delete_records("lines", 3)
        yield topics


def begins(topics: Topics, folder: Path, **settings: str) -> dict[TopicPartition, int]:
    """Where a program begins that has no checkpoint."""
    builder = StreamsBuilder()
    builder.stream("lines").to("out")
    topology = builder.build()
    given = {name.replace("_", "."): value for name, value in settings.items()}
    config = StreamsConfig.of(
        {"application.id": "app", "bootstrap.servers": topics.bootstrap, "state.dir": folder, **given}
    )
    return StreamsPipeline(topology, config).open_folder(prepare_topics(topology, config))


def test_a_program_stops_or_goes_on_behind_them(topics: Topics, tmp_path: Path) -> None:
    with pytest.raises(DataLost, match="records of lines-0 from offset 1 to 2 are gone"):
        begins(topics, tmp_path)
    assert begins(topics, tmp_path, kaspar_fail_on_data_loss="false") == {WHERE: 3}


def test_offsets_of_a_sub_topology_with_a_checkpoint_may_be_older_than_it(topics: Topics, tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    with Client(topics.bootstrap) as client:
        commit_offsets(client, "app", {WHERE: 3}, metadata="")
    begins(topics, tmp_path)
    (tmp_path / "app" / "checkpoints" / "0").mkdir(parents=True)
    topics.delete_records("lines", 4)
    begins(topics, tmp_path)
