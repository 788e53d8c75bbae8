"""Client quotas in a cluster on ZooKeeper: set on any broker, known to all of them, kept by the next controller."""

from collections.abc import Iterator

import pytest

from kaspar.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from kaspar.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse
from kaspar.testing import Cluster
from tests.integration.cluster.up import needs_java, until
from tests.peers.raw_client import RawClient

RATE = 100.0
EVERYTHING = DescribeClientQuotasRequest(components=(), strict=False)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    needs_java()
    with Cluster(brokers=2) as cluster:
        yield cluster


def set_rate(cluster: Cluster, broker_id: int, client_id: str, rate: float) -> None:
    entry = RequestEntryData(
        entity=(RequestEntityData(entity_type="client-id", entity_name=client_id),),
        ops=(OpData(key="producer_byte_rate", value=rate, remove=False),),
    )
    with RawClient(cluster.port(broker_id)) as client:
        request = AlterClientQuotasRequest(entries=(entry,), validate_only=False)
        (outcome,) = client.call(request, AlterClientQuotasResponse).entries
    assert outcome.error_code == 0, outcome.error_message


def rates(cluster: Cluster, broker_id: int) -> dict[str | None, float]:
    with RawClient(cluster.port(broker_id)) as client:
        entries = client.call(EVERYTHING, DescribeClientQuotasResponse).entries
    assert entries is not None
    return {entry.entity[0].entity_name: entry.values[0].value for entry in entries}


def test_a_quota_is_known_to_all_brokers_and_to_the_next_controller(cluster: Cluster) -> None:
    odd = "a/b&c=d ü"
    for broker_id in cluster.broker_ids:
        set_rate(cluster, broker_id, f"{odd}{broker_id}", RATE * broker_id)
    expected = {f"{odd}{broker_id}": RATE * broker_id for broker_id in cluster.broker_ids}
    until(lambda: all(rates(cluster, each) == expected for each in cluster.broker_ids), "every broker knows it")
    before = cluster.controller_id()
    cluster.restart(before)
    cluster.wait_complete()
    until(lambda: all(rates(cluster, each) == expected for each in cluster.broker_ids), "it is still known")
