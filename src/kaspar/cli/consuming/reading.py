"""Reads records with librdkafka and passes them to the printer: from given partitions, or as a member of a group.

However the command ends (the last record, Ctrl-C, a closed pipe), the consumer is closed, so a member leaves its group
at once and commits the offsets of printed records, but never those of records that were read and not printed.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kaspar.base.ids import TopicPartition
from kaspar.cli.consuming.printing import Printer
from kaspar.cli.consuming.remaining import Remaining
from kaspar.cli.failures import CommandFailed
from kaspar.cli.interrupts import Interrupts
from kaspar.cli.record_clients import problem_of
from kaspar.cli.records.record import RawRecord

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

_POLL_S: Final = 0.2
"""The timeout of a poll. Ctrl-C is noticed after the poll."""
_BATCH: Final = 500
_LOG_APPEND_TIME: Final = 2  # confluent_kafka.TIMESTAMP_LOG_APPEND_TIME; importing it for each record is slow


def read_partitions(
    settings: Mapping[str, Any], starts: Mapping[TopicPartition, int], remaining: Remaining | None, printer: Printer
) -> None:
    """Read partitions from these offsets. Without `remaining`, read until the limit or Ctrl-C."""
    if remaining is not None:
        remaining.assign(starts)
        if remaining.is_done:
            return
    import confluent_kafka

    consumer = confluent_kafka.Consumer({**settings, "enable.auto.commit": False})
    consumer.assign(
        [confluent_kafka.TopicPartition(topic, partition, start) for (topic, partition), start in starts.items()]
    )
    Reading(consumer, remaining, printer, commits=False).run()


def read_as_member(
    settings: Mapping[str, Any], subscription: Sequence[str], remaining: Remaining | None, printer: Printer
) -> None:
    """Read the partitions assigned to this member, from the group's committed offsets. Commits printed records."""
    import confluent_kafka

    def assigned(_: object, partitions: Sequence[confluent_kafka.TopicPartition]) -> None:
        if remaining is not None:
            remaining.assign({TopicPartition(each.topic, each.partition): None for each in partitions})

    def revoked(_: object, partitions: Sequence[confluent_kafka.TopicPartition]) -> None:
        if remaining is not None:
            remaining.revoke([TopicPartition(each.topic, each.partition) for each in partitions])

    consumer = confluent_kafka.Consumer({**settings, "enable.auto.commit": True, "enable.auto.offset.store": False})
    consumer.subscribe(list(subscription), on_assign=assigned, on_revoke=revoked)
    Reading(consumer, remaining, printer, commits=True).run()


class Reading:
    """Prints the records of a consumer that has an assignment or a subscription."""

    def __init__(self, consumer: "Consumer", remaining: Remaining | None, printer: Printer, *, commits: bool) -> None:
        self._consumer = consumer
        self._remaining = remaining
        self._printer = printer
        self._commits = commits
        self._interrupts = Interrupts()

    def run(self) -> None:
        """Read and print until done. Closes the consumer at the end."""
        with self._interrupts:
            try:
                while not self._printer.is_done and not (self._remaining is not None and self._remaining.is_done):
                    self._print(self._next_messages())
            finally:
                with self._interrupts.shield():
                    self._consumer.close()

    def _next_messages(self) -> "list[Message]":
        with self._interrupts.shield():
            first = self._consumer.poll(_POLL_S)
        if first is None:
            self._printer.check_reader()
            return []
        with self._interrupts.shield():
            return [first, *self._consumer.consume(_BATCH, 0)]

    def _print(self, messages: "Sequence[Message]") -> None:
        last: dict[TopicPartition, Message] = {}
        try:
            for message in messages:
                if self._printer.is_done:
                    break
                if self._is_record(message) and self._is_wanted(message):
                    self._printer.print(raw_record(message))
                    last[_partition_of(message)] = message
            self._printer.flush()
        except KeyboardInterrupt:
            self._store(last)  # the rest of the output is flushed when the command ends
            raise
        self._store(last)

    def _is_wanted(self, message: "Message") -> bool:
        """False for a record that was written after the command started: it is not printed, and not committed."""
        if self._remaining is None:
            return True
        where, offset = _partition_of(message), message.offset() or 0
        self._remaining.read(where, offset)
        return not self._remaining.is_behind_end(where, offset)

    def _store(self, last: "Mapping[TopicPartition, Message]") -> None:
        """Store the offsets to commit: those after the printed records."""
        if not self._commits:
            return
        from confluent_kafka import KafkaException

        with self._interrupts.shield():
            for message in last.values():
                try:
                    self._consumer.store_offsets(message)
                except KafkaException as problem:  # the partition was revoked since: another member reads it
                    if problem.args[0].name() != "_STATE":
                        raise CommandFailed(f"the offset cannot be committed: {problem.args[0].str()}") from None

    def _is_record(self, message: "Message") -> bool:
        """Whether the message is a record. Raises KasparError for errors that are not transient."""
        error = message.error()
        if error is None:
            return True
        from confluent_kafka import KafkaError

        if error.code() == KafkaError._PARTITION_EOF:
            if self._remaining is not None:
                self._remaining.reached_end(_partition_of(message))
            return False
        if error.retriable() or error.code() in (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT):
            return False
        if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED and not self._commits:
            return False  # librdkafka looks up the coordinator of its group even if it is not a member
        raise problem_of(error)


def _partition_of(message: "Message") -> TopicPartition:
    return TopicPartition(message.topic() or "", message.partition() or 0)


def raw_record(message: "Message") -> RawRecord:
    kind, timestamp_ms = message.timestamp()
    headers = message.headers() or ()
    assert not isinstance(headers, dict)  # only producers may pass a dict
    return RawRecord(
        message.topic() or "",
        message.partition() or 0,
        message.offset() or 0,
        timestamp_ms,
        _bytes(message.key()),
        _bytes(message.value()),
        tuple((name, _bytes(value)) for name, value in headers),
        message.leader_epoch(),
        kind == _LOG_APPEND_TIME,
    )


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
