"""Pages of a topic, in any size and direction, show every record once and in order, whatever the log looks like."""

import struct
from collections.abc import Sequence
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ZERO_UUID
from kaspar.client.cluster import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, Client
from kaspar.console.messages.reading.batches import State
from kaspar.console.messages.reading.positions import AtTime, Cursor, Direction, End, Position
from kaspar.console.messages.reading.scanning import Budget, Query, Stopped, read_page
from kaspar.protocol.messages import fetch, list_offsets, metadata
from kaspar.records.builder import build_batch
from kaspar.records.codec import Codec
from kaspar.records.record import Record

EXAMPLES = settings(max_examples=50, deadline=None, database=None)
TOPIC = "topic"

Log = list[list[tuple[int, int, int]]]
"""Batches of records: gap before the record, time, size."""

LOGS = st.lists(
    st.lists(
        st.lists(
            st.tuples(st.sampled_from([0, 0, 0, 1, 5, 300]), st.integers(0, 50), st.sampled_from([1, 30, 3000])),
            min_size=1,
            max_size=6,
        ),
        max_size=8,
    ),
    min_size=1,
    max_size=4,
)


class FakeBroker:
    """Serves Metadata, ListOffsets and Fetch for logs with gaps, as a compacted partition has them. A response is cut
    off in the middle of a batch, and has at least one only for the first partition of a request."""

    def __init__(self, logs: Sequence[Log], start_gap: int, end_gap: int) -> None:
        self.records: list[list[tuple[int, int]]] = []
        self.batches: list[list[tuple[int, bytes]]] = []
        self.bounds: list[tuple[int, int]] = []
        for log in logs:
            offset = start_gap
            found: list[tuple[int, int]] = []
            batches: list[tuple[int, bytes]] = []
            time = 0
            for number, batch in enumerate(log):
                records = []
                for gap, later, size in batch:
                    offset += gap
                    time += later
                    records.append(Record(time, None, b"." * size, (), offset))
                    found.append((time, offset))
                    offset += 1
                codec = (Codec.NONE, Codec.GZIP)[number % 2]
                batches.append((offset - 1, bytes(build_batch(records, base_offset=records[0].offset, codec=codec))))
            self.records.append(found)
            self.batches.append(batches)
            self.bounds.append((start_gap, offset + end_gap))

    def refresh_metadata(self, topics: list[str]) -> metadata.MetadataResponse:
        partitions = tuple(
            metadata.MetadataResponsePartition(partition_index=number, leader_id=1, replica_nodes=(1,), isr_nodes=(1,))
            for number in range(len(self.batches))
        )
        return metadata.MetadataResponse(
            brokers=(metadata.MetadataResponseBroker(node_id=1, host="h", port=1),),
            controller_id=1,
            topics=(
                metadata.MetadataResponseTopic(
                    error_code=0, name=topics[0], topic_id=ZERO_UUID, is_internal=False, partitions=partitions
                ),
            ),
        )

    def request_broker(self, broker_id: int, message: Any, kind: type[Any]) -> Any:
        del broker_id, kind
        return self._fetch(message) if isinstance(message, fetch.FetchRequest) else self._list(message)

    def _list(self, message: list_offsets.ListOffsetsRequest) -> list_offsets.ListOffsetsResponse:
        (topic,) = message.topics
        partitions = tuple(
            list_offsets.ListOffsetsPartitionResponse(
                partition_index=each.partition_index,
                error_code=ErrorCode.NONE,
                timestamp=-1,
                offset=self._offset_at(each.partition_index, each.timestamp),
            )
            for each in topic.partitions
        )
        return list_offsets.ListOffsetsResponse(
            topics=(list_offsets.ListOffsetsTopicResponse(name=topic.name, partitions=partitions),)
        )

    def _offset_at(self, partition: int, timestamp: int) -> int:
        start, end = self.bounds[partition]
        if timestamp in (EARLIEST_TIMESTAMP, LATEST_TIMESTAMP):
            return start if timestamp == EARLIEST_TIMESTAMP else end
        return next((offset for time, offset in self.records[partition] if time >= timestamp), -1)

    def _fetch(self, message: fetch.FetchRequest) -> fetch.FetchResponse:
        (topic,) = message.topics
        found = []
        for number, each in enumerate(topic.partitions):
            most = 2_000  # a broker may send less than it is asked for
            batches = [batch for last, batch in self.batches[each.partition] if last >= each.fetch_offset]
            sent = b"".join(batches)
            first = len(batches[0]) if batches and number == 0 else 0
            found.append(
                fetch.PartitionData(
                    partition_index=each.partition,
                    error_code=0,
                    high_watermark=self.bounds[each.partition][1],
                    last_stable_offset=self.bounds[each.partition][1],
                    aborted_transactions=None,
                    records=sent[: max(first, most)],
                )
            )
        return fetch.FetchResponse(
            responses=(fetch.FetchableTopicResponse(topic=topic.topic, partitions=tuple(found)),)
        )


