"""A whole broker with an authorizer: what each client may do, see and change, and what the audit log says of it."""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kaspar.acls import Acl, AclFilter, AclOperation, AclPermissionType, PatternType, ResourceType
from kaspar.base.errors import ErrorCode, InvalidSetting
from kaspar.broker.authorization.access import MAX_DENIED_LINES, host_address
from kaspar.broker.handlers import describe_acls
from kaspar.broker.loggers import AUDIT_LOGGER
from kaspar.broker.produce.handler import ProduceHandler
from kaspar.broker.server import Broker
from kaspar.config import BrokerSettings
from kaspar.config.broker.authorization import STANDARD_AUTHORIZER
from kaspar.controller.events import CreateAcls, DeleteAcls, DeleteTopics, TopicReference
from kaspar.network.gates import Principal
from kaspar.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from kaspar.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from kaspar.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from kaspar.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from kaspar.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kaspar.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from tests.unit.broker.running import Client, create_topic, run, running, until
from tests.unit.storage.logs import make_batch

ALICE, ROOT = Principal("User", "alice"), Principal("User", "root")
DENIED, NONE = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.NONE
AUTHORIZER = {"authorizer_class_name": STANDARD_AUTHORIZER, "super_users": "User:root; User:other"}
COMMIT = OffsetCommitRequest(
    group_id="g",
    member_id="",
    topics=(
        OffsetCommitRequestTopic(
            name="t",
            partitions=(OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata=""),),
        ),
    ),
)


@asynccontextmanager
async def secured(folder: Path, **settings: str) -> AsyncIterator[Broker]:
    async with running(folder, offsets_topic_num_partitions="1", **{**AUTHORIZER, **settings}) as broker:
        yield broker


def client(broker: Broker, principal: Principal = ALICE, *, peer: str = "127.0.0.1:1") -> Client:
    made = Client(broker, peer=peer)
    made.connection.principal = principal
    return made


def acl(
    operation: AclOperation,
    name: str = "t",
    *,
    resource_type: ResourceType = ResourceType.TOPIC,
    deny: bool = False,
    host: str = "*",
) -> Acl:
    permission = AclPermissionType.DENY if deny else AclPermissionType.ALLOW
    return Acl(resource_type, name, PatternType.LITERAL, str(ALICE), host, operation, permission)


async def allow(broker: Broker, *acls: Acl) -> None:
    outcomes = await broker.controller.submit(CreateAcls(acls))
    assert all(outcome.error is NONE for outcome in outcomes)


async def revoke(broker: Broker) -> None:
    await broker.controller.submit(DeleteAcls((AclFilter(),)))


async def produced(sender: Client, *topics: str) -> list[int]:
    sender.produce(*((topic, 0, make_batch()) for topic in topics))
    return [result.error_code for result in await sender.produced()]


async def visible(asking: Client, *names: str, version: int = 12) -> dict[str | None, int]:
    every = () if version == 0 else None
    topics = tuple(MetadataRequestTopic(name=name) for name in names) if names else every
    asking.send(MetadataRequest(topics=topics, allow_auto_topic_creation=False), version=version)
    response = await asking.response(MetadataResponse)
    return {topic.name: topic.error_code for topic in response.topics}


def test_another_authorizer_is_refused_with_a_sentence() -> None:
    with pytest.raises(InvalidSetting, match=r"authorizer\.class\.name: Java classes cannot be loaded; use org"):
        BrokerSettings.of({"node.id": "1", "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"})


def test_a_super_user_that_is_no_principal_is_refused_with_a_sentence(tmp_path: Path) -> None:
    async def scenario() -> None:
        with pytest.raises(InvalidSetting, match=r"super\.users has 'root', which is not a principal"):
            async with secured(tmp_path, super_users="root"):
                pass

    run(scenario())


