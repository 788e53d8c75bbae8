"""confluent-kafka: Python over librdkafka."""

from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from tests.compat.clients.api import (
    CommittedOffset,
    ConsumerOptions,
    Partition,
)
from tests.compat.clients.python.sessions import GroupConsumer, Groups, Library, Row, TransactionalProducer
from tests.compat.drivers.api import CALL_TIMEOUT_SECONDS, error_name
from tests.compat.drivers.kcat import named_error

# librdkafka has words of its own for some codes of the broker.
_NAMES = {
    KafkaError._FENCED: "PRODUCER_FENCED",
    KafkaError._AUTO_OFFSET_RESET: "NO_OFFSET",
}


class ConfluentConsumer(GroupConsumer):
    def __init__(self, base: dict[str, Any], options: ConsumerOptions) -> None:
        self._fatal: KafkaError | None = None
        self.consumer = Consumer(base | _settings(options) | {"error_cb": self._on_error})
        topics = [options.pattern] if options.pattern is not None else list(options.topics)
        self.consumer.subscribe(topics, on_assign=self._on_assign)

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self._fatal = error

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.rebalances += 1

    def poll(self) -> list[Row]:
        rows = []
        for message in self.consumer.consume(500, timeout=0.1):
            error = message.error()
            if error is not None:
                raise KafkaException(error)
            topic, partition, offset, value = message.topic(), message.partition(), message.offset(), message.value()
            assert topic is not None
            assert partition is not None
            assert offset is not None
            rows.append((topic, partition, offset, bytes(value or b"").decode()))
        if self._fatal is not None:
            raise KafkaException(self._fatal)
        return rows

    def assignment(self) -> set[Partition]:
        return {(each.topic, each.partition) for each in self.consumer.assignment()}

    def commit(self, offsets: Sequence[CommittedOffset] | None, *, wait: bool) -> None:
        words: dict[str, Any] = {} if offsets is None else {"offsets": _partitions(offsets)}
        commit: Callable[..., list[TopicPartition] | None] = self.consumer.commit
        for each in commit(asynchronous=not wait, **words) or []:
            if each.error is not None:
                raise KafkaException(each.error)

    def committed(self, partitions: Sequence[Partition]) -> list[tuple[str, int, int]]:
        asked = [TopicPartition(topic, partition) for topic, partition in partitions]
        found = self.consumer.committed(asked, timeout=CALL_TIMEOUT_SECONDS)
        return [(each.topic, each.partition, each.offset) for each in found]

    def seek(self, topic: str, partition: int, offset: int) -> None:
        self.consumer.seek(TopicPartition(topic, partition, offset))

    def close(self) -> None:
        self.consumer.close()


class ConfluentProducer(TransactionalProducer):
    def __init__(self, base: dict[str, Any], transactional_id: str, timeout_ms: int) -> None:
        settings = {"transactional.id": transactional_id, "transaction.timeout.ms": timeout_ms, "linger.ms": 1}
        self._producer = Producer(base | settings)
        self._producer.init_transactions(CALL_TIMEOUT_SECONDS)

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, partition: int, values: Sequence[str]) -> None:
        errors: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: object) -> None:
            if error is not None:
                errors.append(error)

        for value in values:
            self._producer.produce(topic, value=value.encode(), partition=partition, on_delivery=delivered)
        self._producer.flush(CALL_TIMEOUT_SECONDS)
        if errors:
            raise KafkaException(errors[0])

    def send_offsets(self, offsets: Sequence[CommittedOffset], consumer: Any) -> None:
        assert isinstance(consumer, ConfluentConsumer)
        member = consumer.consumer.consumer_group_metadata()
        self._producer.send_offsets_to_transaction(_partitions(offsets), member, CALL_TIMEOUT_SECONDS)

    def commit(self) -> None:
        self._producer.commit_transaction(CALL_TIMEOUT_SECONDS)

    def abort(self) -> None:
        self._producer.abort_transaction(CALL_TIMEOUT_SECONDS)

    def close(self) -> None:
        self._producer.purge()


