"""A producer of whole record batches, which are pipelined, in order, and stored once even if responses are lost.

send() returns as soon as the batches fit into `buffer.memory`; flush() waits until all are stored. client/delivery.py
decides when to send which batch, and handles responses; this module has the sockets. There is no thread: responses are
read whenever the caller sends or flushes, and wait in the kernel until then.
"""

import select
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from types import TracebackType
from typing import NamedTuple, Self
from uuid import UUID

from kaspar.base.error_codes import RETRIABLE
from kaspar.base.errors import ErrorCode, MalformedBytes, Refused, invariant
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.client.blocking import Connection
from kaspar.client.cluster import Client
from kaspar.client.core import API_VERSIONS_REQUEST
from kaspar.client.delivery import Delivery, OnStored, PendingBatch
from kaspar.client.delivery_terms import DeliveryTerms, TopicPartitions
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.messages import metadata
from kaspar.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kaspar.protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from kaspar.protocol.produce import request_body
from kaspar.protocol.shapes import Topic

_FIRST_VERSION_WITH_TOPIC_ID = 13
_LAST_VERSION_BEFORE_TRANSACTIONS_V2 = 11  # in newer versions the leader adds the partition to the transaction
_METADATA_MAX_AGE_MS = 300_000
_TOPIC_RESOURCE = 2
_UNKNOWN_TOPIC_TIMEOUT_MS = 3_000  # after this time all brokers know a topic that was just created
_LONGEST_WAIT_MS = 500

BeforeFirst = Callable[[Sequence[TopicPartition]], None]


class _Request(NamedTuple):
    batches: list[PendingBatch]
    deadline_ms: int


class _Link:
    """A connection to a broker, and its requests in flight."""

    def __init__(self, connection: Connection, version: int) -> None:
        self.connection = connection
        self.version = version
        self.open: deque[_Request] = deque()

    def fileno(self) -> int:
        return self.connection.fileno()


class _TopicView(NamedTuple):
    topic_id: UUID
    partitions: TopicPartitions
    seen_ms: int


