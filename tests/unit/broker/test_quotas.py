"""Quotas in front of a whole broker: who is throttled, what the response says, and that the connection then waits."""

from pathlib import Path

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ZERO_UUID
from kaspar.broker.server import Broker
from kaspar.controller.events import AlterClientQuotas, QuotaAlteration
from kaspar.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kaspar.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from kaspar.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from kaspar.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from kaspar.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from kaspar.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kaspar.protocol.messages.produce import ProduceResponse
from tests.unit.broker.running import Client, create_topic, run, running, until
from tests.unit.storage.logs import make_batch

DEFAULT_CLIENT = (("client-id", None),)
ANONYMOUS = (("user", "ANONYMOUS"),)
BATCH = make_batch([b"x" * 1000])


async def set_quota(broker: Broker, entity: tuple[tuple[str, str | None], ...], **limits: float | None) -> None:
    (outcome,) = await broker.controller.submit(AlterClientQuotas((QuotaAlteration(entity, tuple(limits.items())),)))
    assert outcome.outcome.error is ErrorCode.NONE, outcome.outcome.message


def test_a_producer_over_its_quota_is_answered_at_once_and_then_waits(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, quota_window_num="2") as broker:
            (partition,) = await create_topic(broker, "t")
            await set_quota(broker, ANONYMOUS, producer_byte_rate=10_000)
            client, other = Client(broker), Client(broker)
            throttle_times_ms = [0]
            while not throttle_times_ms[-1]:
                client.produce(("t", 0, BATCH), acks=1)
                throttle_times_ms.append((await client.response(ProduceResponse)).throttle_time_ms)
            assert len(throttle_times_ms) >= 10  # what is below the quota is not throttled
            assert throttle_times_ms[-1] < 500
            assert partition.log.log_end_offset == len(throttle_times_ms) - 1  # also what was over it is written
            assert not client.transport.is_reading()
            other.send(MetadataRequest(topics=()))
            await other.response(MetadataResponse)  # only what produces is throttled
            await until(client.transport.is_reading)
            await set_quota(broker, ANONYMOUS, producer_byte_rate=None)
            for _ in range(20):
                client.produce(("t", 0, BATCH), acks=1)
                assert (await client.response(ProduceResponse)).throttle_time_ms == 0

    run(scenario())


