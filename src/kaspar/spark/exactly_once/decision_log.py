"""The decision log: the topic `__kaspar_spark_decisions`, appended to and read by everyone who takes part.

A query's records are in one partition, by a hash of its name over a fixed number of partitions: adding partitions moves
nobody. Appends are acknowledged by all in-sync replicas and numbered by an idempotent producer, so that one whose
answer was lost is in the log once. What was read is kept, so that a look reads only what is new; and an append whose
offset is where reading ended needs no look at all.

A decision that is lost when half of its transactions are committed would publish that half twice. So the log is made
like the other internal topics: two in-sync replicas must have a record before it is acknowledged, where there are two.
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
from kaspar.spark.exactly_once.decisions import Decision, Judge, LogRecord, QueryState
from kaspar.spark.exactly_once.names import UNNAMED
from kaspar.spark.exactly_once.parties import LogLost

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
    "segment.bytes": str(_LARGEST_BATCH),  # brokers refuse a batch that is larger than a segment
    "segment.ms": str(10 * 60_000),  # every process that takes part reads it all once: let the cleaner have most of it
    "min.cleanable.dirty.ratio": "0.1",
    "max.message.bytes": str(_LARGEST_BATCH),
    "unclean.leader.election.enable": "false",
}
_FETCH_BYTES = 4 << 20

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Partition:
    judge: Judge = field(default_factory=Judge)
    position: int = 0
    """Up to where it was read."""
    sequence: int = 0
    """Of this process's next record."""


class DecisionLog:
    """Not for several threads at once."""

    def __init__(
        self, client: Client, *, topic: str = TOPIC, now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    ) -> None:
        self._client = client
        self._topic = topic
        self._now_ms = now_ms
        self._partitions: dict[int, _Partition] = {}
        self._producer: ProducerIdAndEpoch | None = None
        self._topic_id: UUID | None = None
        """Of the topic that was read. What another one of its name has is another log."""

    def state(self, query: str) -> QueryState:
        """The verdict as of the last look; a first look if there was none. It changes as more is read."""
        number = partition_of(query)
        if number not in self._partitions:
            return self.look(query)
        return self._partitions[number].judge.state(query)

    def look(self, query: str) -> QueryState:
        """The verdict of all that is in the log now."""
        number = partition_of(query)
        self._read(number)
        return self._partitions[number].judge.state(query)

    def queries(self) -> list[str]:
        """All that the log has a record of."""
        found = []
        for number in range(PARTITIONS):
            self._read(number)
            found += self._partitions[number].judge.queries()
        return sorted(found)

    def pending(self) -> list[Decision]:
        """The decisions of all queries that may not be carried out yet, of all that is in the log now."""
        found = []
        for number in range(PARTITIONS):
            self._read(number)
            found += self._partitions[number].judge.pending()
        return found

    def append(self, query: str, records: Sequence[LogRecord]) -> QueryState:
        """Append, all or nothing, and read up to there. If that fails, they may come to be in the log or not."""
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
            answer = self._client.produce(self._topic, number, bytes(batch), topic_id=self._topic_id)
        except TopicReplaced:
            self._forget()
            raise LogLost(_gone(self._topic, partition.position)) from None
        except BaseException:
            self._forget_producer()
            raise
        assert answer is not None, "acks=all is answered"
        partition.sequence += len(records)
        if answer.base_offset == partition.position:
            for key, value in records:
                partition.judge.read(key, value)
            partition.position += len(records)
        else:
            self._read(number)
        return partition.judge.state(query)

    def _forget_producer(self) -> None:
        """Whether its last batch was stored is not known: nothing may follow it under the same numbers."""
        self._producer = None
        for partition in self._partitions.values():
            partition.sequence = 0

    def _forget(self) -> None:
        """Nothing that was read counts any more."""
        self._partitions.clear()
        self._topic_id = None
        self._forget_producer()

    # --- reading ------------------------------------------------------------------------------------------------------

    def _open(self, number: int) -> _Partition:
        if number not in self._partitions:
            self._read(number)
        return self._partitions[number]

    def _read(self, number: int) -> None:
        """Up to the end of the log. What was acknowledged by all in-sync replicas is before it."""
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
                self._forget()
                raise LogLost(_gone(self._topic, partition.position)) from None
            except Refused as refused:
                if refused.code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    self._forget()
                    raise LogLost(_gone(self._topic, partition.position)) from None
                raise
            records = data.records or b""
            self._take(partition, records)
            if not records or partition.position >= data.high_watermark:
                self._partitions[number] = partition
                return

    def _take(self, partition: _Partition, records: bytes) -> None:
        for record in iter_records(records):
            if record.offset >= partition.position and record.key is not None:
                partition.judge.read(record.key, record.value)
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
        wanted = topic_to_make(self._topic, len(found.brokers))
        answer = self._client.request_controller(CreateTopicsRequest(topics=(wanted,)), CreateTopicsResponse).topics[0]
        if answer.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            code = ErrorCode(answer.error_code)
            raise Refused(code, f"making the topic {self._topic}: {answer.error_message or code.name}")
        if answer.error_code == ErrorCode.NONE and answer.topic_id != ZERO_UUID:
            self._topic_id = answer.topic_id  # otherwise the next look finds it


def topic_to_make(name: str, brokers: int) -> CreatableTopic:
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
            "it is made with the right settings where it is not there"
        )
    replicas = min(len(partition.replica_nodes) for partition in topic.partitions)
    if replicas < (wanted := min(_REPLICAS, brokers)):
        log.warning(
            f"The decision log {topic.name} has {replicas} replicas and should have {wanted}: it was made when fewer "
            "brokers were there. What was decided is lost with them. Move it to more brokers, and set its "
            f"min.insync.replicas to {_IN_SYNC_REPLICAS}."
        )


def _check_cleanup_policy(client: Client, topic: str) -> None:
    """With any other than compaction alone the log forgets what was decided, and a batch is published again."""
    asked = DescribeConfigsResource(
        resource_type=_TOPIC_RESOURCE, resource_name=topic, configuration_keys=("cleanup.policy",)
    )
    (found,) = client.request(DescribeConfigsRequest(resources=(asked,)), DescribeConfigsResponse).results
    if found.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        log.warning(f"The cleanup.policy of {topic} may not be read, so that it is {_POLICY} was not checked.")
        return
    if found.error_code != ErrorCode.NONE:
        code = ErrorCode(found.error_code)
        raise Refused(code, f"reading the cleanup.policy of {topic}: {found.error_message or code.name}")
    for setting in found.configs:
        if setting.name == "cleanup.policy" and setting.value != _POLICY:
            raise KasparError(
                f"the decision log {topic} has cleanup.policy={setting.value}, with which it forgets what was decided: "
                f"nothing is published until it is {_POLICY}"
            )


def _gone(topic: str, position: int) -> str:
    """What to do when the log does not begin at 0 any more, ends before what was read of it, or is another topic."""
    problem = f"the decision log {topic} has lost records or was made anew, so what was decided before is not known"
    if position:
        return f"{problem}. Nothing more is published. Start the query again: it says what to do then"
    return (
        f"{problem}. Nothing is published until the topic {topic} is deleted, which begins a new log. Queries that "
        "have published before stop then, and each says how to let it go on"
    )


def partition_of(query: str) -> int:
    """Jobs without a name have one in common."""
    name = UNNAMED if query.startswith(UNNAMED) else query
    return zlib.crc32(name.encode()) % PARTITIONS
