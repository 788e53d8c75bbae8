"""The endpoints of a topology, sources and sinks, and repartitioning between them.

A source deserializes records, and a sink serializes them. A `Repartition` sends records to the task of their (new) key.
If no step before it has state, it is a shuffle inside the query. Otherwise the plan replaces it by an internal topic: a
sink that ends one sub-topology, and a source that starts another.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from kaspar.streams.errors import NEVER_SKIPPED, ProcessingError, RecordTooLarge
from kaspar.streams.serdes import Serde
from kaspar.streams.topology.context import Headers, OnError, Output, TaskContext
from kaspar.streams.topology.dead_letters import dead_letter
from kaspar.streams.topology.node import Node, PassThrough, Receiver

TimestampExtractor: TypeAlias = Callable[[Any, Any, int], int]
"""Takes key, value and timestamp of a record in its topic, returns its event time."""
StreamPartitioner: TypeAlias = Callable[[str, Any, Any, int], int | None]
"""Takes topic, key, value and the number of partitions, returns the partition; None means that of the key's hash."""
TopicNameExtractor: TypeAlias = Callable[[Any, Any, "RecordContext"], str]
RawReceiver: TypeAlias = Callable[[bytes | None, bytes | None, int], None]

_LARGEST_EMPTY_BATCH: Final = 61 + 36  # the batch's header, and a record without key, value and headers
_LARGEST_EMPTY_HEADER: Final = 10


class RecordContext:
    """The metadata of a record that is passed to a function, besides key and value."""

    __slots__ = ("headers", "offset", "partition", "timestamp", "topic")

    def __init__(self, context: TaskContext, timestamp: int) -> None:
        self.topic = context.topic
        self.partition = context.partition
        self.offset = context.offset
        self.headers: Headers = context.headers or ()
        self.timestamp = timestamp


class Source(Node):
    """Reads records of one or several topics, or of topics that match a pattern."""

    def __init__(
        self,
        name: str,
        topics: Sequence[str],
        *,
        pattern: str | None = None,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
        offset_reset: str | None = None,
    ) -> None:
        super().__init__(name)
        self.topics = tuple(topics)
        self.pattern = pattern
        self.key_serde = key_serde
        self.value_serde = value_serde
        self.timestamp_extractor = timestamp_extractor
        self.offset_reset = offset_reset

    def matches(self, topic: str) -> bool:
        """Whether the source has a pattern that matches a topic."""
        return self.pattern is not None and re.fullmatch(self.pattern, topic) is not None

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        raise NotImplementedError("a source receives bytes: see bytes_receiver")

    def bytes_receiver(self, context: TaskContext, forward: Receiver) -> RawReceiver:
        """The function that receives the bytes of a record, and its timestamp in the topic."""
        settings = context.settings
        read_key = settings.key_serde(self.key_serde).deserialize
        read_value = settings.value_serde(self.value_serde).deserialize
        extract = self.timestamp_extractor

        def receive(raw_key: bytes | None, raw_value: bytes | None, timestamp: int) -> None:
            topic = context.topic
            try:
                key = read_key(topic, raw_key)
                value = read_value(topic, raw_value)
                if extract is not None:
                    timestamp = extract(key, value, timestamp)
            except NEVER_SKIPPED:
                raise
            except Exception as problem:
                self._refused(context, raw_key, raw_value, timestamp, problem)
                return
            if timestamp < 0:
                context.drop("negative-timestamp")  # as in Kafka's RecordQueue
                return
            forward(key, value, timestamp)

        return receive

    def _refused(
        self, context: TaskContext, key: bytes | None, value: bytes | None, timestamp: int, problem: Exception
    ) -> None:
        if context.settings.on_deserialization_error is OnError.FAIL:
            raise ProcessingError(
                f"A record cannot be read (topic {context.topic}, partition {context.partition}, offset "
                f"{context.offset}): {problem} To skip such records set deserialization.exception.handler = continue, "
                "and errors.dead.letter.queue.topic.name to keep them."
            ) from problem
        context.drop("deserialization")
        dead_letter(context, key, value, timestamp, problem)