class RawProducer:
    """A producer of record batches, not thread-safe. It must be closed after any error."""

    def __init__(
        self,
        client: Client,
        *,
        producer: ProducerIdAndEpoch | None,
        terms: DeliveryTerms | None = None,
        transactional_id: str | None = None,
        before_first: BeforeFirst | None = None,
        on_stored: OnStored | None = None,
        now_ms: Callable[[], int] = lambda: int(time.monotonic() * 1000),
    ) -> None:
        """`client` is used for metadata. Without `producer` batches may be stored twice if a response is lost.

        `before_first` is for transactions before v2: it is called with partitions before their first batches are sent,
        to add them to the transaction, and Produce is sent in a version that requires this. In transactions v2 leaders
        add the partitions.
        """
        self.terms = terms or DeliveryTerms()
        self._client = client
        self._transactional_id = transactional_id
        self._before_first = before_first
        self._on_stored = on_stored
        self._now_ms = now_ms
        self._delivery = self._delivery_of(producer)
        self._links: dict[int, _Link] = {}
        self._addresses: dict[int, tuple[str, int]] = {}
        self._topics: dict[str, _TopicView] = {}
        self._leaders: dict[TopicPartition, int] = {}
        self._no_metadata_before_ms = 0

    # --- for callers --------------------------------------------------------------------------------------------------

    def partitions_of(self, topic: str, at_least: int = 1) -> TopicPartitions:
        """The topic's partitions. The metadata is refreshed if it is old or has fewer than `at_least` partitions.
        Raises Refused if the topic does not exist and is not created automatically, after `max.block.ms` at the latest.
        """
        started_ms = self._now_ms()
        failures = 0
        view = self._topics.get(topic)
        while view is None or view.seen_ms < started_ms - _METADATA_MAX_AGE_MS or view.partitions.count < at_least:
            try:
                problem = self._refresh_metadata([topic]).get(topic, ErrorCode.NONE)
                failure: Exception = Refused(problem, _no_topic(topic, problem))
            except (OSError, MalformedBytes) as error:
                problem, failure = ErrorCode.NETWORK_EXCEPTION, error
            if problem is ErrorCode.NONE:
                return self._topics[topic].partitions
            limit_ms = self.terms.max_block_ms
            if problem is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                limit_ms = min(limit_ms, _UNKNOWN_TOPIC_TIMEOUT_MS)
            if problem not in RETRIABLE or self._now_ms() - started_ms >= limit_ms:
                raise failure
            failures += 1
            time.sleep(self.terms.backoff_ms(failures) / 1000)
        return view.partitions

    def send(self, batches: Iterable[tuple[TopicPartition, memoryview]]) -> None:
        """Send batches without identity (records/identity.py). Their memory belongs to the producer until they are
        stored. Waits while all batches exceed `buffer.memory`. Raises Refused, also for earlier batches."""
        first = [partition for partition, batch in batches if self._delivery.add(partition, batch)]
        if first:
            for partition in first:
                self._delivery.set_leader(partition, self._leaders.get(partition))
            if self._before_first is not None:
                self._before_first(first)
        self._step(wait=False)
        while self._delivery.held_bytes > self.terms.buffer_memory:
            self._step(wait=True)

    def poll(self, timeout_s: float) -> None:
        """Send what can be sent, and wait at most this long for responses. For callers that send infrequently."""
        self._step(wait=False)
        self._receive(min(timeout_s * 1000, self._wait_ms()))

    def flush(self) -> None:
        """Wait until all batches are stored."""
        while not self._delivery.is_empty:
            self._step(wait=True)
        if self.terms.acks == 0:
            self._wait_until_received()

    def _wait_until_received(self) -> None:
        """Wait until brokers have read all requests sent with acks=0: unread ones are lost when the connection is
        closed. The response to a later request shows that the earlier ones have been read.
        """
        for leader, link in list(self._links.items()):
            try:
                link.connection.request(API_VERSIONS_REQUEST)
            except (OSError, MalformedBytes):
                self._disconnect(leader)

    def take_end_offsets(self) -> dict[TopicPartition, int]:
        """The offset after the last record that was stored in each partition since the last call, or since renew();
        NO_OFFSET if the broker did not report it (acks=0, or a duplicate whose offset it no longer knows)."""
        return self._delivery.take_end_offsets()

    def renew(
        self,
        producer: ProducerIdAndEpoch | None,
        *,
        transactional_id: str | None = None,
        before_first: BeforeFirst | None = None,
    ) -> None:
        """Continue as another producer, in another transaction. All batches must be stored. Keeps the connections."""
        invariant(self._delivery.is_empty, "batches of the previous producer are not stored yet")
        invariant((before_first is None) == (self._before_first is None), "the transaction version cannot change")
        self._transactional_id = transactional_id
        self._before_first = before_first
        self._delivery = self._delivery_of(producer)

    def _delivery_of(self, producer: ProducerIdAndEpoch | None) -> Delivery:
        is_transactional = self._transactional_id is not None
        return Delivery(producer, self.terms, transactional=is_transactional, on_stored=self._on_stored)

    def close(self) -> None:
        """Close the connections. Batches in flight may or may not be stored. The client is not closed."""
        while self._links:
            self._links.popitem()[1].connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # --- one step: send, receive --------------------------------------------------------------------------------------

    def _step(self, *, wait: bool) -> None:
        self._receive(0)
        self._find_leaders()
        self._send_ready()
        if wait and not self._delivery.is_empty:
            self._receive(self._wait_ms())

    def _wait_ms(self) -> int:
        now_ms = self._now_ms()
        events = [request.deadline_ms for link in self._links.values() for request in link.open]
        if (next_event_ms := self._delivery.next_event_ms()) is not None and next_event_ms > now_ms:
            events.append(next_event_ms)
        if self._delivery.without_leader():
            events.append(self._no_metadata_before_ms)
        return max(1, min(events, default=now_ms + _LONGEST_WAIT_MS) - now_ms)

    def _send_ready(self) -> None:
        now_ms = self._now_ms()
        for leader in self._delivery.leaders_with_work(now_ms):
            link = self._link_to(leader, now_ms)
            while link is not None and len(link.open) < self.terms.max_in_flight:
                batches = self._delivery.next_request(leader, now_ms)
                if not batches:
                    break
                if not self._send_request(leader, link, batches, now_ms):
                    break

    def _link_to(self, leader: int, now_ms: int) -> _Link | None:
        link = self._links.get(leader)
        if link is None:
            timeout_s = self.terms.request_timeout_ms / 1000
            try:
                connection = self._client.connect_at(self._addresses[leader], timeout_s=timeout_s)
            except (OSError, MalformedBytes):
                self._delivery.unreachable(leader, now_ms)
                return None
            version = connection.core.version_of(ApiKey.PRODUCE)
            if self._before_first is not None:
                version = min(version, _LAST_VERSION_BEFORE_TRANSACTIONS_V2)
            link = self._links[leader] = _Link(connection, version)
        return link

    def _send_request(self, leader: int, link: _Link, batches: list[PendingBatch], now_ms: int) -> bool:
        by_topic = groupby(sorted(batches, key=_topic_of), key=_topic_of)
        topics: list[tuple[Topic, list[tuple[int, memoryview]]]] = [
            (
                self._topics[topic].topic_id if link.version >= _FIRST_VERSION_WITH_TOPIC_ID else topic,
                [(batch.partition.partition, batch.data) for batch in group],
            )
            for topic, group in by_topic
        ]
        acks = self.terms.acks
        body = request_body(link.version, self._transactional_id, acks, self.terms.request_timeout_ms, topics)
        link.open.append(_Request(batches, now_ms + self.terms.request_timeout_ms))
        try:
            link.connection.send_pieces(ApiKey.PRODUCE, link.version, body, has_response=acks != 0)
        except OSError:
            self._disconnect(leader)
            return False
        if acks == 0:
            for batch in link.open.pop().batches:
                self._delivery.stored(batch)
        return True

    # --- responses ----------------------------------------------------------------------------------------------------

    def _receive(self, wait_ms: float) -> None:
        """Read the responses that have arrived, or arrive within `wait_ms`. Requests past their timeout are lost."""
        waiting = {leader: link for leader, link in self._links.items() if link.open}
        if waiting:
            readable = [link for link in waiting.values() if link.connection.has_buffered]
            if not readable:
                readable, _, _ = select.select(waiting.values(), (), (), wait_ms / 1000)
            for leader, link in waiting.items():
                if link in readable:
                    self._receive_from(leader, link)
                elif link.open[0].deadline_ms <= self._now_ms():
                    self._disconnect(leader)
        elif wait_ms:
            time.sleep(wait_ms / 1000)

    def _receive_from(self, leader: int, link: _Link) -> None:
        try:
            response = link.connection.receive().message
        except (OSError, MalformedBytes):
            self._disconnect(leader)
            return
        assert isinstance(response, ProduceResponse)
        self._apply(link, response)

    def _apply(self, link: _Link, response: ProduceResponse) -> None:
        batches = link.open.popleft().batches
        by_id = link.version >= _FIRST_VERSION_WITH_TOPIC_ID
        results: dict[tuple[Topic, int], PartitionProduceResponse] = {
            (topic.topic_id if by_id else topic.name, one.index): one
            for topic in response.responses
            for one in topic.partition_responses
        }
        now_ms = self._now_ms()
        for batch in batches:
            topic, index = batch.partition
            found = results.get((self._topics[topic].topic_id if by_id else topic, index))
            if found is None:  # the topic was recreated since, and has another id
                self._delivery.refused(batch, ErrorCode.UNKNOWN_TOPIC_ID, None, now_ms)
            elif found.error_code == ErrorCode.NONE:
                self._delivery.stored(batch, found.base_offset)
            else:
                self._refused(batch, found, now_ms)

    def _refused(self, batch: PendingBatch, found: PartitionProduceResponse, now_ms: int) -> None:
        code = ErrorCode(found.error_code)
        try:
            self._delivery.refused(batch, code, found.error_message, now_ms, base_offset=found.base_offset)
        except Refused as refused:
            if code is not ErrorCode.MESSAGE_TOO_LARGE:
                raise
            limit = self._max_message_bytes(batch.partition.topic)
            raise Refused(code, f"{refused.message}; it is {limit} bytes") from refused

    def _max_message_bytes(self, topic: str) -> str:
        asked = DescribeConfigsResource(
            resource_type=_TOPIC_RESOURCE, resource_name=topic, configuration_keys=("max.message.bytes",)
        )
        try:
            response = self._client.request(DescribeConfigsRequest(resources=(asked,)), DescribeConfigsResponse)
        except OSError:
            return "unknown"
        return next((each.value for result in response.results for each in result.configs if each.value), "unknown")

    def _disconnect(self, leader: int) -> None:
        link = self._links.pop(leader)
        link.connection.close()
        self._delivery.lost((batch for request in link.open for batch in request.batches), self._now_ms())

    # --- leaders ------------------------------------------------------------------------------------------------------

    def _find_leaders(self) -> None:
        partitions = self._delivery.without_leader()
        now_ms = self._now_ms()
        if not partitions or now_ms < self._no_metadata_before_ms:
            return
        problems: dict[str, ErrorCode] = {}
        try:
            problems = self._refresh_metadata(sorted({partition.topic for partition in partitions}))
        except (OSError, MalformedBytes):
            problems = {partition.topic: ErrorCode.NETWORK_EXCEPTION for partition in partitions}
        now_ms = self._now_ms()
        for partition in self._delivery.without_leader():
            problem = problems.get(partition.topic, ErrorCode.LEADER_NOT_AVAILABLE)
            if problem not in RETRIABLE:
                raise Refused(problem, _no_topic(partition.topic, problem))
            self._delivery.leaderless(partition, problem, now_ms)
            self._no_metadata_before_ms = now_ms + self.terms.retry_backoff_ms

    def _refresh_metadata(self, topics: list[str]) -> dict[str, ErrorCode]:
        """Refresh the metadata of these topics. Returns the error codes of topics with errors."""
        wanted = tuple(metadata.MetadataRequestTopic(name=name) for name in topics)
        response = self._client.request(
            metadata.MetadataRequest(topics=wanted, allow_auto_topic_creation=True), metadata.MetadataResponse
        )
        self._addresses = {broker.node_id: (broker.host, broker.port) for broker in response.brokers}
        self._forget_departed_brokers()
        problems: dict[str, ErrorCode] = {}
        for topic in response.topics:
            assert topic.name is not None, "topics were asked for by name"
            if topic.error_code != ErrorCode.NONE:
                problems[topic.name] = ErrorCode(topic.error_code)
                continue
            led = {one.partition_index: one.leader_id for one in topic.partitions if one.leader_id in self._addresses}
            for one in topic.partitions:
                partition = TopicPartition(topic.name, one.partition_index)
                self._leaders.pop(partition, None)
                if one.partition_index in led:
                    self._leaders[partition] = one.leader_id
                self._delivery.set_leader(partition, self._leaders.get(partition))
            view = TopicPartitions(len(topic.partitions), tuple(sorted(led)))
            self._topics[topic.name] = _TopicView(topic.topic_id, view, self._now_ms())
        return problems

    def _forget_departed_brokers(self) -> None:
        """Forget leaders that have left the cluster, including those of topics that this metadata did not cover."""
        for partition, leader in list(self._leaders.items()):
            if leader not in self._addresses:
                del self._leaders[partition]
                self._delivery.set_leader(partition, None)


def _topic_of(batch: PendingBatch) -> str:
    return batch.partition.topic


def _no_topic(topic: str, code: ErrorCode) -> str:
    match code:
        case ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return f"Topic {topic} does not exist, and the broker does not create topics automatically"
        case ErrorCode.INVALID_TOPIC_EXCEPTION:
            return f"{topic!r} is not a valid topic name"
        case _:
            return f"No metadata for topic {topic}: {code.name}"