def test_a_producer_that_wants_no_response_waits_as_well(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            await set_quota(broker, ANONYMOUS, producer_byte_rate=1)
            client = Client(broker)
            client.produce(("t", 0, BATCH), acks=0)
            client.produce(("t", 0, BATCH), acks=0)
            await until(lambda: partition.log.log_end_offset == 1)
            assert not client.transport.is_reading()

    run(scenario())


def test_a_consumer_over_its_quota_gets_nothing_and_the_same_later(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, quota_window_num="2") as broker:
            await create_topic(broker, "t")
            client = Client(broker)
            for _ in range(5):
                client.produce(("t", 0, BATCH), acks=1)
                await client.response(ProduceResponse)
            await set_quota(broker, ANONYMOUS, consumer_byte_rate=6_000)
            client.fetch(("t", 0, 0))
            full = await client.response(FetchResponse)
            assert full.throttle_time_ms == 0
            (topic,) = full.responses
            assert len(topic.partitions[0].records or b"") > 5_000
            empty = full
            while not empty.throttle_time_ms:
                client.fetch(("t", 0, 0))
                empty = await client.response(FetchResponse)
            assert empty.throttle_time_ms < 1_000
            assert (empty.error_code, empty.session_id, empty.responses) == (0, 0, ())
            assert not client.transport.is_reading()
            await until(client.transport.is_reading)

    run(scenario())


def test_a_consumer_is_not_sent_more_than_its_quota_allows_in_all_windows(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, quota_window_num="2") as broker:
            await create_topic(broker, "t")
            client = Client(broker)
            for _ in range(10):
                client.produce(("t", 0, BATCH), acks=1)
                await client.response(ProduceResponse)
            await set_quota(broker, ANONYMOUS, consumer_byte_rate=2_500)
            client.fetch(("t", 0, 0))
            response = await client.response(FetchResponse)
            assert 0 < len(response.responses[0].partitions[0].records or b"") <= 2_500
            assert response.throttle_time_ms == 0

    run(scenario())


def test_a_batch_larger_than_the_quota_of_all_windows_is_sent_after_a_silence(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, quota_window_num="2") as broker:
            await create_topic(broker, "t")
            client = Client(broker)
            client.produce(("t", 0, make_batch([b"x" * 10_000])), acks=1)
            await client.response(ProduceResponse)
            await set_quota(broker, ANONYMOUS, consumer_byte_rate=1_000)
            client.fetch(("t", 0, 0))
            response = await client.response(FetchResponse)
            assert response.throttle_time_ms == 0
            assert len(response.responses[0].partitions[0].records or b"") > 10_000
            client.fetch(("t", 0, 0))
            assert (await client.response(FetchResponse)).throttle_time_ms > 1_000

    run(scenario())


def test_time_on_the_event_loop_counts_for_every_api(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, quota_window_num="2") as broker:
            await set_quota(broker, ANONYMOUS, request_percentage=0.000_001)
            client = Client(broker)
            client.send(MetadataRequest(topics=()))
            assert (await client.response(MetadataResponse)).throttle_time_ms == 0  # its own time counts for the next
            client.send(MetadataRequest(topics=()))
            assert (await client.response(MetadataResponse)).throttle_time_ms == 1_000  # at most a window
            assert not client.transport.is_reading()
            await set_quota(broker, ANONYMOUS, request_percentage=None)
            fresh = Client(broker)
            fresh.send(MetadataRequest(topics=()))
            assert (await fresh.response(MetadataResponse)).throttle_time_ms == 0

    run(scenario())


def test_fetches_of_followers_are_exempt(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await create_topic(broker, "t")
            await set_quota(broker, ANONYMOUS, request_percentage=0.000_001, consumer_byte_rate=1)
            follower = Client(broker)
            wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
            request = FetchRequest(
                replica_id=2,
                max_wait_ms=0,
                min_bytes=0,
                session_epoch=-1,
                topics=(FetchTopic(topic="t", partitions=(wanted,)),),
                forgotten_topics_data=(),
            )
            for _ in range(5):
                follower.send(request)
                assert (await follower.response(FetchResponse)).throttle_time_ms == 0
            assert broker.quotas.readings()["Request"] == broker.quotas.readings()["Fetch"] == []

    run(scenario())


def topic(name: str, partitions: int) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, assignments=(), configs=())


def test_topics_beyond_the_quota_of_mutations_are_refused_and_older_clients_throttled(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, controller_quota_window_num="2") as broker:
            await set_quota(broker, ANONYMOUS, controller_mutation_rate=0.05)
            client = Client(broker)
            # A name that is not valid costs nothing in the end.
            client.send(CreateTopicsRequest(topics=(topic("no name!", 4),)), version=7)
            assert (await client.response(CreateTopicsResponse)).throttle_time_ms == 0
            client.send(CreateTopicsRequest(topics=(topic("a", 3), topic("b", 1))), version=7)
            response = await client.response(CreateTopicsResponse)
            codes = {each.name: each.error_code for each in response.topics}
            assert codes == {"a": 0, "b": ErrorCode.THROTTLING_QUOTA_EXCEEDED}
            assert 50_000 < response.throttle_time_ms <= 60_000
            assert not client.transport.is_reading()

            second = Client(broker)
            more = CreatePartitionsTopic(name="a", count=4, assignments=None)
            second.send(CreatePartitionsRequest(topics=(more,), timeout_ms=1000, validate_only=False), version=3)
            grown = await second.response(CreatePartitionsResponse)
            assert [each.error_code for each in grown.results] == [ErrorCode.THROTTLING_QUOTA_EXCEEDED]

            third = Client(broker)
            gone = DeleteTopicState(name="a", topic_id=ZERO_UUID)
            third.send(DeleteTopicsRequest(topics=(gone,), timeout_ms=1000), version=6)
            deleted = await third.response(DeleteTopicsResponse)
            assert [each.error_code for each in deleted.responses] == [ErrorCode.THROTTLING_QUOTA_EXCEEDED]
            assert "a" in broker.image.topics

            older = Client(broker)
            older.send(CreateTopicsRequest(topics=(topic("d", 1),)), version=5)
            permitted = await older.response(CreateTopicsResponse)
            assert [each.error_code for each in permitted.topics] == [0]
            assert permitted.throttle_time_ms > 60_000

    run(scenario())


def test_quotas_are_described_by_filters_and_are_there_after_a_restart(tmp_path: Path) -> None:
    async def describe(
        broker: Broker, *components: tuple[str, int, str | None], strict: bool = False
    ) -> list[str] | int:
        client = Client(broker)
        filters = tuple(ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in components)
        client.send(DescribeClientQuotasRequest(components=filters, strict=strict), version=1)
        response = await client.response(DescribeClientQuotasResponse)
        if response.entries is None:
            return response.error_code
        return sorted(
            "/".join(f"{part.entity_type}={part.entity_name}" for part in entry.entity) for entry in response.entries
        )

    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await set_quota(broker, ANONYMOUS, producer_byte_rate=10)
            await set_quota(broker, (("user", "a"), ("client-id", "c")), producer_byte_rate=20)
            await set_quota(broker, (("user", None),), producer_byte_rate=30)
            await set_quota(broker, (("ip", "::1"),), connection_creation_rate=40)
        async with running(tmp_path) as broker:
            exact, default, specified = 0, 1, 2
            assert await describe(broker) == ["client-id=c/user=a", "ip=::1", "user=ANONYMOUS", "user=None"]
            assert await describe(broker, strict=True) == []
            assert await describe(broker, ("user", exact, "a")) == ["client-id=c/user=a"]
            assert await describe(broker, ("user", exact, "a"), strict=True) == []
            assert await describe(broker, ("user", default, None)) == ["user=None"]
            assert await describe(broker, ("user", specified, None), strict=True) == ["user=ANONYMOUS", "user=None"]
            assert await describe(broker, ("ip", specified, None)) == ["ip=::1"]
            assert await describe(broker, ("ip", specified, None), ("user", default, None)) == ErrorCode.INVALID_REQUEST
            assert await describe(broker, ("group", specified, None)) == ErrorCode.UNSUPPORTED_VERSION
            assert broker.quotas.produce.enabled

    run(scenario())
