"""A client that says exactly what a test wants said: one request and its response, or bare bytes.

    with RawClient(broker.port) as client:
        client.create_topic("orders", configs={"flush.messages": "1"})
        written = client.produce("orders", [b"one", b"two"])
        assert client.read_values("orders") == [b"one", b"two"]

It has no retries and hides no error: the broker's response is what the test sees. Its messages are the broker's own,
which are proven equal to kio's elsewhere.
"""

import socket
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

from kaspar.base.ids import ZERO_UUID
from kaspar.protocol import codec
from kaspar.protocol.api import SERVED_VERSIONS, ApiKey, response_class
from kaspar.protocol.headers import frame, read_response_header, write_request_header
from kaspar.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kaspar.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from kaspar.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from kaspar.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kaspar.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kaspar.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kaspar.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kaspar.protocol.schema import Message
from kaspar.records import Codec, Record, build_batch, iter_headers, iter_records

NAMES_TOPICS = 12  # the last version of Produce and Fetch that says topics by name
LATEST = -1
EARLIEST = -2

M = TypeVar("M", bound=Message)


class Read(NamedTuple):
    """One partition's part of a fetch."""

    error_code: int
    high_watermark: int
    log_start_offset: int
    records: list[Record]


def request_frame(
    request: Message, version: int, *, correlation_id: int = 1, client_id: str | None = "raw-client"
) -> bytes:
    """A request as it goes over the wire, its length in front."""
    api_key = request.SCHEMA.api_key
    assert api_key is not None
    body = write_request_header(api_key, version, correlation_id, client_id)
    codec.write_into(body, request, version)
    return frame(body)


