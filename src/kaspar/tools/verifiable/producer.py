"""kafka-verifiable-producer: sends increasing numbers, and prints a line of JSON for each that was stored or failed."""

import argparse
import itertools
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kaspar.tools.argparse4j import Argparse4jOptions, to_integer
from kaspar.tools.librdkafka.clients import ConnectionErrors, error_text, open_producer
from kaspar.tools.verifiable.events import emit
from kaspar.tools.verifiable.running import run_command, text_of

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

_ACKS: Final = (0, 1, -1)
_NOTHING_SET: Final = -1
_POLL_S: Final = 0.1


def command_options() -> Argparse4jOptions:
    parser = Argparse4jOptions(
        "kafka-verifiable-producer",
        help_code=1,
        description="Send the numbers 0, 1, 2 and so on, and print a line of JSON for each that was stored or failed.",
        epilog="Example: kafka-verifiable-producer --bootstrap-server localhost:9092 --topic numbers --max-messages 9",
    )
    parser.add_argument("--topic", required=True, help="the topic to send to")
    connection = parser.add_mutually_exclusive_group(required=True)  # as in Kafka, whose error message depends on it
    connection.add_argument("--bootstrap-server", metavar="HOST:PORT", help="brokers to connect to")
    parser.add_argument(
        "--max-messages", type=to_integer, default=-1, metavar="NUMBER", help="how many to send; -1: until it is ended"
    )
    parser.add_argument(
        "--throughput",
        type=to_integer,
        default=-1,
        metavar="RATE",
        help="about how many a second; -1: as many as it can",
    )
    parser.add_argument(
        "--acks", type=_acks, default=-1, help="-1: all in-sync replicas have it; 1: the leader has it; 0: do not wait"
    )
    parser.add_argument(
        "--producer.config", dest="producer_config", metavar="FILE", help="deprecated: --command-config"
    )
    parser.add_argument(
        "--message-create-time",
        type=to_integer,
        default=_NOTHING_SET,
        metavar="MS",
        help="the timestamp of the first record",
    )
    parser.add_argument(
        "--value-prefix", type=to_integer, metavar="NUMBER", help="values are this, a dot, and the number"
    )
    parser.add_argument(
        "--repeating-keys",
        type=to_integer,
        metavar="NUMBER",
        help="keys are 0, 1 and so on below this, again and again",
    )
    parser.add_argument(
        "--command-config", metavar="FILE", help="a file with properties of the producer; options of this command win"
    )
    return parser


def _acks(text: str) -> int:
    value = to_integer(text)
    if value not in _ACKS:
        raise argparse.ArgumentTypeError(f"invalid choice: '{text}' (choose from {{0,1,-1}})")
    return value


def main(argv: Sequence[str] | None = None) -> int:
    return run_command(
        command_options(), argv, deprecated="--producer.config", own_properties=_own_properties, action=_run
    )


def _own_properties(options: argparse.Namespace) -> dict[str, str]:
    return {"bootstrap.servers": options.bootstrap_server, "acks": str(options.acks), "retries": "0"}


def _run(options: argparse.Namespace, properties: Mapping[str, str]) -> None:
    sending = _Sending(options, properties)
    started = time.monotonic()
    emit("startup_complete")
    try:
        sending.run(started)
    finally:
        sending.finish()
        elapsed_s = time.monotonic() - started
        emit("shutdown_complete")
        emit(
            "tool_data",
            sent=sending.sent,
            acked=sending.acked,
            target_throughput=options.throughput,
            avg_throughput=sending.acked / max(elapsed_s, 0.001),
        )


class _Sending:
    def __init__(self, options: argparse.Namespace, properties: Mapping[str, str]) -> None:
        self.sent = 0
        self.acked = 0
        self._options = options
        self._create_time_ms: int = options.message_create_time
        self._started_ms = time.time_ns() // 1_000_000
        self._producer = open_producer(properties, ConnectionErrors(), {"on_delivery": self._delivered})

    def run(self, started: float) -> None:
        most, rate = self._options.max_messages, self._options.throughput
        for number in itertools.count() if most < 0 else range(most):
            self._send(self._key(number), self._value(number))
            self._producer.poll(0)
            while 0 <= rate * (time.monotonic() - started) < number + 1:
                self._producer.poll(_POLL_S if rate == 0 else min(_POLL_S, 1 / rate))

    def finish(self) -> None:
        while self._producer.flush(_POLL_S):
            pass

    def _key(self, number: int) -> str | None:
        keys = self._options.repeating_keys
        return str(number % keys if keys > 0 else number) if keys is not None else None

    def _value(self, number: int) -> str:
        prefix = self._options.value_prefix
        return str(number) if prefix is None else f"{prefix}.{number}"

    def _send(self, key: str | None, value: str) -> None:
        from confluent_kafka import KafkaException

        self.sent += 1
        timestamp = 0
        if self._create_time_ms != _NOTHING_SET:
            timestamp = self._create_time_ms
            self._create_time_ms += time.time_ns() // 1_000_000 - self._started_ms
        while True:
            try:
                self._producer.produce(self._options.topic, value, key, timestamp=timestamp)
                return
            except BufferError:
                self._producer.poll(_POLL_S)
            except KafkaException as problem:
                self._failed(key, value, problem.args[0])
                return

    def _delivered(self, error: "KafkaError | None", message: "Message") -> None:
        key, value = text_of(message.key()), text_of(message.value())
        if error is not None:
            self._failed(key, value, error)
            return
        self.acked += 1
        offset, partition = message.offset(), message.partition()
        emit(
            "producer_send_success",
            key=key,
            value=value,
            offset=-1 if offset is None else offset,
            topic=self._options.topic,
            partition=partition,
        )

    def _failed(self, key: str | None, value: str | None, error: "KafkaError") -> None:
        name, colon, message = error_text(error).partition(": ")
        if not (colon and name.startswith("org.")):
            name, message = "org.apache.kafka.common.KafkaException", error.str()
        topic = self._options.topic
        emit("producer_send_error", topic=topic, key=key, value=value, exception=f"class {name}", message=message)


if __name__ == "__main__":
    sys.exit(main())