def test_a_topic_is_written_and_read_by_those_who_may(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with secured(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            await create_topic(broker, "u")
            alice, root = client(broker), client(broker, ROOT)
            assert await produced(root, "t") == [NONE]
            assert await produced(alice, "t") == [DENIED]
            assert partition.log.log_end_offset == 1
            await allow(broker, acl(AclOperation.WRITE))
            assert await produced(alice, "t") == [NONE]
            assert await produced(alice, "u", "t") == [DENIED, NONE]
            alice.fetch(("t", 0, 0))
            response = await alice.response(FetchResponse)
            assert [each.error_code for each in response.responses[0].partitions] == [DENIED]
            await allow(broker, acl(AclOperation.READ))
            alice.fetch(("t", 0, 0), ("u", 0, 0))
            response = await alice.response(FetchResponse)
            codes = {each.topic: each.partitions[0].error_code for each in response.responses}
            assert codes == {"t": NONE, "u": DENIED}
            await allow(broker, acl(AclOperation.WRITE, deny=True, host="127.0.0.1"))
            assert await produced(alice, "t") == [DENIED]
            assert await produced(client(broker, peer="10.0.0.9:4"), "t") == [NONE]
            await revoke(broker)
            assert await produced(alice, "t") == [DENIED]

    run(scenario())


def test_a_topic_is_hidden_from_those_who_may_not_describe_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with secured(tmp_path) as broker:
            await create_topic(broker, "t")
            await create_topic(broker, "u")
            alice = client(broker)
            for version in (0, 1, 12):
                assert await visible(alice, version=version) == {}
            assert await visible(alice, "t", "nothing") == {"t": DENIED, "nothing": DENIED}
            await allow(broker, acl(AclOperation.DESCRIBE))
            for version in (0, 1, 12):
                assert await visible(alice, version=version) == {"t": NONE}
            assert await visible(alice, "t", "u") == {"t": NONE, "u": DENIED}
            assert await visible(client(broker, ROOT)) == {"t": NONE, "u": NONE}

    run(scenario())


def test_auto_creation_needs_create_on_the_topic_or_the_cluster(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with secured(tmp_path) as broker:
            alice = client(broker)
            await allow(broker, acl(AclOperation.DESCRIBE, "new"))
            alice.send(MetadataRequest(topics=(MetadataRequestTopic(name="new"),)))
            response = await alice.response(MetadataResponse)
            assert response.topics[0].error_code == DENIED
            assert "new" not in broker.images.current.topics
            await allow(broker, acl(AclOperation.CREATE, "new"))
            alice.send(MetadataRequest(topics=(MetadataRequestTopic(name="new"),)))
            await alice.response(MetadataResponse)
            await until(lambda: "new" in broker.images.current.topics)

    run(scenario())


def test_short_forms_are_used_as_long_as_they_are_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One batch for one topic, and a commit that is known by its bytes: a change of the ACLs ends both at once."""
    short_forms = 0
    handle_one = ProduceHandler.handle_one

    def counted(*arguments: object) -> object:
        nonlocal short_forms
        short_forms += 1
        return handle_one(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(ProduceHandler, "handle_one", counted)

    async def commit(sender: Client) -> int:
        sender.send(COMMIT, version=9)
        response = await sender.response(OffsetCommitResponse)
        return response.topics[0].partitions[0].error_code

    async def scenario() -> None:
        async with secured(tmp_path) as broker:
            await create_topic(broker, "t")
            await broker.groups.runtime.ensure_topic()
            alice = client(broker)
            assert await commit(alice) == ErrorCode.GROUP_AUTHORIZATION_FAILED
            on_group = acl(AclOperation.READ, "g", resource_type=ResourceType.GROUP)
            await allow(broker, acl(AclOperation.WRITE), on_group)
            assert await commit(alice) == DENIED
            await allow(broker, acl(AclOperation.READ))
            for _ in range(3):
                assert await produced(alice, "t") == [NONE]
                assert await commit(alice) == NONE
            assert short_forms == 3
            assert alice.connection.known
            await allow(broker, acl(AclOperation.ALL, deny=True))
            assert await produced(alice, "t") == [DENIED]
            assert short_forms == 3
            assert await commit(alice) == DENIED
            alice.connection.principal = ROOT
            assert await commit(alice) == NONE

    run(scenario())


ANY = 1


def creation(**fields: object) -> AclCreation:
    values: dict[str, object] = {
        "resource_type": ResourceType.TOPIC,
        "resource_name": "t",
        "principal": "User:bob",
        "host": "*",
        "operation": AclOperation.READ,
        "permission_type": AclPermissionType.ALLOW,
    }
    return AclCreation(**{**values, **fields})  # type: ignore[arg-type]


def describing(**fields: object) -> DescribeAclsRequest:
    values: dict[str, object] = {
        "resource_type_filter": ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
    }
    return DescribeAclsRequest(**{**values, **fields})  # type: ignore[arg-type]


def of_all(**fields: object) -> DeleteAclsFilter:
    request = describing(**fields)
    return DeleteAclsFilter(
        **{name: getattr(request, name) for name in DeleteAclsFilter.__dataclass_fields__ if name != "SCHEMA"}
    )


async def created(sender: Client, *creations: AclCreation) -> list[tuple[int, str | None]]:
    sender.send(CreateAclsRequest(creations=creations), version=3)
    response = await sender.response(CreateAclsResponse)
    return [(result.error_code, result.error_message) for result in response.results]


def test_acls_are_created_described_and_deleted_over_the_wire(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with secured(tmp_path) as broker:
            root = client(broker, ROOT)
            results = await created(
                root,
                creation(),
                creation(resource_name=""),
                creation(resource_type=ResourceType.CLUSTER),
                creation(principal="bob"),
                creation(operation=AclOperation.WRITE),
            )
            assert [code for code, _ in results] == [0, 42, 42, 42, 0]
            assert results[2][1] == "The only valid name for the CLUSTER resource is kafka-cluster"
            root.send(describing(), version=3)
            described = await root.response(DescribeAclsResponse)
            assert described.error_code == 0
            (resource,) = described.resources
            assert [each.operation for each in resource.acls] == [AclOperation.READ, AclOperation.WRITE]
            root.send(DeleteAclsRequest(filters=(of_all(operation=AclOperation.READ), of_all())), version=3)
            deleted = await root.response(DeleteAclsResponse)
            assert [len(each.matching_acls) for each in deleted.filter_results] == [1, 2]
            assert broker.images.current.acls == {}

    run(scenario())


def test_very_many_acls_are_described_as_few_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with secured(tmp_path) as broker:
            root = client(broker, ROOT)
            await allow(broker, *(acl(AclOperation.READ, f"t{number:03}") for number in range(100)))
            responses = []
            for at_once in (100, 99):
                monkeypatch.setattr(describe_acls, "AT_ONCE", at_once)
                for fields in ({}, {"resource_name_filter": "t007"}, {"principal_filter": "User:nobody"}):
                    root.send(describing(**fields), version=3)
                    responses.append(await root.response(DescribeAclsResponse))
            assert responses[:3] == responses[3:]
            assert [len(each.resources) for each in responses[:3]] == [100, 1, 0]

    run(scenario())


def test_acls_are_shown_to_those_who_may_describe_the_cluster_and_changed_by_those_who_may_alter_it(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with secured(tmp_path) as broker:
            alice = client(broker)
            code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED

            async def codes() -> tuple[int, int, int]:
                (creating,) = await created(alice, creation())
                alice.send(describing(), version=3)
                described = await alice.response(DescribeAclsResponse)
                alice.send(DeleteAclsRequest(filters=(of_all(principal_filter="User:bob"),)), version=3)
                deleted = await alice.response(DeleteAclsResponse)
                return creating[0], described.error_code, deleted.filter_results[0].error_code

            assert await codes() == (code, code, code)
            on_cluster = ResourceType.CLUSTER
            await allow(broker, acl(AclOperation.DESCRIBE, "kafka-cluster", resource_type=on_cluster))
            assert await codes() == (code, 0, code)
            await allow(broker, acl(AclOperation.ALTER, "kafka-cluster", resource_type=on_cluster))
            assert await codes() == (0, 0, 0)

    run(scenario())


CODES = ("resource_type", "resource_pattern_type", "operation", "permission_type")


@pytest.mark.parametrize("field", CODES)
def test_a_code_that_stands_for_nothing_closes_the_connection(tmp_path: Path, field: str) -> None:
    async def scenario() -> None:
        async with secured(tmp_path) as broker:
            root = client(broker, ROOT)
            root.send(CreateAclsRequest(creations=(creation(**{field: 0}),)), version=3)
            await until(root.transport.is_closing)
            assert root.look() == []

    run(scenario())


def test_a_code_that_nobody_knows_refuses_its_acl_and_any_refuses_all(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with secured(tmp_path) as broker:
            root = client(broker, ROOT)
            for field in CODES:
                results = await created(root, creation(), creation(**{field: 99}))
                assert [code for code, _ in results] == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
                results = await created(root, creation(), creation(**{field: ANY}))
                assert results == [(ErrorCode.UNKNOWN_SERVER_ERROR, None)] * 2
            root.send(describing(operation=99), version=3)
            assert (await root.response(DescribeAclsResponse)).resources == ()
            root.send(DeleteAclsRequest(filters=(of_all(operation=99), of_all())), version=3)
            deleted = await root.response(DeleteAclsResponse)
            assert [each.error_code for each in deleted.filter_results] == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
            assert [len(each.matching_acls) for each in deleted.filter_results] == [0, 1]

    run(scenario())


def audited(records: Sequence[logging.LogRecord]) -> list[tuple[str, dict[str, object]]]:
    return [(record.levelname, vars(record)["values"]) for record in records if record.name == AUDIT_LOGGER]


def test_the_audit_log_has_what_is_denied_and_at_debug_what_is_allowed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with secured(tmp_path) as broker:
            await create_topic(broker, "t")
            alice, root = client(broker), client(broker, ROOT)
            with caplog.at_level(logging.INFO, AUDIT_LOGGER):
                await produced(alice, "t")
                await produced(root, "t")
            ((level, values),) = audited(caplog.records)
            assert level == "INFO"
            assert values == {
                "principal": "User:alice",
                "operation": "WRITE",
                "host": "127.0.0.1",
                "resource": "Topic:LITERAL:t",
                "request": "Produce",
                "resource_ref_count": 1,
                "rule": "DefaultDeny",
            }
            caplog.clear()
            await allow(broker, acl(AclOperation.WRITE))
            with caplog.at_level(logging.DEBUG, AUDIT_LOGGER):
                for _ in range(2):  # short forms included
                    await produced(alice, "t")
                await produced(root, "t")
            allowed = audited(caplog.records)
            assert [level for level, _ in allowed] == ["DEBUG"] * 3
            assert str(allowed[0][1]["rule"]).startswith("StandardAcl(resourceType=TOPIC, resourceName=t")
            assert allowed[2][1]["rule"] == "SuperUser"

    run(scenario())


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("10.0.0.1:9", "10.0.0.1"),
        ("::1:9", "0:0:0:0:0:0:0:1"),
        ("::ffff:10.0.0.1:9", "10.0.0.1"),
        ("fe80::1:9", "fe80:0:0:0:0:0:0:1"),
    ],
)
def test_addresses_are_written_as_java_writes_them(peer: str, address: str) -> None:
    assert host_address(peer) == address


def test_only_topics_that_exist_are_remembered_as_writable(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with secured(tmp_path, auto_create_topics_enable="false") as broker:
            await create_topic(broker, "t")
            root = client(broker, ROOT)
            for number in range(20):
                assert await produced(root, f"made-up-{number}") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
            assert await produced(root, "t") == [NONE]
            assert root.connection.permitted is not None
            assert root.connection.permitted.writable == {"t"}
            for number in range(20):
                await create_topic(broker, f"short-lived-{number}")
                assert await produced(root, f"short-lived-{number}") == [NONE]
                await broker.controller.submit(DeleteTopics((TopicReference(f"short-lived-{number}"),)))
            assert len(root.connection.permitted.writable) <= 4

    run(scenario())


def test_a_follower_is_one_that_may_be_one(tmp_path: Path) -> None:
    """The time of its requests counts against no quota."""

    async def scenario() -> None:
        async with secured(tmp_path) as broker:
            await create_topic(broker, "t")
            wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
            topics = (FetchTopic(topic="t", partitions=(wanted,)),)

            async def is_follower(sender: Client, replica_id: int, topics: tuple[FetchTopic, ...] = topics) -> bool:
                request = FetchRequest(
                    replica_id=replica_id, max_wait_ms=0, min_bytes=0, topics=topics, forgotten_topics_data=()
                )
                sender.send(request)
                await sender.response(FetchResponse)
                return sender.connection.is_follower

            alice, root = client(broker), client(broker, ROOT)
            assert not await is_follower(alice, 2)
            assert not await is_follower(alice, 2, ())
            assert await is_follower(root, 2)
            assert not await is_follower(root, -1)

    run(scenario())


def test_what_a_request_is_denied_beyond_a_hundred_resources_is_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with secured(tmp_path) as broker:
            alice = client(broker)
            with caplog.at_level(logging.INFO, AUDIT_LOGGER):
                assert len(await visible(alice, *(f"t{number}" for number in range(1000)))) == 1000

                def others() -> list[object]:
                    return [values.get("resources") for _, values in audited(caplog.records)[MAX_DENIED_LINES:]]

                await until(lambda: sum(map(int, map(str, others()))) == 900)
            assert len(others()) < 10  # one for each piece of the request

    run(scenario())
