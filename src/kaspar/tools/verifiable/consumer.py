"""kafka-verifiable-consumer: a member of a consumer group that prints its events as lines of JSON."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kaspar.tools.argparse4j import Argparse4jOptions, to_integer
from kaspar.tools.command_line import CommandFailed
from kaspar.tools.librdkafka.clients import ConnectionErrors, error_text, open_consumer
from kaspar.tools.verifiable.events import Terminated, emit, report
from kaspar.tools.verifiable.running import run_command, text_of

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message, TopicPartition

_MAX_POLL_RECORDS: Final = 500
_POLL_S: Final = 0.1
_RANGE_ASSIGNOR: Final = "org.apache.kafka.clients.consumer.RangeAssignor"
_PROTOCOLS: Final = ("CLASSIC", "CONSUMER")


def command_options() -> Argparse4jOptions:
    parser = Argparse4jOptions(
        "kafka-verifiable-consumer",
        help_code=1,
        description="Read a topic as a member of a group, and print assignments, records and commits as lines of JSON.",
        epilog="Example: kafka-verifiable-consumer --bootstrap-server localhost:9092 --topic numbers --group-id check",
    )
    parser.add_argument("--topic", required=True, help="the topic to read")
    parser.add_argument("--bootstrap-server", required=True, metavar="HOST:PORT", help="brokers to connect to")
    parser.add_argument("--group-protocol", default="classic", metavar="PROTOCOL", help="classic or consumer (KIP-848)")
    parser.add_argument(
        "--group-remote-assignor", metavar="ASSIGNOR", help="the broker's assignor, with the consumer protocol"
    )
    parser.add_argument("--group-id", required=True, metavar="ID", help="the consumer group")
    parser.add_argument("--group-instance-id", metavar="ID", help="makes it a static member (KIP-345)")
    parser.add_argument(
        "--max-messages", type=to_integer, default=-1, metavar="NUMBER", help="how many to read; -1: until it is ended"
    )
    parser.add_argument(
        "--session-timeout", type=to_integer, default=-1, metavar="MS", help="of the member, with the classic protocol"
    )
    parser.add_argument("--verbose", action="store_true", help="print each record")
    parser.add_argument(
        "--enable-autocommit", action="store_true", help="commit from time to time, rather than after each batch"
    )
    parser.add_argument(
        "--reset-policy",
        default="earliest",
        metavar="POLICY",
        help="earliest, latest or none: where there is no commit",
    )
    parser.add_argument(
        "--assignment-strategy",
        default=_RANGE_ASSIGNOR,
        metavar="CLASS",
        help=f"with the classic protocol. Default: {_RANGE_ASSIGNOR}",
    )
    parser.add_argument(
        "--consumer.config", dest="consumer_config", metavar="FILE", help="deprecated: --command-config"
    )
    parser.add_argument(
        "--command-config", metavar="FILE", help="a file with properties of the consumer; options of this command win"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    return run_command(
        command_options(), argv, deprecated="--consumer.config", own_properties=_own_properties, action=_run
    )


def _own_properties(options: argparse.Namespace) -> dict[str, str]:
    protocol = options.group_protocol.upper()
    own = {
        "bootstrap.servers": options.bootstrap_server,
        "group.protocol": protocol,
        "group.id": options.group_id,
        "enable.auto.commit": str(options.enable_autocommit).lower(),
        "auto.offset.reset": options.reset_policy,
        "group.instance.id": options.group_instance_id,
        "session.timeout.ms": None if options.session_timeout < 0 else str(options.session_timeout),
        "group.remote.assignor": options.group_remote_assignor if protocol == "CONSUMER" else None,
        "partition.assignment.strategy": options.assignment_strategy if protocol == "CLASSIC" else None,
    }
    return {name: value for name, value in own.items() if value is not None}


def _run(options: argparse.Namespace, properties: Mapping[str, str]) -> None:
    if options.group_protocol.upper() not in _PROTOCOLS:
        raise CommandFailed(
            "java.lang.IllegalArgumentException: No enum constant "
            f"org.apache.kafka.clients.consumer.GroupProtocol.{options.group_protocol.upper()}"
        )
    consuming = _Consuming(options, properties)
    was_asked = False
    try:
        emit("startup_complete")
        consuming.run()
    except (KeyboardInterrupt, Terminated):
        emit("shutdown_requested")
        was_asked = True
        raise
    finally:
        consuming.close()
        emit("shutdown_complete")
        if not was_asked:
            emit("shutdown_requested")  # Kafka's command always prints this when its process exits


class _Consuming:
    def __init__(self, options: argparse.Namespace, properties: Mapping[str, str]) -> None:
        self._options = options
        self._errors = ConnectionErrors()
        self._count = 0
        self._consumer = open_consumer(properties, self._errors, {"enable.auto.offset.store": False})

    def run(self) -> None:
        self._consumer.subscribe([self._options.topic], on_assign=_assigned, on_revoke=_revoked)
        most = self._options.max_messages
        while most < 0 or self._count < most:
            first = self._consumer.poll(_POLL_S)
            if first is None:
                self._errors.check()
                continue
            messages = [first, *self._consumer.consume(_MAX_POLL_RECORDS - 1, 0)]
            records = [message for message in messages if message.error() is None]
            if records:
                self._received(records)
            for message in messages:
                if (error := message.error()) is not None and not error.retriable() and error.code() < 0:
                    report(f"ERROR Error during processing, terminating consumer process: \n{error_text(error)}")
                    return

    def close(self) -> None:
        self._consumer.close()

    def _received(self, records: "list[Message]") -> None:
        by_partition: dict[tuple[str, int], list[Message]] = {}
        for record in records:
            by_partition.setdefault(_place(record), []).append(record)
        summaries: list[dict[str, object]] = []
        ends: list[tuple[str, int, int]] = []
        for (topic, partition), found in by_partition.items():
            taken = found if self._options.max_messages < 0 else found[: self._options.max_messages - self._count]
            if not taken:
                continue
            first, last = _offset(taken[0]), _offset(taken[-1])
            self._print(topic, partition, taken)
            self._count += len(taken)
            summaries.append(
                {"topic": topic, "partition": partition, "count": len(taken), "minOffset": first, "maxOffset": last}
            )
            ends.append((topic, partition, last + 1))
        emit("records_consumed", count=len(records), partitions=summaries)
        self._commit(ends)

    def _print(self, topic: str, partition: int, records: "list[Message]") -> None:
        if not self._options.verbose:
            return
        for record in records:
            key, value = text_of(record.key()), text_of(record.value())
            emit("record_data", key=key, value=value, topic=topic, partition=partition, offset=_offset(record))

    def _commit(self, ends: list[tuple[str, int, int]]) -> None:
        from confluent_kafka import KafkaException, TopicPartition

        offsets = [TopicPartition(topic, partition, offset) for topic, partition, offset in ends]
        shown = [{"topic": topic, "partition": partition, "offset": offset} for topic, partition, offset in ends]
        try:
            if self._options.enable_autocommit:
                self._consumer.store_offsets(offsets=offsets)
                return
            self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as problem:
            emit("offsets_committed", offsets=shown, error=error_text(problem.args[0]), success=False)
        else:
            emit("offsets_committed", offsets=shown, success=True)


def _assigned(consumer: "Consumer", partitions: "list[TopicPartition]") -> None:
    del consumer
    emit("partitions_assigned", partitions=_shown(partitions))


def _revoked(consumer: "Consumer", partitions: "list[TopicPartition]") -> None:
    del consumer
    emit("partitions_revoked", partitions=_shown(partitions))


def _shown(partitions: "list[TopicPartition]") -> list[dict[str, Any]]:
    places = sorted((each.topic, each.partition) for each in partitions)
    return [{"topic": topic, "partition": partition} for topic, partition in places]


def _place(record: "Message") -> tuple[str, int]:
    topic, partition = record.topic(), record.partition()
    assert topic is not None
    assert partition is not None
    return topic, partition


def _offset(record: "Message") -> int:
    offset = record.offset()
    assert offset is not None
    return offset


if __name__ == "__main__":
    sys.exit(main())
