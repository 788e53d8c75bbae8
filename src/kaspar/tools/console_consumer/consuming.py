"""Reads topics as a consumer, and prints records in batches, with one write to standard output for many records."""

import contextlib
import os
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import KasparError
from kaspar.tools.command_line import CommandFailed
from kaspar.tools.console_consumer.formatters import Formatter
from kaspar.tools.librdkafka.clients import AuthenticationFailed, ConnectionErrors, error_text, open_consumer

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

_BATCH: Final = 1000
_POLL_S: Final = 0.1
"""The longest delay of a signal."""
_NO_MATCH_REFRESH_S: Final = 1.0
_METADATA_TIMEOUT_S: Final = 5.0
_LEADER_TIMEOUT_S: Final = 0.5
_INTERNAL_TOPICS: Final = ("__consumer_offsets", "__transaction_state", "__share_group_state")
_ERRORS: Final = "org.apache.kafka.common.errors"
_LEGAL_NAME: Final = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class Source:
    """What to read: a topic, one of its partitions from an offset, or all topics whose whole name matches a pattern."""

    topic: str | None = None
    partition: int | None = None
    offset: int = 0
    include: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """None means no limit."""

    max_messages: int | None
    timeout_s: float | None


class ReadingEnded(KasparError):
    """No more records can be read. The records so far are printed, and the command ends as if there were no more."""


class OutputClosed(Exception):
    """The reader of the output, such as `head`, has exited."""


