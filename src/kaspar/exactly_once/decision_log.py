"""The decision log: the topic `__kaspar_spark_decisions`, read and written by every participant.

All records of a query are in one partition, chosen by a hash of its name over a fixed number of partitions, so that
adding partitions moves no query. Appends use acks=all and an idempotent producer, so an append whose response was lost
is in the log only once. The replayed state is kept, so reading to the end fetches only new records, and an append at
the offset where reading ended needs no fetch at all.

If a decision were lost after half of its transactions were committed, that half would be published twice. So the log is
created like the other internal topics: with min.insync.replicas=2 if there are two brokers.
"""

import logging
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.base.ids import ZERO_UUID, ProducerIdAndEpoch
from kaspar.client.cluster import Client, TopicReplaced
from kaspar.client.transactions import init_producer_id
from kaspar.exactly_once.decisions import BatchDecision, LogRecord, QueryState, QueryStates
from kaspar.exactly_once.errors import LogLost
from kaspar.exactly_once.names import UNNAMED
from kaspar.protocol.messages import metadata
from kaspar.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kaspar.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kaspar.records import Record, build_batch, iter_headers, iter_records

TOPIC = "__kaspar_spark_decisions"
PARTITIONS = 8
_REPLICAS = 3
_IN_SYNC_REPLICAS = 2
_LARGEST_BATCH = 16 << 20  # a decision names every task of its batch
_POLICY = "compact"
_TOPIC_RESOURCE = 2
_SETTINGS = {
    "cleanup.policy": _POLICY,
    "compression.type": "producer",
    "segment.bytes": str(_LARGEST_BATCH),  # brokers reject a batch that is larger than a segment
    "segment.ms": str(10 * 60_000),  # every participant reads the whole log once, so most of it should be cleanable
    "min.cleanable.dirty.ratio": "0.1",
    "max.message.bytes": str(_LARGEST_BATCH),
    "unclean.leader.election.enable": "false",
}
_FETCH_BYTES = 4 << 20

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Partition:
    queries: QueryStates = field(default_factory=QueryStates)
    position: int = 0
    """The next offset to read."""
    sequence: int = 0
    """The sequence number of this process's next record."""


class DecisionLog:
    """Not thread-safe."""

    def __init__(
        self, client: Client, *, topic: str = TOPIC, now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    ) -> None:
        self._client = client
        self._topic = topic
        self._now_ms = now_ms
        self._partitions: dict[int, _Partition] = {}
        self._producer: ProducerIdAndEpoch | None = None
        self._topic_id: UUID | None = None
        """The id of the topic that was read. A topic with the same name and another id is another log."""

    def state(self, query: str) -> QueryState:
        """The state as of the last read; reads the log if it was never read. Later reads update the returned state."""
        number = partition_of(query)
        if number not in self._partitions:
            return self.read_to_end(query)
        return self._partitions[number].queries.state(query)

    def read_to_end(self, query: str) -> QueryState:
        """Read to the end of the log, and return the state."""
        number = partition_of(query)
        self._read(number)
        return self._partitions[number].queries.state(query)

    def queries(self) -> list[str]:
        """Every query that has a record in the log."""
        found = []
        for number in range(PARTITIONS):
            self._read(number)
            found += self._partitions[number].queries.queries()
        return sorted(found)

    def pending(self) -> list[BatchDecision]:
        """Read to the end of the log, and return the pending decisions of all queries."""
        found = []
        for number in range(PARTITIONS):
            self._read(number)
            found += self._partitions[number].queries.pending()
        return found

    def append(self, query: str, records: Sequence[LogRecord]) -> QueryState:
        """Append all records or none, and read up to them. If this raises, they may still end up in the log."""
        number = partition_of(query)
        partition = self._open(number)
        if self._producer is None:
            self._producer = init_producer_id(self._client, None).producer
        now_ms = self._now_ms()
        batch = build_batch(
            [Record(now_ms, key, value) for key, value in records],
            producer_id=self._producer.producer_id,
            producer_epoch=self._producer.producer_epoch,
            base_sequence=partition.sequence,
        )
        try:
            produced = self._client.produce(self._topic, number, bytes(batch), topic_id=self._topic_id)
        except TopicReplaced:
            self._reset()
            raise LogLost(_log_lost(self._topic, partition.position)) from None
        except BaseException:
            self._reset_producer()
            raise
        assert produced is not None, "acks=all has a response"
        partition.sequence += len(records)
        if produced.base_offset == partition.position:
            for key, value in records:
                partition.queries.replay(key, value)
            partition.position += len(records)
        else:
            self._read(number)
        return partition.queries.state(query)

    def _reset_producer(self) -> None:
        """Use another producer id: the last batch may be stored, so its sequence numbers must not be reused."""
        self._producer = None
        for partition in self._partitions.values():
            partition.sequence = 0

    def _reset(self) -> None:
        """Discard everything that was read."""
        self._partitions.clear()
        self._topic_id = None
        self._reset_producer()

    # --- reading ------------------------------------------------------------------------------------------------------

    def _open(self, number: int) -> _Partition:
        if number not in self._partitions:
            self._read(number)
        return self._partitions[number]

    def _read(self, number: int) -> None:
        """Read up to the high watermark. Every acknowledged record is below it."""
        partition = self._partitions.get(number)
        if self._topic_id is None:
            self._ensure_topic()
        if partition is None:
            partition = _Partition()
        while True:
            try:
                data = self._client.fetch(
                    self._topic,
                    number,
                    partition.position,
                    max_bytes=_FETCH_BYTES,
                    min_bytes=0,
                    max_wait_ms=0,
                    topic_id=self._topic_id,
                )
            except TopicReplaced:
                self._reset()
                raise LogLost(_log_lost(self._topic, partition.position)) from None
            except Refused as refused:
                if refused.code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    self._reset()
                    raise LogLost(_log_lost(self._topic, partition.position)) from None
                raise
            records = data.records or b""
            self._replay(partition, records)
            if not records or partition.position >= data.high_watermark:
                self._partitions[number] = partition
                return

    def _replay(self, partition: _Partition, records: bytes) -> None:
        for record in iter_records(records):
            if record.offset >= partition.position and record.key is not None:
                partition.queries.replay(record.key, record.value)
        for _, header in iter_headers(records, 0, len(records)):
            partition.position = max(partition.position, header.last_offset + 1)

    def _ensure_topic(self) -> None:
        found = self._client.refresh_metadata([self._topic])
        for topic in found.topics:
            if topic.error_code == ErrorCode.NONE:
                _check(topic, len(found.brokers))
                _check_cleanup_policy(self._client, self._topic)
                self._topic_id = topic.topic_id if topic.topic_id != ZERO_UUID else None
                return
        wanted = creatable_topic(self._topic, len(found.brokers))
        created = self._client.request_controller(CreateTopicsRequest(topics=(wanted,)), CreateTopicsResponse).topics[0]
        if created.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            code = ErrorCode(created.error_code)
            raise Refused(code, f"creating the topic {self._topic}: {created.error_message or code.name}")
        if created.error_code == ErrorCode.NONE and created.topic_id != ZERO_UUID:
            self._topic_id = created.topic_id  # otherwise the next read looks it up


