"""ListTimestamps: from an offset to the time of its batch."""

import time
from pathlib import Path

import pytest

from kaspar.acls import Acl, AclOperation, AclPermissionType, PatternType, ResourceType
from kaspar.base.errors import ErrorCode
from kaspar.broker.handlers import list_timestamps
from kaspar.config.broker.authorization import STANDARD_AUTHORIZER
from kaspar.controller.events import CreateAcls
from kaspar.network.gates import Principal
from kaspar.protocol.messages.list_timestamps import (
    NO_RECORD,
    NOT_LOOKED_UP,
    ListTimestampsPartition,
    ListTimestampsPartitionResult,
    ListTimestampsRequest,
    ListTimestampsResponse,
    ListTimestampsTopic,
)
from tests.unit.broker.running import Client, create_topic, run, running
from tests.unit.storage.logs import make_batch

NOW_MS = time.time_ns() // 1_000_000
ALICE = Principal("User", "alice")


async def ask(client: Client, *partitions: ListTimestampsPartition) -> list[ListTimestampsPartitionResult]:
    client.send(ListTimestampsRequest(topics=(ListTimestampsTopic(name="t", partitions=partitions),)), version=0)
    response = await client.response(ListTimestampsResponse)
    return list(response.topics[0].partitions)


def wanted(*offsets: int, partition: int = 0) -> ListTimestampsPartition:
    return ListTimestampsPartition(partition_index=partition, offsets=offsets)


def test_each_offset_has_the_time_of_its_batch_and_ends_have_none(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await create_topic(broker, "t")
            client = Client(broker)
            client.produce(("t", 0, make_batch([b"a", b"b"], timestamp=NOW_MS)))
            client.produce(("t", 0, make_batch([b"c"], timestamp=NOW_MS + 7)))
            client.produce(("t", 0, make_batch([b"d"], timestamp=-1)))
            for _ in range(3):
                await client.produced()
            (result,) = await ask(client, wanted(2, 0, 1, 3, 4, 99))
            assert result.error_code == ErrorCode.NONE
            assert result.timestamps == (NOW_MS + 7, NOW_MS, NOW_MS, NOT_LOOKED_UP, NO_RECORD, NO_RECORD)

    run(scenario())


def test_partitions_that_are_not_led_here_are_refused_one_by_one(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await create_topic(broker, "t")
            client = Client(broker)
            missing, empty = await ask(client, wanted(0, partition=9), wanted(0))
            assert (missing.error_code, missing.timestamps) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ())
            assert (empty.error_code, empty.timestamps) == (ErrorCode.NONE, (NO_RECORD,))

    run(scenario())


def test_a_request_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_timestamps, "MOST_OFFSETS", 3)

    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await create_topic(broker, "t", partitions=2)
            client = Client(broker)
            within, beyond = await ask(client, wanted(0, 0), wanted(0, 0, partition=1))
            assert (within.error_code, beyond.error_code) == (ErrorCode.NONE, ErrorCode.INVALID_REQUEST)

    run(scenario())


def test_it_needs_describe_as_list_offsets_does(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, authorizer_class_name=STANDARD_AUTHORIZER) as broker:
            await create_topic(broker, "t")
            alice = Client(broker)
            alice.connection.principal = ALICE
            (denied,) = await ask(alice, wanted(0))
            acl = Acl(
                ResourceType.TOPIC,
                "t",
                PatternType.LITERAL,
                str(ALICE),
                "*",
                AclOperation.DESCRIBE,
                AclPermissionType.ALLOW,
            )
            await broker.controller.submit(CreateAcls((acl,)))
            (allowed,) = await ask(alice, wanted(0))
            assert (denied.error_code, denied.timestamps) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ())
            assert (allowed.error_code, allowed.timestamps) == (ErrorCode.NONE, (NO_RECORD,))

    run(scenario())
