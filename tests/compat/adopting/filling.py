"""Gives a broker of Kafka something of everything, in single requests."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaspar.base.errors import ErrorCode
from kaspar.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from kaspar.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialUpsertion,
)
from kaspar.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from kaspar.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kaspar.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from kaspar.records import Codec, Record, build_batch
from tests.peers.observed import wait_until
from tests.peers.raw_client import RawClient
from tests.peers.raw_consumer_groups import RawConsumer
from tests.peers.raw_groups import RawMember
from tests.peers.raw_offsets import RawOffsets
from tests.peers.raw_transactions import RawProducer

TOPIC, BROKER, CLIENT_METRICS, GROUP_CONFIGS = 2, 4, 16, 32
ORDERS, TABLE, GONE = "orders", "table", "gone"
CLASSIC, MODERN, LONELY, SHARERS = "classic", "modern", "lonely", "sharers"
PARTITIONS = 3
RECORDS = 40
SETTINGS = {
    (TOPIC, ORDERS): {"retention.ms": "-1", "segment.bytes": "1048576"},
    (TOPIC, TABLE): {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"},
    (BROKER, ""): {"log.retention.ms": "86400001"},
    (BROKER, "1"): {"log.cleaner.threads": "2"},
    (GROUP_CONFIGS, MODERN): {"consumer.session.timeout.ms": "50000"},
    (CLIENT_METRICS, "subscription"): {"interval.ms": "10000"},
}


@dataclass
class Clients:
    """What goes on with the next broker: producers with a transaction open and with a sequence, and group members."""

    transactional: RawProducer
    idempotent_id: int
    modern: RawConsumer
    classic: RawMember


def fill(port: int) -> Clients:
    """Topics, records, settings, groups and transactions."""
    with RawClient(port) as client:
        for topic, partitions in ((ORDERS, PARTITIONS), (TABLE, 1), (GONE, 2)):
            assert client.create_topic(topic, partitions=partitions, configs=SETTINGS.get((TOPIC, topic))) == 0
        alter(client, {resource: values for resource, values in SETTINGS.items() if resource[0] != TOPIC})
        idempotent_id = _records(client)
        assert client.delete_topic(GONE) == 0
        modern, classic = _groups(client, port)
        classic.close()
        return Clients(_transactions(client), idempotent_id, modern, classic)


def alter(client: RawClient, changes: Mapping[tuple[int, str], Mapping[str, str]]) -> None:
    resources = tuple(
        AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=tuple(
                AlterableConfig(name=setting, config_operation=0, value=value) for setting, value in values.items()
            ),
        )
        for (kind, name), values in changes.items()
    )
    request = IncrementalAlterConfigsRequest(resources=resources, validate_only=False)
    for response in client.call(request, IncrementalAlterConfigsResponse).responses:
        assert response.error_code == 0, response


def _records(client: RawClient) -> int:
    """All codecs, several segments, and a producer whose sequence goes on."""
    wait_until(lambda: client.produce(ORDERS, [b"first"]).error_code == 0, "the partition is led")
    for number in range(RECORDS):
        codec = list(Codec)[number % len(Codec)]
        for partition in range(PARTITIONS):
            values = [f"{partition} {number} {index} ".encode() * 3000 for index in range(5)]
            assert client.produce(ORDERS, values, partition=partition, codec=codec).error_code == 0
    rows = [Record(1_700_000_000_000 + number, b"key %d" % (number % 4), b"%d" % number) for number in range(RECORDS)]
    assert client.produce_batch(TABLE, bytes(build_batch(rows))).error_code == 0
    found: list[int] = []

    def has_id() -> bool:
        """Kafka has none to give until its broker has got a block of them."""
        found.append(client.new_producer_id())
        return found[-1] >= 0

    wait_until(has_id, "there are producer ids")
    producer_id = found[-1]
    assert client.produce(ORDERS, [b"counted"], producer_id=producer_id, base_sequence=0).error_code == 0
    return producer_id


def _groups(client: RawClient, port: int) -> tuple[RawConsumer, RawMember]:
    known: dict[str, Any]
    offsets = RawOffsets(client, LONELY)
    wait_until(lambda: set(offsets.commit(ORDERS, {0: 5}).values()) == {0}, "the coordinator is loaded")
    assert offsets.commit(ORDERS, {0: 5, 1: 7}, metadata="a note") == dict.fromkeys((0, 1), 0)
    member = RawMember(port, CLASSIC)
    member.join()
    assert member.sync({member.member_id: b""}).error_code == ErrorCode.NONE
    known = {"generation": member.generation_id, "member_id": member.member_id}
    assert RawOffsets(client, CLASSIC).commit(ORDERS, {2: 9}, **known) == {2: ErrorCode.NONE}
    consumer = RawConsumer(client, MODERN, topics=(ORDERS,))

    def has_all() -> bool:
        consumer.join() if not consumer.epoch else consumer.step()
        return len(consumer.partitions) == PARTITIONS

    wait_until(has_all, "the member has its partitions")
    consumer.step()
    known = {"generation": consumer.epoch, "member_id": consumer.member_id}
    assert RawOffsets(client, MODERN).commit(ORDERS, {0: 11}, **known) == {0: ErrorCode.NONE}
    return consumer, member


def _transactions(client: RawClient) -> RawProducer:
    """One committed, one aborted, one left open, each with an offset of a group."""
    for name, commit in (("committed", True), ("aborted", False)):
        producer = RawProducer(client, name)
        producer.begin_life()
        assert producer.write(ORDERS, name.encode()).error_code == 0
        assert producer.commit_offset(LONELY, ORDERS, 20 if commit else 30, partition=2) == 0
        assert producer.end(commit=commit).error_code == 0
    producer = RawProducer(client, "open", timeout_ms=600_000)
    producer.begin_life()
    assert producer.write(ORDERS, b"open").error_code == 0
    return producer


def secure(port: int) -> None:
    """ACLs, credentials, quotas, and a share group, which this release has no place for."""
    with RawClient(port) as client:
        acl = AclCreation(
            resource_type=TOPIC,
            resource_name=ORDERS,
            principal="User:alice",
            host="*",
            operation=3,
            permission_type=3,
        )
        (created,) = client.call(CreateAclsRequest(creations=(acl,)), CreateAclsResponse).results
        assert created.error_code == 0
        upsertion = ScramCredentialUpsertion(
            name="alice", mechanism=1, iterations=4096, salt=b"salt", salted_password=b"password"
        )
        request = AlterUserScramCredentialsRequest(deletions=(), upsertions=(upsertion,))
        (altered,) = client.call(request, AlterUserScramCredentialsResponse).results
        assert altered.error_code == 0
        entity = (RequestEntityData(entity_type="user", entity_name="alice"),)
        quota = RequestEntryData(entity=entity, ops=(OpData(key="producer_byte_rate", value=1e6, remove=False),))
        (limited,) = client.call(
            AlterClientQuotasRequest(entries=(quota,), validate_only=False), AlterClientQuotasResponse
        ).entries
        assert limited.error_code == 0
        joining = ShareGroupHeartbeatRequest(
            group_id=SHARERS, member_id="AAAAAAAAAAAAAAAAAAAAAQ", member_epoch=0, subscribed_topic_names=(ORDERS,)
        )
        assert client.call(joining, ShareGroupHeartbeatResponse, 1).error_code == 0
