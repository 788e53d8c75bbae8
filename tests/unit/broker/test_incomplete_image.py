"""An image that lacks topics destroys nothing on a broker: deletions are said."""

import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import BrokerId, LeaderEpoch
from kaspar.broker.server import Broker
from kaspar.controller.events import DeleteTopics, TopicReference
from kaspar.metadata.image import ClusterImage, DeletedTopic, PartitionImage, TopicImage
from kaspar.metadata.images import ImageUpdate, ImageVersion
from tests.unit.broker.coordination.test_groups import ONE, commit, committed, coordinator
from tests.unit.broker.running import Client, create_topic, run, running, until
from tests.unit.storage.logs import make_batch

OTHER = BrokerId(2)
LATER = ImageVersion(1 << 30, 0)  # a later controller's


async def follow(
    broker: Broker, image: ClusterImage, *changed: str, deleted: tuple[DeletedTopic, ...] = (), number: int = 0
) -> None:
    version = LATER._replace(number=number)
    broker.images.receive(ImageUpdate(version, image, frozenset(changed), deleted))
    assert await broker.images.followed(version, within_s=10)


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


def test_offsets_of_a_topic_that_is_only_missing_are_kept_until_its_deletion_is_said(tmp_path: Path) -> None:
    """Also those of a topic that this broker has no replica of: it is missing from this broker's image then."""

    async def scenario() -> None:
        async with running(tmp_path, **ONE) as broker:
            await create_topic(broker, "here")
            shard = await coordinator(broker)
            led_there = PartitionImage((OTHER,), (OTHER,), OTHER, LeaderEpoch(0), 0)
            elsewhere = TopicImage("elsewhere", uuid.uuid4(), (led_there,))
            before = broker.image.with_topics({"elsewhere": elsewhere})
            await follow(broker, before, "elsewhere", number=1)
            for topic in ("here", "elsewhere"):
                assert await commit(broker, topic, 5) == ErrorCode.NONE
            torn = replace(broker.image, topics={}, topic_names={}, deleted_topics={})
            await follow(broker, torn, "here", "elsewhere", number=2)
            assert "elsewhere" not in broker.image.topics
            assert await commit(broker, "here", 6) == ErrorCode.NONE  # after whatever the image has led to
            assert committed(shard) == {"here": 6, "elsewhere": 5}
            gone = DeletedTopic("elsewhere", elsewhere.topic_id, (OTHER,))
            await follow(broker, broker.image, deleted=(gone,), number=3)
            await until(lambda: committed(shard) == {"here": 6})

    run(scenario())


def test_a_deletion_that_is_said_removes_the_log(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await create_topic(broker, "t")
            await broker.controller.submit(DeleteTopics((TopicReference("t"),)))
            assert "t" not in broker.partitions.by_name
            assert not (tmp_path / "t-0").exists()

    run(scenario())
