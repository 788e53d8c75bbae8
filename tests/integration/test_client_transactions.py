"""The wire client's transactions on a broker, under both sets of rules."""

import time
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
    end_and_continue,
    init_producer_id,
    list_transactions,
    max_timeout_ms,
    transaction_support,
)
from kaspar.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from kaspar.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse
from kaspar.records import Record, build_batch
from kaspar.records.reader import iter_visible
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


def test_transactions_of_one_id_follow_each_other(client: Client, version: int) -> None:
    pair = init_producer_id(client, ID).producer
    partition, now_ms = TopicPartition(TOPIC, 0), time.time_ns() // 1_000_000
    add = (lambda partitions: add_partitions(client, ID, pair, partitions)) if version == 1 else None
    with RawProducer(client, producer=pair, transactional_id=ID, before_first=add) as producer:
        for number in range(3):
            producer.send([(partition, memoryview(build_batch([Record(now_ms, None, b"%d" % number)])))])
            producer.flush()
            pair = end_and_continue(client, Ending(ID, pair, committed=True), version=version)
            producer.renew(pair, transactional_id=ID, before_first=add)
    values = [each.value for each in iter_visible(memoryview(client.fetch(TOPIC, 0, 0).records or b""), (), 0, 100)]
    assert values == [b"0", b"1", b"2"]
