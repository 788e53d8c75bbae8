"""Gates in front of a whole broker: a throttle time reaches every response, and a restriction every request."""

from pathlib import Path

import pytest

from kaspar.broker import wiring
from kaspar.broker.produce.handler import ProduceHandler
from kaspar.network.gates import Authenticated, Principal, Rejected
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.messages.fetch import FetchResponse
from kaspar.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kaspar.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kaspar.protocol.messages.produce import ProduceResponse
from kaspar.protocol.schema import Message
from tests.unit.broker.running import Client, create_topic, run, running, until
from tests.unit.storage.logs import make_batch

THROTTLE_MS = 3
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


class Quota:
    def __init__(self) -> None:
        self.throttle_ms = 0

    def throttle_time_ms(self, principal: Principal, client_id: str | None, api_key: int, request_bytes: int) -> int:
        return self.throttle_ms


class Permission:
    def __init__(self) -> None:
        self.refused: ApiKey | None = None
        self.unrestricted = True
        self.checks_topics = False

    def check(self, connection: Authenticated, principal: Principal, api_key: int) -> bool:
        if api_key == self.refused:
            raise Rejected(f"{principal} may not")
        return self.unrestricted

    def may_write(self, connection: Authenticated, topic: object) -> bool:
        return True


@pytest.fixture
def quota(monkeypatch: pytest.MonkeyPatch) -> Quota:
    quota = Quota()
    monkeypatch.setattr(wiring, "NoQuota", lambda: quota)
    return quota


@pytest.fixture
def permission(monkeypatch: pytest.MonkeyPatch) -> Permission:
    permission = Permission()
    monkeypatch.setattr(wiring, "NoAuthorizer", lambda: permission)
    return permission


def naming(count: int) -> MetadataRequest:
    topics = tuple(MetadataRequestTopic(name=f"topic-{number}") for number in range(count))
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def throttle_time_of(response: Message) -> int:
    assert isinstance(response, ProduceResponse | FetchResponse | MetadataResponse | OffsetCommitResponse), (
        "one of those below"
    )
    return response.throttle_time_ms


def test_the_throttle_time_is_in_every_response(tmp_path: Path, quota: Quota) -> None:
    async def scenario() -> None:
        async with running(tmp_path, offsets_topic_num_partitions="1") as broker:
            await create_topic(broker, "t", 2)
            await broker.groups.runtime.ensure_topic()
            client = Client(broker)
            for throttle_ms in (0, THROTTLE_MS, 0):
                # The first round teaches the broker the commit and the response about one partition.
                quota.throttle_ms = throttle_ms
                for acks in (1, -1):
                    client.produce(("t", 0, make_batch()), acks=acks)
                    assert throttle_time_of(await client.response(ProduceResponse)) == throttle_ms
                client.produce(("t", 0, make_batch()), ("t", 1, make_batch()))
                assert throttle_time_of(await client.response(ProduceResponse)) == throttle_ms
                client.fetch(("t", 0, 0))
                assert throttle_time_of(await client.response(FetchResponse)) == throttle_ms
                client.fetch(("t", 0, 1 << 40))
                assert throttle_time_of(await client.response(FetchResponse)) == throttle_ms
                client.fetch(("t", 1, broker.partitions.lead("t", 1).log.log_end_offset), max_wait_ms=5)
                assert throttle_time_of(await client.response(FetchResponse)) == throttle_ms
                client.send(naming(1))
                assert throttle_time_of(await client.response(MetadataResponse)) == throttle_ms
                client.send(naming(1_000))
                assert throttle_time_of(await client.response(MetadataResponse)) == throttle_ms
                for _ in range(2):
                    client.send(COMMIT, version=9)
                    assert throttle_time_of(await client.response(OffsetCommitResponse)) == throttle_ms
            assert client.connection.known

    run(scenario())


def test_a_principal_that_may_not_produce_has_nothing_appended(tmp_path: Path, permission: Permission) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            client = Client(broker)
            client.produce(("t", 0, make_batch()))
            await client.response(ProduceResponse)
            permission.refused = ApiKey.PRODUCE
            client.produce(("t", 0, make_batch()))
            await until(client.transport.is_closing)
            assert client.look() == []
            assert partition.log.log_end_offset == 1

    run(scenario())


def test_a_restricted_principal_gets_the_same_responses_without_the_short_form(
    tmp_path: Path, permission: Permission, monkeypatch: pytest.MonkeyPatch
) -> None:
    short_forms = 0
    handle_one = ProduceHandler.handle_one

    def counted(*arguments: object) -> object:
        nonlocal short_forms
        short_forms += 1
        return handle_one(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(ProduceHandler, "handle_one", counted)

    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await create_topic(broker, "t")
            client = Client(broker)
            offsets = []
            for unrestricted in (True, False):
                permission.unrestricted = unrestricted
                client.produce(("t", 0, make_batch()))
                (result,) = await client.produced()
                offsets.append(result.base_offset)
            assert offsets == [0, 1]
            assert short_forms == 1

    run(scenario())