class Consuming:
    def __init__(
        self,
        source: Source,
        properties: Mapping[str, str],
        limits: Limits,
        write: Formatter,
        *,
        skip_message_on_error: bool,
    ) -> None:
        """Raises CommandFailed."""
        self.count = 0
        self._source = source
        self._limits = limits
        self._write = write
        self._skip_message_on_error = skip_message_on_error
        self._commits = properties.get("enable.auto.commit", "true").strip().lower() == "true"
        self._group = properties["group.id"]
        self._errors = ConnectionErrors()
        # The offsets of printed records are committed, not those of fetched records.
        self._consumer = open_consumer(properties, self._errors, {"enable.auto.offset.store": False})
        self._excludes_internal = properties.get("exclude.internal.topics", "true").strip().lower() != "false"
        self._refresh_s = int(properties.get("metadata.max.age.ms", 300_000)) / 1000
        self._next_refresh = 0.0
        self._subscribed: list[str] = []
        self._missing: set[str] = set()

    def run(self) -> None:
        """Print records until there are enough or no more arrive. Raises ReadingEnded, OutputClosed, or the error that
        prevents a record from being printed.
        """
        self._start()
        wanted = self._limits.max_messages
        last = time.monotonic()
        while wanted is None or self.count < wanted:
            most = _BATCH if wanted is None else min(_BATCH, wanted - self.count)
            messages = self._receive(most)
            if messages:
                self._print(messages)
                last = time.monotonic()
            elif self._limits.timeout_s is not None and time.monotonic() - last > self._limits.timeout_s:
                raise ReadingEnded(f"{_ERRORS}.TimeoutException")

    def close(self) -> None:
        """Leave the group. Offsets are committed first, if auto-commit is enabled."""
        self._consumer.close()

    # --- what is read -------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        from confluent_kafka import KafkaException, TopicPartition

        source = self._source
        if source.topic is None:
            return  # _receive() subscribes
        if not _LEGAL_NAME.fullmatch(source.topic):  # librdkafka would wait for a topic with this name
            raise ReadingEnded(f"{_ERRORS}.InvalidTopicException: Invalid topics: [{source.topic}]")
        if source.partition is None:
            self._consumer.subscribe([source.topic])
            return
        # librdkafka looks up an offset at once if it knows the leader, otherwise half a second later.
        with contextlib.suppress(KafkaException):
            found = self._consumer.list_topics(source.topic, timeout=self._wait_s(_LEADER_TIMEOUT_S))
            if (error := found.topics[source.topic].error) is not None:
                self._check(error, source.topic)
        self._consumer.assign([TopicPartition(source.topic, source.partition, source.offset)])

    def _receive(self, most: int) -> "list[Message]":
        """The next record, and further ones that are already available."""
        if self._source.include is not None:
            self._subscribe_to_matching(self._source.include)
            if not self._subscribed:
                time.sleep(_POLL_S)
                return []
        first = self._consumer.poll(self._wait_s(_POLL_S))
        if first is None:
            if self._errors.failure is not None:
                raise ReadingEnded(str(self._errors.failure))
            return []
        messages = [first, *self._consumer.consume(most - 1, 0)] if most > 1 else [first]
        return [message for message in messages if self._is_record(message)]

    def _wait_s(self, at_most_s: float) -> float:
        return at_most_s if self._limits.timeout_s is None else min(at_most_s, self._limits.timeout_s)

    def _is_record(self, message: "Message") -> bool:
        error = message.error()
        if error is None:
            return True
        self._check(error, message.topic() or "")
        return False

    def _check(self, error: "KafkaError", topic: str) -> None:
        """Raise ReadingEnded unless Java's consumer would continue after this error."""
        from confluent_kafka import KafkaError

        match error.code():
            case KafkaError.UNKNOWN_TOPIC_OR_PART | KafkaError._UNKNOWN_TOPIC | KafkaError._UNKNOWN_PARTITION:
                if topic not in self._missing:
                    self._missing.add(topic)
                    print(f"WARN {topic} does not exist yet, or lacks this partition; waiting for it.", file=sys.stderr)
            case KafkaError.TOPIC_EXCEPTION:
                raise ReadingEnded(f"{_ERRORS}.InvalidTopicException: Invalid topics: [{topic}]")
            case KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise ReadingEnded(f"{_ERRORS}.TopicAuthorizationException: Not authorized to access topics: [{topic}]")
            case KafkaError.GROUP_AUTHORIZATION_FAILED:
                raise ReadingEnded(
                    f"{_ERRORS}.GroupAuthorizationException: Not authorized to access group: {self._group}"
                )
            case _ if not error.retriable():
                raise ReadingEnded(error_text(error))

    def _subscribe_to_matching(self, pattern: re.Pattern[str]) -> None:
        from confluent_kafka import KafkaException

        if time.monotonic() < self._next_refresh:
            return
        try:
            topics = self._consumer.list_topics(timeout=self._wait_s(_METADATA_TIMEOUT_S)).topics
        except KafkaException:
            try:
                self._errors.check()
            except AuthenticationFailed as problem:
                raise ReadingEnded(str(problem)) from None
            topics = {}
        matching = sorted(name for name in topics if pattern.fullmatch(name) and not self._is_excluded(name))
        if matching and matching != self._subscribed:
            self._consumer.subscribe(matching)
            self._subscribed = matching
        self._next_refresh = time.monotonic() + (self._refresh_s if self._subscribed else _NO_MATCH_REFRESH_S)

    def _is_excluded(self, topic: str) -> bool:
        return self._excludes_internal and topic in _INTERNAL_TOPICS

    # --- what is printed ----------------------------------------------------------------------------------------------

    def _print(self, messages: "list[Message]") -> None:
        printed: list[bytes] = []
        write = self._write
        done = 0
        try:
            for message in messages:
                done += 1
                try:
                    printed.append(write(message))
                except KasparError as problem:
                    if not self._skip_message_on_error:
                        raise
                    print(f"ERROR Error processing message, skipping this message: \n{problem}", file=sys.stderr)
        finally:
            self.count += done
            _write_out(b"".join(printed))
        if self._commits:
            self._store(messages)

    def _store(self, messages: "list[Message]") -> None:
        from confluent_kafka import KafkaException, TopicPartition

        ends = {(message.topic(), message.partition()): message.offset() for message in messages}
        for (topic, partition), offset in ends.items():
            assert topic is not None
            assert partition is not None
            assert offset is not None
            try:
                self._consumer.store_offsets(offsets=[TopicPartition(topic, partition, offset + 1)])
            except KafkaException:
                continue  # the partition now belongs to another member


def _write_out(text: bytes) -> None:
    try:
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for Python's flush at exit
        raise OutputClosed from None


def pattern_of(text: str) -> re.Pattern[str]:
    """Compile a regular expression. Raises CommandFailed."""
    try:
        return re.compile(text)
    except re.error as problem:
        raise CommandFailed(f"{text} is not a regular expression: {problem}") from None
