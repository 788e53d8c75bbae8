"""aiokafka: asyncio. Each call runs on an event loop of its own, so nothing outlives it."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, for_code

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

T = TypeVar("T")


class AiokafkaDriver:
    name: ClassVar[str] = "aiokafka"
    cannot: ClassVar[Mapping[Ability, str]] = {
        Ability.MAX_TIMESTAMP: "its consumer has no such question and its admin client lists no offsets",
        Ability.EMPTY_RECORD: "its producer asks for a key or a value",
        Ability.RECORD_ERRORS: "it does not know the code INVALID_RECORD",
        Ability.NULL_HEADER: "its producer takes bytes only",
    }

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def create_topic(self, topic: str, *, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        async def call() -> None:
            # This client does not let the broker choose (KIP-464): one replica, also in a cluster.
            new = NewTopic(topic, partitions, 1, topic_configs=dict(config or {}))
            async with self._admin() as admin:
                response = await admin.create_topics([new])
            ((_, code, message),) = response.topic_errors
            _check(code, message)

        _run(call())

    def delete_topic(self, topic: str) -> None:
        async def call() -> None:
            async with self._admin() as admin:
                response = await admin.delete_topics([topic])
            ((_, code),) = response.topic_error_codes
            _check(code, "")

        _run(call())

    def create_partitions(self, topic: str, total: int) -> None:
        async def call() -> None:
            async with self._admin() as admin:
                await admin.create_partitions({topic: NewPartitions(total)})

        _run(call())

    def partition_count(self, topic: str) -> int:
        async def call() -> int:
            async with self._admin() as admin:
                described = [each for each in await admin.describe_topics() if each["topic"] == topic]
            return len(described[0]["partitions"]) if described else 0

        return _run(call())

    def produce(
        self,
        topic: str,
        records: Sequence[Record],
        *,
        acks: Acks = "all",
        codec: Codec = "none",
        idempotent: bool = False,
    ) -> list[int]:
        async def call() -> list[int]:
            producer = AIOKafkaProducer(
                bootstrap_servers=self._bootstrap,
                acks="all" if acks == "all" else int(acks),
                compression_type=None if codec == "none" else codec,
                enable_idempotence=idempotent,
                max_request_size=MAX_RECORD_BYTES,
                linger_ms=5,
            )
            async with producer:
                futures = [
                    await producer.send(
                        topic,
                        value=record.value,
                        key=record.key,
                        partition=record.partition,
                        timestamp_ms=record.timestamp_ms,
                        headers=list(record.headers),
                    )
                    for record in records
                ]
                sent = await asyncio.gather(*futures)
            return [-1 if acks == "0" else metadata.offset for metadata in sent]

        return _run(call())

    def consume(
        self, topic: str, *, start: Position, count: int, partition: int = 0, reset: Reset = "earliest"
    ) -> list[Received]:
        async def call() -> list[Received]:
            where = TopicPartition(topic, partition)
            async with self._consumer(reset) as consumer:
                consumer.assign([where])
                await _seek(consumer, where, start)
                return await _read(consumer, count)

        return _run(call())

    def list_offset(self, topic: str, position: Position, *, partition: int = 0) -> int:
        async def call() -> int:
            where = TopicPartition(topic, partition)
            async with self._consumer("none") as consumer:
                match position.kind:
                    case "earliest":
                        return int((await consumer.beginning_offsets([where]))[where])
                    case "latest":
                        return int((await consumer.end_offsets([where]))[where])
                    case _:
                        found = (await consumer.offsets_for_times({where: position.value}))[where]
                        return -1 if found is None else int(found.offset)

        return _run(call())

    def delete_records(self, topic: str, before_offset: int, *, partition: int = 0) -> int:
        async def call() -> int:
            where = TopicPartition(topic, partition)
            async with self._admin() as admin:
                return int((await admin.delete_records({where: RecordsToDelete(before_offset)}))[where])

        return _run(call())

    def describe_config(self, topic: str) -> dict[str, str | None]:
        async def call() -> dict[str, str | None]:
            async with self._admin() as admin:
                (response,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
            ((code, message, _, _, entries),) = response.resources
            _check(code, message)
            return {entry[0]: entry[1] for entry in entries}

        return _run(call())

    def alter_config(self, topic: str, config: Mapping[str, str]) -> None:
        async def call() -> None:
            resource = ConfigResource(ConfigResourceType.TOPIC, topic, dict(config))
            async with self._admin() as admin:
                (response,) = await admin.alter_configs([resource])
            ((code, message, _, _),) = response.resources
            _check(code, message)

        _run(call())

    def close(self) -> None:
        pass

    @asynccontextmanager
    async def _admin(self) -> AsyncIterator[Any]:
        admin = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
        await admin.start()
        try:
            yield admin
        finally:
            await admin.close()

    def _consumer(self, reset: Reset) -> Any:
        return AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset=reset,
            max_partition_fetch_bytes=MAX_RECORD_BYTES,
        )


async def _seek(consumer: Any, where: Any, start: Position) -> None:
    match start.kind:
        case "earliest":
            await consumer.seek_to_beginning(where)
        case "latest":
            await consumer.seek_to_end(where)
        case "timestamp":
            found = (await consumer.offsets_for_times({where: start.value}))[where]
            if found is None:
                await consumer.seek_to_end(where)
            else:
                consumer.seek(where, found.offset)
        case _:
            consumer.seek(where, start.value)


async def _read(consumer: Any, count: int) -> list[Received]:
    received: list[Received] = []
    try:
        async with asyncio.timeout(CALL_TIMEOUT_SECONDS):
            while len(received) < count:
                message = await consumer.getone()
                headers = tuple((name, value) for name, value in message.headers)
                received.append(Received(message.offset, message.timestamp, message.key, message.value, headers))
    except TimeoutError as error:
        raise NothingReceivedError(len(received), count) from error
    return received


def _run(call: Coroutine[Any, Any, T]) -> T:
    try:
        return asyncio.run(call)
    except KafkaError as error:
        code = int(getattr(error, "errno", -1))
        raise ClientError(error_name(code) if code > 0 else type(error).__name__, str(error)) from error


def _check(code: int, message: str | None) -> None:
    if code:
        raise for_code(code)(message)
