"""The wire client's transactions on a broker, under both sets of rules."""

from collections.abc import Iterator

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.client.producing import RawProducer
from kaspar.client.transactions import (
    Ending,
    add_partitions,
    describe,
    end,
    init_producer_id,
    list_transactions,
    max_timeout_ms,
    transaction_support,
)
from kaspar.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from kaspar.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse
from kaspar.records import Record, build_batch
from kaspar.testing import Broker

TOPIC = "orders"
ID = "till:7.b"
SAFE_DOWNGRADE = 2


@pytest.fixture(params=[2, 1])
def version(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


@pytest.fixture
def client(version: int) -> Iterator[Client]:
    with (
        Broker(overrides={"transaction.max.timeout.ms": "300000"}) as broker,
        Client(broker.bootstrap_servers) as client,
    ):
        topic = CreatableTopic(name=TOPIC, num_partitions=2, replication_factor=1, assignments=(), configs=())
        made = client.request_controller(CreateTopicsRequest(topics=(topic,)), CreateTopicsResponse)
        assert made.topics[0].error_code == ErrorCode.NONE
        if version == 1:
            older = FeatureUpdateKey(feature="transaction.version", max_version_level=1, upgrade_type=SAFE_DOWNGRADE)
            response = client.request_controller(
                UpdateFeaturesRequest(feature_updates=(older,)), UpdateFeaturesResponse
            )
            assert response.error_code == ErrorCode.NONE
        yield client


def test_a_transaction_is_written_looked_at_and_ended(client: Client, version: int) -> None:
    assert transaction_support(client) == (version, True)
    assert max_timeout_ms(client) == 300_000
    pair = init_producer_id(client, ID, timeout_ms=60_000).producer
    before_first = (lambda partitions: add_partitions(client, ID, pair, partitions)) if version == 1 else None
    with RawProducer(client, producer=pair, transactional_id=ID, before_first=before_first) as producer:
        producer.partitions_of(TOPIC)
        for partition in range(2):
            batch = memoryview(build_batch([Record(1, None, b"value")]))
            producer.send([(TopicPartition(TOPIC, partition), batch)])
        producer.flush()
    described = describe(client, [ID, "nobody's"])
    assert set(described) == {ID}
    assert described[ID].state == "Ongoing"
    assert described[ID].partitions == (TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1))
    assert [each.transactional_id for each in list_transactions(client, prefix="till:7.", states=("Ongoing",))] == [ID]
    assert list_transactions(client, prefix="till:7x") == []
    end(client, Ending(ID, pair, True), version=version)
    end(client, Ending(ID, pair, True), version=version)
    assert describe(client, [ID])[ID].state in ("PrepareCommit", "CompleteCommit")