class RawClient:
    def __init__(self, port: int, host: str = "127.0.0.1", *, timeout: float = 30.0) -> None:
        self.socket = socket.create_connection((host, port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # Bytes

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self) -> bytes:
        """The next frame, without its length. ConnectionError where the broker hangs up instead."""
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            chunk = self.socket.recv(min(count - len(data), 1 << 20))
            if not chunk:
                raise ConnectionError(f"the broker closed the connection after {len(data)} of {count} bytes")
            data += chunk
        return bytes(data)

    def is_closed_by_broker(self) -> bool:
        """Wait until the broker hangs up; False if it sends something instead."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    # Requests

    def ask(self, request: Message, version: int | None = None) -> Message:
        """Send one request, by default at the newest version that is served, and wait for its response."""
        key = ApiKey(request.SCHEMA.api_key or 0)
        version = SERVED_VERSIONS[key].last if version is None else version
        self._correlation_id += 1
        self.send(request_frame(request, version, correlation_id=self._correlation_id))
        return self.response_to(key, version, self._correlation_id)

    def response_to(self, key: ApiKey, version: int, correlation_id: int) -> Message:
        frame = self.receive()
        found, position = read_response_header(key, version, frame)
        assert found == correlation_id, f"the response is to request {found}, not {correlation_id}"
        message, end = codec.read(response_class(key), version, frame, position)
        assert end == len(frame), "the response is longer than its message"
        return message

    def call(self, request: Message, expected: type[M], version: int | None = None) -> M:
        """`ask`, with the type of the response checked and known to the caller."""
        response = self.ask(request, version)
        assert isinstance(response, expected)
        return response

    # Topics

    def create_topic(self, name: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None) -> int:
        """The error code."""
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            assignments=(),
            configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()),
        )
        response = self.call(CreateTopicsRequest(topics=(topic,)), CreateTopicsResponse)
        return response.topics[0].error_code

    def delete_topic(self, name: str) -> int:
        """The error code."""
        request = DeleteTopicsRequest(topics=(DeleteTopicState(name=name, topic_id=ZERO_UUID),), timeout_ms=30_000)
        return self.call(request, DeleteTopicsResponse).responses[0].error_code

    def metadata(self, *topics: str) -> MetadataResponse:
        """Of the topics given, or of all."""
        named = tuple(MetadataRequestTopic(name=topic) for topic in topics) or None
        return self.call(MetadataRequest(topics=named, allow_auto_topic_creation=False), MetadataResponse)

    def topics(self) -> set[str]:
        return {topic.name for topic in self.metadata().topics if topic.name is not None}

    # Records

    def produce(
        self,
        topic: str,
        values: Sequence[bytes],
        *,
        partition: int = 0,
        acks: int = -1,
        codec: Codec = Codec.NONE,
        producer_id: int = -1,
        base_sequence: int = -1,
    ) -> PartitionProduceResponse:
        now_ms = time.time_ns() // 1_000_000
        batch = build_batch(
            [Record(now_ms, None, value) for value in values],
            codec=codec,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=base_sequence,
        )
        return self.produce_batch(topic, bytes(batch), partition=partition, acks=acks)

    def produce_batch(
        self, topic: str, batch: bytes | None, *, partition: int = 0, acks: int = -1, timeout_ms: int = 30_000
    ) -> PartitionProduceResponse:
        request = produce_request(topic, batch, partition=partition, acks=acks, timeout_ms=timeout_ms)
        response = self.call(request, ProduceResponse, NAMES_TOPICS)
        return response.responses[0].partition_responses[0]

    def new_producer_id(self) -> int:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        return self.call(request, InitProducerIdResponse, 4).producer_id

    def fetch(
        self, topic: str, offset: int, *, partition: int = 0, max_wait_ms: int = 0, max_bytes: int = 1 << 22
    ) -> Read:
        found = self.fetch_bytes(topic, offset, partition=partition, max_wait_ms=max_wait_ms, max_bytes=max_bytes)
        records = [record for record in _whole_records(found.records or b"") if record.offset >= offset]
        return Read(found.error_code, found.high_watermark, found.log_start_offset, records)

    def fetch_bytes(
        self, topic: str, offset: int, *, partition: int = 0, max_wait_ms: int = 0, max_bytes: int = 1 << 22
    ) -> PartitionData:
        """Batches as they are in the log: nothing is decoded."""
        request = fetch_request(topic, offset, partition=partition, max_wait_ms=max_wait_ms, max_bytes=max_bytes)
        response = self.call(request, FetchResponse, NAMES_TOPICS)
        assert response.error_code == 0, f"a fetch of {topic}-{partition} at {offset} gives error {response.error_code}"
        return response.responses[0].partitions[0]

    def read_all(self, topic: str, *, partition: int = 0, offset: int = 0) -> Iterator[Record]:
        """Every record from `offset` up to the high watermark. A batch that compaction has emptied is passed by."""
        while True:
            found = self.fetch_bytes(topic, offset, partition=partition)
            assert found.error_code == 0, f"a fetch of {topic}-{partition} at {offset} gives error {found.error_code}"
            data = _whole_batches(found.records or b"")
            yield from (record for record in iter_records(data) if record.offset >= offset)
            ends = [header.next_offset for _, header in iter_headers(data, 0, len(data))]
            if not ends:
                assert offset >= found.high_watermark, f"nothing came at {offset}, below {found.high_watermark}"
                return
            assert ends[-1] > offset, f"nothing new came at {offset}"
            offset = ends[-1]

    def read_values(self, topic: str, *, partition: int = 0, offset: int = 0) -> list[bytes | None]:
        return [record.value for record in self.read_all(topic, partition=partition, offset=offset)]

    def offset_at(self, topic: str, timestamp: int = LATEST, *, partition: int = 0) -> tuple[int, int]:
        """The error code, and the offset that ListOffsets returns."""
        wanted = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=(wanted,)),))
        found = self.call(request, ListOffsetsResponse).topics[0].partitions[0]
        return found.error_code, found.offset


def produce_request(
    topic: str, batch: bytes | None, *, partition: int = 0, acks: int = -1, timeout_ms: int = 30_000
) -> ProduceRequest:
    data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=partition, records=batch),))
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=(data,))


def fetch_request(
    topic: str, offset: int, *, partition: int = 0, max_wait_ms: int = 0, max_bytes: int = 1 << 22
) -> FetchRequest:
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        topics=(FetchTopic(topic=topic, partitions=(wanted,)),),
    )


def _whole_records(data: bytes) -> Iterator[Record]:
    return iter_records(_whole_batches(data))


def _whole_batches(data: bytes) -> bytes:
    """Without a batch that a limit cut off: it comes again with the next fetch."""
    end = 0
    while end + 12 <= len(data):
        (length,) = struct.unpack_from(">i", data, end + 8)
        if end + 12 + length > len(data):
            break
        end += 12 + length
    return data[:end]