def creatable_topic(name: str, brokers: int) -> CreatableTopic:
    replicas = min(_REPLICAS, brokers)
    settings = {**_SETTINGS, "min.insync.replicas": str(min(_IN_SYNC_REPLICAS, replicas))}
    return CreatableTopic(
        name=name,
        num_partitions=PARTITIONS,
        replication_factor=replicas,
        assignments=(),
        configs=tuple(CreatableTopicConfig(name=setting, value=value) for setting, value in settings.items()),
    )


def _check(topic: metadata.MetadataResponseTopic, brokers: int) -> None:
    if len(topic.partitions) < PARTITIONS:
        raise KasparError(
            f"the topic {topic.name} has {len(topic.partitions)} partitions and needs {PARTITIONS}: "
            "a missing topic is created with the right settings"
        )
    replicas = min(len(partition.replica_nodes) for partition in topic.partitions)
    if replicas < (wanted := min(_REPLICAS, brokers)):
        log.warning(
            f"The decision log {topic.name} has {replicas} replicas and should have {wanted}: it was created when "
            "there were fewer brokers. If they are lost, so are the decisions. Reassign it to more brokers, and set "
            f"its min.insync.replicas to {_IN_SYNC_REPLICAS}."
        )


def _check_cleanup_policy(client: Client, topic: str) -> None:
    """Raises KasparError unless the policy is compact: any other loses decisions, so that a batch might be published
    again."""
    asked = DescribeConfigsResource(
        resource_type=_TOPIC_RESOURCE, resource_name=topic, configuration_keys=("cleanup.policy",)
    )
    (found,) = client.request(DescribeConfigsRequest(resources=(asked,)), DescribeConfigsResponse).results
    if found.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        log.warning(f"Not authorized to read the cleanup.policy of {topic}, so it was not checked to be {_POLICY}.")
        return
    if found.error_code != ErrorCode.NONE:
        code = ErrorCode(found.error_code)
        raise Refused(code, f"reading the cleanup.policy of {topic}: {found.error_message or code.name}")
    for setting in found.configs:
        if setting.name == "cleanup.policy" and setting.value != _POLICY:
            raise KasparError(
                f"the decision log {topic} has cleanup.policy={setting.value}, which deletes decisions: nothing is "
                f"published until it is {_POLICY}"
            )


def _log_lost(topic: str, position: int) -> str:
    """The error for a log that no longer starts at 0, ends before the position that was read, or is another topic."""
    problem = f"the decision log {topic} has lost records or was recreated, so earlier decisions are unknown"
    if position:
        return f"{problem}. Nothing more is published. Restart the query: its error explains what to do"
    return (
        f"{problem}. Nothing is published until the topic {topic} is deleted, which starts a new log. Queries that "
        "have published before then stop, each with an error that explains how to continue"
    )


def partition_of(query: str) -> int:
    """The partition with the records of a query. All unnamed jobs share one partition."""
    name = UNNAMED if query.startswith(UNNAMED) else query
    return zlib.crc32(name.encode()) % PARTITIONS
