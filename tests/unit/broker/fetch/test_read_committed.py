"""What a read_committed reader gets and when it is woken; markers, and where they are reported."""

from pathlib import Path

import pytest

from kaspar.base.clock import SystemClock
from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.broker.coordination.markers import Marker, MarkerKind
from kaspar.broker.server import Broker
from kaspar.protocol.isolation_level import READ_COMMITTED, READ_UNCOMMITTED
from kaspar.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from kaspar.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from kaspar.protocol.messages.fetch import PartitionData as Fetched
from kaspar.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kaspar.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kaspar.records import iter_records
from kaspar.replication.partition import Partition
from tests.unit.broker.running import Client, create_topic, run, running, until
from tests.unit.broker.transactions import Coordinator, P, Q, batch_of, end, produce
from tests.unit.storage.logs import make_batch

LATEST, MAX_TIMESTAMP = -1, -3
NEVER_MS = 600_000


def fetch(
    client: Client,
    offset: int,
    *,
    isolation_level: int = READ_COMMITTED,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    version: int = 12,
    replica_id: int = -1,
) -> None:
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    client.send(
        FetchRequest(
            replica_id=replica_id,
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=1 << 20,
            isolation_level=isolation_level,
            topics=(FetchTopic(topic="t", partitions=(wanted,)),),
            forgotten_topics_data=(),
        ),
        version=version,
    )


async def fetched(client: Client) -> Fetched:
    response = await client.response(FetchResponse)
    return response.responses[0].partitions[0]


def offsets_of(response: Fetched) -> list[int]:
    return [record.offset for record in iter_records(response.records or b"")]


async def written(broker: Broker, client: Client, producer: ProducerIdAndEpoch, sequence: int) -> None:
    produce(client, ("t", 0, batch_of(producer, sequence)), transactional_id=str(producer.producer_id))
    assert [response.error_code for response in await client.produced()] == [0]