def pages(broker: FakeBroker, position: Position, direction: Direction, limit: int, scanned: int) -> list[list[Any]]:
    """The time, partition and offset of every record of every page, until the end."""
    found = []
    while True:
        query = Query(TOPIC, position, direction, Budget(limit, scanned=scanned))
        page = read_page(cast(Client, broker), query)
        assert len(page.records) <= limit
        found.append([(each.timestamp, each.where.partition, each.offset) for each in page.records])
        if page.stopped is Stopped.END:
            return found
        following = page.high if direction is Direction.FORWARD else page.low
        assert following != position, "a page gets somewhere"
        position = following


@EXAMPLES
@given(LOGS, st.integers(0, 400), st.integers(0, 400), st.integers(1, 20), st.integers(1, 20))
def test_pages_show_every_record_once_in_the_order_of_time(
    logs: list[Log], start_gap: int, end_gap: int, limit: int, scanned: int
) -> None:
    broker = FakeBroker(logs, start_gap, end_gap)
    everything = {
        (time, partition, offset) for partition, records in enumerate(broker.records) for time, offset in records
    }
    for position, direction in ((End.OLDEST, Direction.FORWARD), (End.NEWEST, Direction.BACKWARD)):
        found = [each for page in pages(broker, position, direction, limit, scanned) for each in page]
        assert len(found) == len(everything)
        assert set(found) == everything
        times = [time for time, _, _ in found]
        assert times == sorted(times, reverse=direction is Direction.BACKWARD)


@EXAMPLES
@given(LOGS, st.integers(0, 60), st.integers(1, 20))
def test_a_time_splits_the_topic(logs: list[Log], timestamp: int, limit: int) -> None:
    broker = FakeBroker(logs, 3, 3)
    behind = [each for page in pages(broker, AtTime(timestamp), Direction.FORWARD, limit, 1000) for each in page]
    before = [each for page in pages(broker, AtTime(timestamp), Direction.BACKWARD, limit, 1000) for each in page]
    assert len(behind) + len(before) == sum(len(records) for records in broker.records)
    assert all(time >= timestamp for time, _, _ in behind)
    assert all(time < timestamp for time, _, _ in before)


@EXAMPLES
@given(LOGS, st.integers(1, 6))
def test_a_page_turned_around_is_the_same_page(logs: list[Log], limit: int) -> None:
    broker = FakeBroker(logs, 0, 0)
    client = cast(Client, broker)
    forward = read_page(client, Query(TOPIC, End.OLDEST, Direction.FORWARD, Budget(limit)))
    position: Cursor = forward.high
    back = read_page(client, Query(TOPIC, position, Direction.BACKWARD, Budget(limit)))
    places = {(each.where.partition, each.offset) for each in forward.records}
    assert {(each.where.partition, each.offset) for each in back.records} == places


@EXAMPLES
@given(LOGS, st.data())
def test_a_damaged_batch_is_shown_as_such_and_hides_no_other(logs: list[Log], data: st.DataObject) -> None:
    broker = FakeBroker(logs, 0, 0)
    candidates = [(partition, number) for partition, log in enumerate(broker.batches) for number in range(len(log))]
    if not candidates:
        return
    partition, number = data.draw(st.sampled_from(candidates))
    last, batch = broker.batches[partition][number]
    (crc,) = struct.unpack_from(">I", batch, 17)
    broken = batch[:17] + struct.pack(">I", crc ^ 1) + batch[21:]
    broker.batches[partition][number] = (last, broken)
    page = read_page(cast(Client, broker), Query(TOPIC, End.OLDEST, Direction.FORWARD, Budget(1000)))
    damaged = [each for each in page.records if each.state is State.DAMAGED]
    assert [each.where.partition for each in damaged] == [partition]
    assert "CRC" in damaged[0].note
    intact = sum(len(records) for records in broker.records) - len(logs[partition][number])
    assert len(page.records) == intact + 1
