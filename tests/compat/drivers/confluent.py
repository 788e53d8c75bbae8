"""confluent-kafka: Python over librdkafka."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.compat.drivers.api import (
    CALL_TIMEOUT_SECONDS,
    MAX_RECORD_BYTES,
    Ability,
    Acks,
    ClientError,
    Codec,
    NothingReceivedError,
    Position,
    Received,
    Record,
    Reset,
    error_name,
)


class ConfluentDriver:
    name: ClassVar[str] = "confluent-kafka"
    cannot: ClassVar[Mapping[Ability, str]] = {}

    def __init__(self, bootstrap: str) -> None:
        self._base: dict[str, Any] = {"bootstrap.servers": bootstrap, "log_level": 2}
        self._admin = AdminClient(self._base)

    def create_topic(self, topic: str, *, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        new = NewTopic(topic, num_partitions=partitions, replication_factor=-1, config=dict(config or {}))
        self._done(lambda: self._admin.create_topics([new]))

    def delete_topic(self, topic: str) -> None:
        self._done(lambda: self._admin.delete_topics([topic]))

    def create_partitions(self, topic: str, total: int) -> None:
        self._done(lambda: self._admin.create_partitions([NewPartitions(topic, total)]))

    def partition_count(self, topic: str) -> int:
        described = self._admin.list_topics(timeout=CALL_TIMEOUT_SECONDS).topics.get(topic)
        return len(described.partitions) if described is not None and described.error is None else 0

    def produce(
        self,
        topic: str,
        records: Sequence[Record],
        *,
        acks: Acks = "all",
        codec: Codec = "none",
        idempotent: bool = False,
    ) -> list[int]:
        settings = {
            "acks": acks,
            "compression.type": codec,
            "enable.idempotence": idempotent,
            "message.max.bytes": MAX_RECORD_BYTES,
            "delivery.timeout.ms": int(CALL_TIMEOUT_SECONDS * 1000),
        }
        producer = Producer(self._base | settings)
        offsets: dict[int, int] = {}
        errors: list[KafkaError] = []

        def report(index: int) -> Callable[[KafkaError | None, Message], None]:
            def delivered(error: KafkaError | None, message: Message) -> None:
                if error is not None:
                    errors.append(error)
                else:
                    offset = message.offset()
                    offsets[index] = -1 if offset is None or acks == "0" else offset

            return delivered

        try:
            for index, record in enumerate(records):
                producer.produce(
                    topic,
                    value=record.value,
                    key=record.key,
                    partition=record.partition,
                    headers=list(record.headers),
                    timestamp=record.timestamp_ms or 0,
                    on_delivery=report(index),
                )
            producer.flush(CALL_TIMEOUT_SECONDS)
        except KafkaException as error:
            raise _client_error(error.args[0]) from error
        if errors:
            raise _client_error(errors[0])
        return [offsets[index] for index in range(len(records))]

    def consume(
        self, topic: str, *, start: Position, count: int, partition: int = 0, reset: Reset = "earliest"
    ) -> list[Received]:
        settings = {
            "group.id": "not-joined",  # librdkafka asks for one even when partitions are assigned by hand
            "enable.auto.commit": False,
            "auto.offset.reset": "error" if reset == "none" else reset,
            "fetch.message.max.bytes": MAX_RECORD_BYTES,
        }
        consumer = Consumer(self._base | settings)
        try:
            consumer.assign([self._located(consumer, topic, partition, start)])
            return _poll(consumer, count)
        finally:
            consumer.close()

    def _located(self, consumer: Consumer, topic: str, partition: int, start: Position) -> TopicPartition:
        match start.kind:
            case "earliest":
                return TopicPartition(topic, partition, OFFSET_BEGINNING)
            case "latest":
                return TopicPartition(topic, partition, OFFSET_END)
            case "timestamp":
                asked = [TopicPartition(topic, partition, start.value)]
                return consumer.offsets_for_times(asked, timeout=CALL_TIMEOUT_SECONDS)[0]
            case _:
                return TopicPartition(topic, partition, start.value)

    def list_offset(self, topic: str, position: Position, *, partition: int = 0) -> int:
        found = self._done(lambda: self._admin.list_offsets({TopicPartition(topic, partition): _spec(position)}))
        return int(found.offset)

    def delete_records(self, topic: str, before_offset: int, *, partition: int = 0) -> int:
        cut = TopicPartition(topic, partition, before_offset)
        return int(self._done(lambda: self._admin.delete_records([cut])).low_watermark)

    def describe_config(self, topic: str) -> dict[str, str | None]:
        entries = self._done(lambda: self._admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]))
        return {name: entry.value for name, entry in entries.items()}

    def alter_config(self, topic: str, config: Mapping[str, str]) -> None:
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in config.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        self._done(lambda: self._admin.incremental_alter_configs([resource]))

    def close(self) -> None:
        pass

    def _done(self, call: Callable[[], Mapping[Any, Any]]) -> Any:
        """The one result of an admin call for one thing."""
        try:
            (future,) = call().values()
            return future.result(CALL_TIMEOUT_SECONDS)
        except KafkaException as error:
            raise _client_error(error.args[0]) from error


def _spec(position: Position) -> OffsetSpec:
    makers: dict[str, Callable[[], OffsetSpec]] = {
        "earliest": OffsetSpec.earliest,
        "latest": OffsetSpec.latest,
        "max_timestamp": OffsetSpec.max_timestamp,
    }
    maker = makers.get(position.kind)
    return maker() if maker is not None else OffsetSpec.for_timestamp(position.value)


def _poll(consumer: Consumer, count: int) -> list[Received]:
    received: list[Received] = []
    deadline = time.monotonic() + CALL_TIMEOUT_SECONDS
    while len(received) < count:
        if time.monotonic() > deadline:
            raise NothingReceivedError(len(received), count)
        for message in consumer.consume(count - len(received), timeout=0.2):
            error = message.error()
            if error is not None:
                raise _client_error(error)
            received.append(_received(message))
    return received


def _received(message: Message) -> Received:
    offset = message.offset()
    assert offset is not None
    pairs = message.headers() or []
    assert isinstance(pairs, list)
    headers = tuple((name, _bytes(value)) for name, value in pairs)
    return Received(offset, message.timestamp()[1], _bytes(message.key()), _bytes(message.value()), headers)


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _client_error(error: KafkaError) -> ClientError:
    if error.code() == KafkaError._AUTO_OFFSET_RESET:
        return ClientError("OFFSET_OUT_OF_RANGE", error.str())  # librdkafka's word for it when no reset is allowed
    return ClientError(error_name(error.code()) if error.code() > 0 else error.name(), error.str())