class Sink(Node):
    """Writes records to a topic, or each to the topic that a function returns."""

    def __init__(
        self,
        name: str,
        topic: "str | TopicNameExtractor",
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        partitioner: StreamPartitioner | None = None,
        internal: bool = False,
        partitions: int | None = None,
    ) -> None:
        super().__init__(name)
        self.topic = topic
        self.key_serde = key_serde
        self.value_serde = value_serde
        self.partitioner = partitioner
        self.internal = internal
        """Whether it is a repartition topic, whose name is prefixed with the application id."""
        self.partitions = partitions

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        if isinstance(self.topic, str):
            name = internal_topic(context.application_id, self.topic) if self.internal else self.topic
            return self._to(context, name)
        name_of, receivers = self.topic, dict[str, Receiver]()

        def receive(key: Any, value: Any, timestamp: int) -> None:
            topic = name_of(key, value, RecordContext(context, timestamp))
            if topic not in receivers:
                receivers[topic] = self._to(context, topic)
            receivers[topic](key, value, timestamp)

        return receive

    def _to(self, context: TaskContext, topic: str) -> Receiver:
        settings = context.settings
        write_key = settings.key_serde(self.key_serde).serialize
        write_value = settings.value_serde(self.value_serde).serialize
        write = context.outputs.to(topic)
        if settings.on_production_error is OnError.CONTINUE:
            write = self._if_not_too_large(context, topic, write)
        partitioner = settings.resolved(self.partitioner)

        def receive(key: Any, value: Any, timestamp: int) -> None:
            try:
                raw_key, raw_value = write_key(topic, key), write_value(topic, value)
            except NEVER_SKIPPED:
                raise
            except Exception as problem:
                self._refused(context, topic, timestamp, problem)
                return
            if timestamp < 0:
                raise ProcessingError(f"A record for topic {topic} has the negative timestamp {timestamp}.")
            partition = None
            if partitioner is not None:
                partition = partitioner(topic, key, value, context.outputs.partition_count(topic))
            write((raw_key, raw_value, timestamp, context.headers, partition))

        return receive

    def _if_not_too_large(
        self, context: TaskContext, topic: str, write: Callable[[Output], object]
    ) -> Callable[[Output], object]:
        """A writer that skips records that are too large, for which the producer would reject the whole batch."""
        most = context.settings.max_request_size

        def write_or_skip(output: Output) -> None:
            if (size := _largest_size(output)) > most:
                sentence = f"A record for topic {topic} may have {size} bytes, and producer.max.request.size is {most}."
                self._refused(context, topic, output[2], RecordTooLarge(sentence))
            else:
                write(output)

        return write_or_skip

    def _refused(self, context: TaskContext, topic: str, timestamp: int, problem: Exception) -> None:
        if context.settings.on_production_error is OnError.FAIL:
            raise ProcessingError(f"A record cannot be written to topic {topic}: {problem}") from problem
        context.drop("too-large" if isinstance(problem, RecordTooLarge) else "serialization")
        dead_letter(context, context.raw_key, context.raw_value, timestamp, problem)


def _largest_size(output: Output) -> int:
    """An upper bound of the size of a batch with only this record (Kafka's estimateSizeInBytesUpperBound)."""
    key, value, _, headers, _ = output
    size = _LARGEST_EMPTY_BATCH + len(key or b"") + len(value or b"")
    for name, data in headers or ():
        size += _LARGEST_EMPTY_HEADER + len(name.encode()) + len(data or b"")
    return size


class Repartition(PassThrough):
    """Sends records to the task of their key."""

    def __init__(
        self,
        name: str,
        *,
        key_serde: Serde[Any] | None,
        value_serde: Serde[Any] | None,
        partitions: int | None = None,
        partitioner: StreamPartitioner | None = None,
    ) -> None:
        super().__init__(name)
        self.key_serde = key_serde
        self.value_serde = value_serde
        self.partitions = partitions
        self.partitioner = partitioner


def internal_topic(application_id: str, name: str) -> str:
    return f"{application_id}-{name}"