@pytest.mark.parametrize("version", [4, 5, 7, 11, 12])
def test_a_reader_gets_decided_records_and_the_list_of_aborted_transactions(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            Coordinator(broker)
            client = Client(broker)
            await written(broker, client, P, 0)
            await end(broker, partition, P, committed=False)
            await written(broker, client, Q, 0)
            await written(broker, client, P, 1)
            fetch(client, 0, version=version)
            committed = await fetched(client)
            assert offsets_of(committed) == [0, 1]
            assert (committed.high_watermark, committed.last_stable_offset) == (4, 2)
            assert committed.aborted_transactions is not None
            assert [(each.producer_id, each.first_offset) for each in committed.aborted_transactions] == [
                (P.producer_id, 0)
            ]
            fetch(client, 0, isolation_level=READ_UNCOMMITTED, version=version)
            uncommitted = await fetched(client)
            assert offsets_of(uncommitted) == [0, 1, 2, 3]
            assert uncommitted.aborted_transactions is None
            fetch(client, 2, version=version)
            nothing = await fetched(client)
            assert offsets_of(nothing) == []
            assert nothing.aborted_transactions == ()

    run(scenario())


def test_a_reader_that_waits_is_woken_by_the_end_of_a_transaction_and_not_by_its_records(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            Coordinator(broker)
            writer, reader, careless = Client(broker), Client(broker), Client(broker)
            fetch(reader, 0, max_wait_ms=NEVER_MS)
            fetch(careless, 0, isolation_level=READ_UNCOMMITTED, max_wait_ms=NEVER_MS)
            await written(broker, writer, P, 0)
            assert offsets_of(await fetched(careless)) == [0]
            await written(broker, writer, P, 1)
            writer.produce(("t", 0, make_batch(timestamp=SystemClock().now_ms())))
            await writer.produced()
            assert not reader.look(), "it is not decided whether these are to be seen"
            await end(broker, partition, P, committed=True)
            assert offsets_of(await fetched(reader)) == [0, 1, 2, 3]

    run(scenario())


def test_a_reader_that_waits_for_much_is_woken_when_so_much_is_decided(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            Coordinator(broker)
            writer, reader = Client(broker), Client(broker)
            fetch(reader, 0, max_wait_ms=NEVER_MS, min_bytes=4 * len(batch_of(P, 0)))
            await written(broker, writer, P, 0)
            await end(broker, partition, P, committed=True)
            await written(broker, writer, P, 1)
            await written(broker, writer, P, 2)
            assert not reader.look(), "half of it is readable, and all of it is there"
            await end(broker, partition, P, committed=False)
            response = await fetched(reader)
            assert offsets_of(response) == [0, 1, 2, 3, 4]
            assert response.aborted_transactions is not None
            assert [each.first_offset for each in response.aborted_transactions] == [2]

    run(scenario())


def test_a_reader_is_woken_when_the_marker_is_committed_and_not_before(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t", flush_messages="1")
            Coordinator(broker)
            writer, reader = Client(broker), Client(broker)
            fetch(reader, 0, max_wait_ms=NEVER_MS)
            await written(broker, writer, P, 0)
            stable_when_woken: list[int] = []

            class Witness:
                def readable(self, moved: Partition, size: int) -> None:
                    stable_when_woken.append(moved.last_stable_offset)

                def read_again(self, moved: Partition) -> None:
                    raise AssertionError("only records were appended")

            partition.fetch_waiters.add(Witness())
            assert await end(broker, partition, P, committed=True) is ErrorCode.NONE
            assert partition.log.recovery_point == 2
            assert stable_when_woken == [2]
            assert offsets_of(await fetched(reader)) == [0, 1]

    run(scenario())


def test_a_follower_gets_everything_whatever_it_asks_for(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await create_topic(broker, "t")
            Coordinator(broker)
            client = Client(broker)
            await written(broker, client, P, 0)
            fetch(client, 0, replica_id=2)
            response = await fetched(client)
            assert response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER, "it follows nothing here"
            assert response.aborted_transactions is None

    run(scenario())


def test_cold_records_come_with_what_was_aborted_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            Coordinator(broker)
            client = Client(broker)
            for sequence in range(3):
                await written(broker, client, P, sequence)
                await end(broker, partition, P, committed=sequence == 1)
            partition.log.roll(now_ms=SystemClock().now_ms())
        async with running(tmp_path) as broker:
            monkeypatch.setattr("kaspar.storage.disk.files.OsFiles.pread_cached", lambda *arguments: None)
            client = Client(broker)
            fetch(client, 0)
            response = await fetched(client)
            assert offsets_of(response) == [0, 1, 2, 3, 4, 5]
            assert response.aborted_transactions is not None
            assert [each.first_offset for each in response.aborted_transactions] == [0, 4]

    run(scenario())


async def _list_offset(client: Client, timestamp: int, isolation_level: int) -> int:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    client.send(
        ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation_level,
            topics=(ListOffsetsTopic(name="t", partitions=(wanted,)),),
        ),
        version=9,
    )
    response = await client.response(ListOffsetsResponse)
    return response.topics[0].partitions[0].offset


def test_offsets_beyond_the_last_stable_one_are_not_there_for_a_read_committed_reader(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            Coordinator(broker)
            client = Client(broker)
            client.produce(("t", 0, make_batch([b"plain"])))
            await client.produced()
            late = batch_of(P, 0)
            produce(client, ("t", 0, late))
            await client.produced()
            assert await _list_offset(client, LATEST, READ_COMMITTED) == 1
            assert await _list_offset(client, LATEST, READ_UNCOMMITTED) == 2
            assert await _list_offset(client, 0, READ_COMMITTED) == 0
            partition.log.advance_log_start_offset(1)
            for timestamp in (0, MAX_TIMESTAMP):
                assert await _list_offset(client, timestamp, READ_COMMITTED) == -1
                assert await _list_offset(client, timestamp, READ_UNCOMMITTED) == 1
            await end(broker, partition, P, committed=True)
            assert await _list_offset(client, LATEST, READ_COMMITTED) == 3

    run(scenario())


@pytest.mark.parametrize("version", [1, 2])
def test_markers_are_written_where_they_can_be_and_refused_elsewhere(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            first, second = await create_topic(broker, "t", 2)
            Coordinator(broker)
            client = Client(broker)
            produce(client, ("t", 0, batch_of(P, 0)), ("t", 1, batch_of(P, 0)))
            await client.produced()
            marker = WritableTxnMarker(
                producer_id=P.producer_id,
                producer_epoch=P.producer_epoch,
                transaction_result=False,
                topics=(
                    WritableTxnMarkerTopic(name="t", partition_indexes=(0, 1, 9)),
                    WritableTxnMarkerTopic(name="none", partition_indexes=(0,)),
                ),
                coordinator_epoch=4,
                transaction_version=2 if version > 1 else 0,
            )
            client.send(WriteTxnMarkersRequest(markers=(marker,)), version=version)
            (response,) = (await client.response(WriteTxnMarkersResponse)).markers
            codes = {
                (topic.name, partition.partition_index): partition.error_code
                for topic in response.topics
                for partition in topic.partitions
            }
            taken = ErrorCode.NONE if version == 1 else ErrorCode.INVALID_PRODUCER_EPOCH
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert codes == {("t", 0): taken, ("t", 1): taken, ("t", 9): unknown, ("none", 0): unknown}
            stable = 2 if version == 1 else 0
            assert [first.last_stable_offset, second.last_stable_offset] == [stable, stable]

    run(scenario())


def test_the_producers_of_a_partition_are_described_with_their_transactions(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            Coordinator(broker)
            client = Client(broker)
            await written(broker, client, P, 0)
            await end(broker, partition, P, committed=True)
            await written(broker, client, Q, 0)
            request = DescribeProducersRequest(topics=(TopicRequest(name="t", partition_indexes=(0,)),))
            client.send(request, version=0)
            response = await client.response(DescribeProducersResponse)
            found = {
                each.producer_id: (each.coordinator_epoch, each.current_txn_start_offset)
                for each in response.topics[0].partitions[0].active_producers
            }
            assert found == {P.producer_id: (0, -1), Q.producer_id: (-1, 2)}

    run(scenario())


def test_a_marker_that_is_not_committed_in_time_is_not_known_to_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path, request_timeout_ms="50") as broker:
            (partition,) = await create_topic(broker, "t", flush_messages="1")
            monkeypatch.setattr(broker.syncing, "ask", lambda partition: None)
            assert await end(broker, partition, P, committed=True) is ErrorCode.REQUEST_TIMED_OUT
            assert partition.log.log_end_offset == 1
            monkeypatch.undo()

    run(scenario())


def test_a_group_coordinator_takes_markers_in_when_they_are_in_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path, offsets_topic_num_partitions="2") as broker:
            await broker.groups.runtime.ensure_topic()
            await until(lambda: len(broker.groups.runtime.active_shards()) == 2)
            reported: list[tuple[int, ProducerIdAndEpoch, bool]] = []

            def marker_written(partition: int, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
                reported.append((partition, producer, committed))

            monkeypatch.setattr(broker.groups.runtime, "marker_written", marker_written)
            offsets = TopicPartition("__consumer_offsets", 1)
            assert await broker.markers.write(offsets, Marker(MarkerKind.FENCE, P, 0, 0)) is ErrorCode.NONE
            assert reported == [], "a fence ends nothing"
            following = P._replace(producer_epoch=P.producer_epoch + 1)
            code = await broker.markers.write(offsets, Marker(MarkerKind.COMMIT, following, 0, 2))
            assert code is ErrorCode.NONE
            assert reported == [(1, following, True)]

    run(scenario())
