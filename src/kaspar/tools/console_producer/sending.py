"""Sends records to a topic, and reports those that are not stored as Kafka's console producer does: it continues after
an error, unless it waits for each record (--sync).
"""

import sys
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from kaspar.base.primitives import size_of_varlong
from kaspar.tools.command_line import CommandFailed
from kaspar.tools.console_producer.lines import Headers, InputRecord
from kaspar.tools.librdkafka.clients import ConnectionErrors, error_text, open_producer

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

_ERRORS: Final = "org.apache.kafka.common.errors"
_RETRY_S: Final = 0.05
_METADATA_S: Final = 0.5
_BATCH_OVERHEAD: Final = 61  # records.layout.HEADER_SIZE; importing that would load the compiled core
_MAX_RECORD_OVERHEAD: Final = 21


class Sending:
    def __init__(self, topic: str, properties: Mapping[str, str], *, sync: bool) -> None:
        """Raises CommandFailed."""
        self._topic = topic
        self._sync = sync
        self._max_block_ms = int(properties["max.block.ms"])
        self._max_request_bytes = int(properties.get("max.request.size", 1_048_576))
        self._topic_is_known = False
        self._errors = ConnectionErrors()
        more = {"delivery.report.only.error": not sync, "on_delivery": self._delivered}
        self._producer = open_producer(properties, self._errors, more)
        self._failure: str | None = None

    def send_values(self, values: Iterable[bytes]) -> None:
        """Send records without key and headers, of which there may be millions."""
        from confluent_kafka import KafkaException

        if self._sync or not self._topic_is_known:
            values = iter(values)
            for value in values:
                self.send(InputRecord(None, value, []))
                if self._topic_is_known and not self._sync:
                    break
        produce, topic = self._producer.produce, self._topic
        for value in values:
            try:
                produce(topic, value)
            except BufferError:
                self._producer.poll(_RETRY_S)
                self.send(InputRecord(None, value, []))
            except KafkaException as problem:
                self._refused(InputRecord(None, value, []), problem.args[0])
        self._producer.poll(0)

    def send(self, record: InputRecord) -> None:
        """Send a record. With --sync, raises CommandFailed if it is not stored."""
        self._send(record)
        if self._sync:
            self.finish()

    def _send(self, record: InputRecord) -> None:
        from confluent_kafka import KafkaException

        if not self._topic_is_known:
            if (problem := self._await_topic()) is not None:
                self._report(record.key, record.value, problem)
                return
            self._topic_is_known = True
        key, value, headers = record
        deadline = time.monotonic() + self._max_block_ms / 1000
        while True:
            try:
                self._produce(key, value, headers)
                return
            except BufferError:
                if time.monotonic() > deadline:
                    text = f"Failed to allocate memory within the configured max blocking time {self._max_block_ms} ms."
                    self._report(key, value, f"org.apache.kafka.clients.producer.BufferExhaustedException: {text}")
                    return
                self._producer.poll(_RETRY_S)
            except KafkaException as problem:
                self._refused(record, problem.args[0])
                return

    def poll(self) -> None:
        """Report failed records."""
        self._producer.poll(0)

    def finish(self) -> None:
        """Wait until every record is stored or has failed."""
        while self._producer.flush(0.5):
            pass
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise CommandFailed(f"java.util.concurrent.ExecutionException: {failure}")

    def _produce(self, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        if headers:
            self._producer.produce(self._topic, value, key, headers=headers)
        else:
            self._producer.produce(self._topic, value, key)

    def _await_topic(self) -> str | None:
        """Wait for the topic's metadata before the first record, as a Java client does; this may create the topic.
        Returns an error message, or None.
        """
        from confluent_kafka import KafkaError, KafkaException

        deadline = time.monotonic() + self._max_block_ms / 1000
        while True:
            left = min(deadline - time.monotonic(), _METADATA_S)
            try:
                found = self._producer.list_topics(self._topic, timeout=max(left, 0.001)).topics[self._topic]
            except KafkaException:
                found = None  # no broker responds, or none accepts this client, which poll() reports
                self._producer.poll(0)
                if self._errors.failure is not None:
                    return str(self._errors.failure)
            except RuntimeError:  # librdkafka rejects empty and very long names
                return self._invalid_topic()
            if found is not None:
                match found.error and found.error.code():
                    case None:
                        return None
                    case KafkaError.TOPIC_EXCEPTION:
                        return self._invalid_topic()
                    case KafkaError.TOPIC_AUTHORIZATION_FAILED:
                        text = f"Not authorized to access topics: [{self._topic}]"
                        return f"{_ERRORS}.TopicAuthorizationException: {text}"
            if time.monotonic() >= deadline:
                text = f"Topic {self._topic} not present in metadata after {self._max_block_ms} ms."
                return f"{_ERRORS}.TimeoutException: {text}"
            time.sleep(min(_RETRY_S, max(deadline - time.monotonic(), 0)))

    def _invalid_topic(self) -> str:
        return f"{_ERRORS}.InvalidTopicException: Invalid topics: [{self._topic}]"

    def _refused(self, record: InputRecord, error: "KafkaError") -> None:
        from confluent_kafka import KafkaError

        text = error_text(error)
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            text = (
                f"{_ERRORS}.RecordTooLargeException: The message is {largest_size(record)} bytes when serialized which "
                f"is larger than {self._max_request_bytes}, which is the value of the max.request.size configuration."
            )
        self._report(record.key, record.value, text)

    def _delivered(self, error: "KafkaError | None", message: "Message") -> None:
        if error is not None:
            self._report(message.key(), message.value(), error_text(error))

    def _report(self, key: object, value: object, text: str) -> None:
        if self._sync:
            self._failure = self._failure or text
            return
        print(
            f"ERROR Error when sending message to topic {self._topic} with key: {_size(key)}, value: {_size(value)} "
            f"with error:\n{text}",
            file=sys.stderr,
            flush=True,
        )


def largest_size(record: InputRecord) -> int:
    """Java's estimate of the size of a batch with this record alone."""
    size = _BATCH_OVERHEAD + _MAX_RECORD_OVERHEAD + _sized(record.key) + _sized(record.value)
    size += size_of_varlong(len(record.headers))
    for name, value in record.headers:
        size += _sized(name.encode()) + _sized(value)
    return size


def _sized(field: str | bytes | None) -> int:
    return 1 if field is None else size_of_varlong(len(field)) + len(field)


def _size(field: object) -> str:
    return f"{len(field)} bytes" if isinstance(field, bytes) else "null"
