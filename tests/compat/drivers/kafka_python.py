"""kafka-python: pure Python, blocking."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, OffsetSpec
from kafka.errors import KafkaError

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

# What alter_configs() returns for a setting that was refused is a sentence.
_OUTCOME = re.compile(r"\[Error (\d+)\]")

_SPECS = {
    "earliest": OffsetSpec.EARLIEST,
    "latest": OffsetSpec.LATEST,
    "max_timestamp": OffsetSpec.MAX_TIMESTAMP,
}


class KafkaPythonDriver:
    name: ClassVar[str] = "kafka-python"
    cannot: ClassVar[Mapping[Ability, str]] = {
        Ability.EMPTY_RECORD: "its producer asks for a key or a value",
        Ability.NULL_HEADER: "its producer takes bytes only",
        Ability.CONFIG_ERRORS: "describe_configs() drops the error code and returns nothing",
    }

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap)

    def create_topic(self, topic: str, *, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        new = {"num_partitions": partitions, "replication_factor": -1, "configs": dict(config or {})}
        with _errors():
            self._admin.create_topics({topic: new})

    def delete_topic(self, topic: str) -> None:
        with _errors():
            self._admin.delete_topics([topic])

    def create_partitions(self, topic: str, total: int) -> None:
        with _errors():
            self._admin.create_partitions({topic: total})

    def partition_count(self, topic: str) -> int:
        with _errors():
            described = [each for each in self._admin.describe_topics() if each["name"] == topic]
        return len(described[0]["partitions"]) if described else 0

    def produce(
        self,
        topic: str,
        records: Sequence[Record],
        *,
        acks: Acks = "all",
        codec: Codec = "none",
        idempotent: bool = False,
    ) -> list[int]:
        producer = KafkaProducer(
            bootstrap_servers=self._bootstrap,
            acks="all" if acks == "all" else int(acks),
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            max_request_size=MAX_RECORD_BYTES,
            linger_ms=5,
        )
        try:
            with _errors():
                futures = [
                    producer.send(
                        topic,
                        value=record.value,
                        key=record.key,
                        headers=list(record.headers),
                        partition=record.partition,
                        timestamp_ms=record.timestamp_ms,
                    )
                    for record in records
                ]
                sent = [future.get(timeout=CALL_TIMEOUT_SECONDS) for future in futures]
        finally:
            producer.close()
        return [-1 if acks == "0" else metadata.offset for metadata in sent]

    def consume(
        self, topic: str, *, start: Position, count: int, partition: int = 0, reset: Reset = "earliest"
    ) -> list[Received]:
        consumer = KafkaConsumer(
            bootstrap_servers=self._bootstrap,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset=reset,
            max_partition_fetch_bytes=MAX_RECORD_BYTES,
        )
        try:
            with _errors():
                where = TopicPartition(topic, partition)
                consumer.assign([where])
                _seek(consumer, where, start)
                return _poll(consumer, where, count)
        finally:
            consumer.close(autocommit=False)

    def list_offset(self, topic: str, position: Position, *, partition: int = 0) -> int:
        where = TopicPartition(topic, partition)
        with _errors():
            found = self._admin.list_partition_offsets({where: _SPECS.get(position.kind, position.value)})
        return int(found[where].offset)

    def delete_records(self, topic: str, before_offset: int, *, partition: int = 0) -> int:
        where = TopicPartition(topic, partition)
        with _errors():
            return int(self._admin.delete_records({where: before_offset})[where]["low_watermark"])

    def describe_config(self, topic: str) -> dict[str, str | None]:
        with _errors():
            described = self._admin.describe_configs([_resource(topic)], config_filter="all")
        return {name: entry["value"] for name, entry in described["topic"][topic].items()}

    def alter_config(self, topic: str, config: Mapping[str, str]) -> None:
        with _errors():
            outcome = self._admin.alter_configs([_resource(topic, config)], raise_on_unknown=False)["topic"][topic]
        failed = _OUTCOME.match(outcome)
        if failed is not None:
            raise ClientError(error_name(int(failed[1])), outcome)

    def close(self) -> None:
        self._admin.close()


def _resource(topic: str, config: Mapping[str, str] | None = None) -> Any:
    return ConfigResource(ConfigResourceType.TOPIC, topic, None if config is None else dict(config))


def _seek(consumer: Any, where: Any, start: Position) -> None:
    match start.kind:
        case "earliest":
            consumer.seek_to_beginning(where)
        case "latest":
            consumer.seek_to_end(where)
        case "timestamp":
            found = consumer.offsets_for_times({where: start.value})[where]
            consumer.seek_to_end(where) if found is None else consumer.seek(where, found.offset)
        case _:
            consumer.seek(where, start.value)


def _poll(consumer: Any, where: Any, count: int) -> list[Received]:
    received: list[Received] = []
    deadline = time.monotonic() + CALL_TIMEOUT_SECONDS
    while len(received) < count:
        if time.monotonic() > deadline:
            raise NothingReceivedError(len(received), count)
        for message in consumer.poll(timeout_ms=200, max_records=count - len(received)).get(where, []):
            headers = tuple((name, value) for name, value in message.headers)
            received.append(Received(message.offset, message.timestamp, message.key, message.value, headers))
    return received


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except KafkaError as error:
        raise _client_error(error) from error


def _client_error(error: KafkaError) -> ClientError:
    code = int(getattr(error, "errno", -1))
    return ClientError(error_name(code) if code > 0 else type(error).__name__, str(error))
