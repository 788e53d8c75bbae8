"""How topics and brokers are written in the store, and that what earlier releases wrote is still read."""

import uuid

import pytest

from kaspar.base.ids import BrokerId, LeaderEpoch, uuid_to_text
from kaspar.metadata.image import BrokerRegistration, ClusterImage, PartitionImage, TopicImage
from kaspar.metadata.layout import broker_nodes, json_values, topic_nodes
from kaspar.metadata.store import Create

ONE, TWO, THREE = BrokerId(1), BrokerId(2), BrokerId(3)
TOPIC_ID, HERE = uuid.UUID(int=5), uuid.UUID(int=7)
PLAIN = PartitionImage((ONE, TWO), (ONE,), ONE, LeaderEpoch(3), 4)


def stored(topic: TopicImage) -> list[bytes]:
    operations = topic_nodes.topic_change(None, topic)
    return [operation.value for operation in operations if isinstance(operation, Create)]


@pytest.mark.parametrize(
    "partition",
    [
        PLAIN,
        PLAIN._replace(elr=(TWO,)),
        PLAIN._replace(last_known_elr=(TWO,)),
        PLAIN._replace(directories=(HERE, uuid.UUID(int=0))),
        PLAIN._replace(adding_replicas=(TWO,)),
        PLAIN._replace(removing_replicas=(ONE,)),
        PLAIN._replace(elr=(TWO,), adding_replicas=(TWO,), removing_replicas=(ONE,), directories=(HERE, HERE)),
    ],
)
def test_a_topic_is_read_as_it_was_written(partition: PartitionImage) -> None:
    topic = TopicImage("t", TOPIC_ID, (partition, PLAIN), {"segment.ms": "5"}, (THREE,))
    assert topic_nodes.decode_topic("t", stored(topic)) == topic


@pytest.mark.parametrize(
    ("row", "partition"),
    [
        ([[1, 2], [1], 1, 3, 4], PLAIN),
        ([[1, 2], [1], 1, 3, 4, [2], []], PLAIN._replace(elr=(TWO,))),
        (
            [[1, 2], [1], 1, 3, 4, [], [], [uuid_to_text(HERE), uuid_to_text(HERE)]],
            PLAIN._replace(directories=(HERE, HERE)),
        ),
    ],
)
def test_rows_of_earlier_releases_are_read(row: list[object], partition: PartitionImage) -> None:
    header = {"id": uuid_to_text(TOPIC_ID), "configs": {}, "count": 1, "partitions": [row]}
    assert topic_nodes.decode_topic("t", [json_values.encode(header)]) == TopicImage("t", TOPIC_ID, (partition,), {})


def test_a_partition_that_is_not_reassigned_takes_no_more_space_than_before() -> None:
    (node,) = stored(TopicImage("t", TOPIC_ID, (PLAIN,)))
    assert json_values.decode(node)["partitions"] == [[[1, 2], [1], 1, 3, 4]]
    assert "former_brokers" not in json_values.decode(node)


def test_the_node_of_a_broker_has_its_incarnation() -> None:
    path = broker_nodes.broker_path(TWO, 10)
    assert path == "/brokers/ids/2-10"
    assert broker_nodes.registered_as(path.rpartition("/")[2]) == (TWO, 10)
    registration = BrokerRegistration(TWO, 9, (), "rack", True, (HERE,), 10)
    assert broker_nodes.decode_registration(TWO, 10, 9, broker_nodes.encode_registration(registration)) == registration


def test_a_deleted_topic_is_also_removed_by_brokers_whose_replicas_were_reassigned_before() -> None:
    topic = TopicImage("t", TOPIC_ID, (PLAIN,), {}, (THREE,))
    *_, record = topic_nodes.deletion(topic)
    assert isinstance(record, Create)
    assert topic_nodes.decode_deleted(uuid_to_text(TOPIC_ID), record.value).brokers == (ONE, TWO, THREE)


def test_a_replica_has_left_only_if_the_image_knows_the_partition_and_does_not_name_the_broker() -> None:
    image = ClusterImage("cluster").with_topics({"t": TopicImage("t", TOPIC_ID, (PLAIN,))})
    assert image.has_left(THREE, TOPIC_ID, 0)
    assert not image.has_left(TWO, TOPIC_ID, 0)
    assert not image.has_left(THREE, TOPIC_ID, 1)
    assert not image.has_left(THREE, uuid.UUID(int=6), 0)


def test_replicas_that_stay_keep_their_directories() -> None:
    partition = PLAIN._replace(directories=(HERE, uuid.UUID(int=8)))
    moved = partition.with_replicas((THREE, ONE))
    assert moved.directories == (uuid.UUID(int=0), HERE)
    assert moved.with_replicas((THREE,)).directories == ()