class ConfluentGroups(Groups):
    def __init__(self, base: dict[str, Any]) -> None:
        self._admin = AdminClient(base)

    def states(self) -> list[Any]:
        listed = self._admin.list_consumer_groups().result(CALL_TIMEOUT_SECONDS)
        if listed.errors:
            raise listed.errors[0]
        return [(each.group_id, _state(each.state.name)) for each in listed.valid]

    def describe(self, group: str) -> dict[str, Any]:
        described = self._admin.describe_consumer_groups([group])[group].result(CALL_TIMEOUT_SECONDS)
        members = [
            {
                "client_id": each.client_id,
                "instance_id": each.group_instance_id,
                "assignment": [(at.topic, at.partition) for at in each.assignment.topic_partitions],
            }
            for each in described.members
        ]
        return {"state": _state(described.state.name), "assignor": described.partition_assignor, "members": members}

    def delete(self, group: str) -> None:
        self._admin.delete_consumer_groups([group])[group].result(CALL_TIMEOUT_SECONDS)

    def offsets(self, group: str) -> list[CommittedOffset]:
        asked = [ConsumerGroupTopicPartitions(group)]
        found = self._admin.list_consumer_group_offsets(asked)[group].result(CALL_TIMEOUT_SECONDS)
        return [(at.topic, at.partition, at.offset, at.metadata or "") for at in found.topic_partitions or []]

    def set_offsets(self, group: str, offsets: Sequence[CommittedOffset]) -> None:
        asked = [ConsumerGroupTopicPartitions(group, _partitions(offsets))]
        outcome = self._admin.alter_consumer_group_offsets(asked)[group].result(CALL_TIMEOUT_SECONDS)
        for each in outcome.topic_partitions or []:
            if each.error is not None:
                raise KafkaException(each.error)


class ConfluentLibrary(Library):
    def __init__(self, bootstrap: str) -> None:
        self._base: dict[str, Any] = {"bootstrap.servers": bootstrap, "log_level": 2}
        self._groups: ConfluentGroups | None = None

    def consumer(self, options: ConsumerOptions) -> GroupConsumer:
        return ConfluentConsumer(self._base, options)

    def producer(self, transactional_id: str, timeout_ms: int) -> TransactionalProducer:
        return ConfluentProducer(self._base, transactional_id, timeout_ms)

    def groups(self) -> Groups:
        if self._groups is None:
            self._groups = ConfluentGroups(self._base)
        return self._groups

    def error_name(self, error: Exception) -> str:
        cause = error.args[0] if isinstance(error, KafkaException) else None
        if not isinstance(cause, KafkaError):
            return type(error).__name__
        if cause.code() == KafkaError._FATAL:
            return named_error(cause.str()) or cause.name()
        return _NAMES.get(cause.code()) or (error_name(cause.code()) if cause.code() > 0 else cause.name())


def _settings(options: ConsumerOptions) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "group.id": options.group,
        "group.protocol": options.protocol,
        "auto.offset.reset": "error" if options.reset == "none" else options.reset,
        "enable.auto.commit": options.auto_commit,
        "auto.commit.interval.ms": options.auto_commit_interval_ms,
        "isolation.level": options.isolation,
        "topic.metadata.refresh.interval.ms": options.metadata_max_age_ms,
    }
    if options.protocol == "classic":
        settings["session.timeout.ms"] = options.session_timeout_ms
        settings["heartbeat.interval.ms"] = options.heartbeat_interval_ms
    if options.assignor is not None:
        classic = options.protocol == "classic"
        settings["partition.assignment.strategy" if classic else "group.remote.assignor"] = options.assignor
    if options.instance_id is not None:
        settings["group.instance.id"] = options.instance_id
    return settings


def _partitions(offsets: Sequence[CommittedOffset]) -> list[TopicPartition]:
    return [TopicPartition(topic, partition, offset, metadata) for topic, partition, offset, metadata in offsets]


def _state(name: str) -> str:
    """PREPARING_REBALANCING is PreparingRebalancing."""
    return "".join(word.capitalize() for word in name.split("_"))


def library(bootstrap: str) -> Library:
    return ConfluentLibrary(bootstrap)
