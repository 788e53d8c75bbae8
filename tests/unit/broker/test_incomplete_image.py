"""An image that lacks topics destroys nothing on a broker: deletions are said."""

import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.broker.server import Broker
from kaspar.controller.events import DeleteTopics, TopicReference
from kaspar.metadata.image import ClusterImage, DeletedTopic
from kaspar.metadata.images import ImageUpdate, ImageVersion
from tests.unit.broker.running import Client, create_topic, run, running
from tests.unit.storage.logs import make_batch

LATER = ImageVersion(1 << 30, 0)  # a later controller's


async def follow(broker: Broker, image: ClusterImage, *changed: str, deleted: tuple[DeletedTopic, ...] = ()) -> None:
    broker.images.receive(ImageUpdate(LATER, image, frozenset(changed), deleted))
    assert await broker.images.followed(LATER, within_s=10)


def test_a_topic_that_is_only_missing_keeps_its_log_and_is_served(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            torn = replace(broker.image, topics={}, topic_names={}, deleted_topics={})
            await follow(broker, torn, "t")
            assert broker.partitions.get(partition.topic_partition) is partition
            assert "t" in broker.image.topics
            client = Client(broker)
            client.produce(("t", 0, make_batch()))
            (produced,) = await client.produced()
            assert produced.error_code == ErrorCode.NONE
        assert (tmp_path / "t-0").is_dir()
        async with running(tmp_path) as broker:
            assert broker.partitions.by_name["t"].partitions[0].log.log_end_offset == 1

    run(scenario())
    assert "an image lacks topics that were not deleted" in caplog.text


def test_a_topic_that_is_replaced_without_its_deletion_keeps_its_files(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its successor has no log until an operator has moved the old one away."""

    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            client = Client(broker)
            client.produce(("t", 0, make_batch()))
            await client.produced()
            successor = replace(broker.image.topics["t"], topic_id=uuid.uuid4())
            await follow(broker, broker.image.with_topics({"t": successor}), "t")
            assert broker.partitions.by_name["t"].partitions == {}
            assert broker.partitions.by_name["t"].offline == {0}
            assert not partition.log.deleted
        assert any((tmp_path / "t-0").glob("*.log"))

    run(scenario())
    assert "a partition has no log" in caplog.text


def test_a_deletion_that_is_said_removes_the_log(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await create_topic(broker, "t")
            await broker.controller.submit(DeleteTopics((TopicReference("t"),)))
            assert "t" not in broker.partitions.by_name
            assert not (tmp_path / "t-0").exists()

    run(scenario())
