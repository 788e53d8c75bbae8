"""kafka-console-producer: its options, and the properties that follow from them."""

import argparse
import os
import select
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Final

from kaspar.base.errors import KasparError
from kaspar.tools.client_config import add_client_properties
from kaspar.tools.client_properties import are_addresses, key_values
from kaspar.tools.command_line import CommandFailed, KafkaOptions, integer, load_properties, long_integer, run
from kaspar.tools.console_producer.line_readers import LineReader, line_reader
from kaspar.tools.console_producer.lines import READER_CLASS, LineSplitter
from kaspar.tools.console_producer.sending import Sending

_PIECE_BYTES: Final = 1 << 20
_PROMPT_POLL_S: Final = 0.2

_OPTIONS_OF_PROPERTIES: Final = {
    "linger.ms": ("timeout", "1000"),
    "acks": ("request_required_acks", "-1"),
    "request.timeout.ms": ("request_timeout_ms", "1500"),
    "retries": ("message_send_max_retries", "3"),
    "retry.backoff.ms": ("retry_backoff_ms", "100"),
    "send.buffer.bytes": ("socket_buffer_size", "102400"),
    "buffer.memory": ("max_memory_bytes", "33554432"),
    "batch.size": ("batch_size", "16384"),
    "metadata.max.age.ms": ("metadata_expiry_ms", "300000"),
    "max.block.ms": ("max_block_ms", "60000"),
}
"""The option that sets each producer property, and the value if neither is given."""

_READER_PROPERTIES: Final = (
    "parse.key=true: the line has a key before its value; key.separator, a tab by default, is between them. "
    "parse.headers=true: the line begins with headers, h1:v1,h2:v2, up to headers.delimiter, a tab by default; "
    "headers.separator and headers.key.separator replace the comma and the colon. null.marker: a key, value or header "
    "value equal to this is null. ignore.error=true: a line without a separator is sent rather than refused"
)


@dataclass(frozen=True, slots=True)
class ProducerCommand:
    """One of the commands that send lines. They differ in how a line becomes a record."""

    name: str
    description: str
    example: str
    line_reader: str
    line_readers_help: str
    reader_properties: Mapping[str, str] = field(default_factory=dict)
    """The default reader properties."""
    reader_properties_help: str = ""
    property_is_deprecated: bool = True
    """Whether --property is deprecated in favour of --reader-property. Confluent's users usually give it."""


KAFKA: Final = ProducerCommand(
    "kafka-console-producer",
    "Send lines of text to a topic, each as a record: from a pipe, or typed at a prompt until Ctrl-D.",
    example="echo 'k1:hello' | kafka-console-producer --bootstrap-server localhost:9092 --topic greetings "
    "--reader-property parse.key=true --reader-property key.separator=:",
    line_reader=READER_CLASS,
    line_readers_help=f"{READER_CLASS}, or one of Confluent's, as kafka-avro-console-producer has it",
)


def command_options(command: ProducerCommand = KAFKA) -> KafkaOptions:
    options = KafkaOptions(command.name, command.description, example=command.example)
    options.add_argument("--bootstrap-server", metavar="HOST:PORT", help="brokers to connect to. REQUIRED")
    options.add_argument("--topic", help="the topic to send to. REQUIRED")
    options.add_argument(
        "--reader-property",
        action="append",
        metavar="KEY=VALUE",
        help=f"{command.reader_properties_help}{_READER_PROPERTIES}",
    )
    options.add_argument("--reader-config", metavar="FILE", help="a file with such properties; --reader-property wins")
    options.add_argument(
        "--property",
        action="append",
        metavar="KEY=VALUE",
        help="deprecated: --reader-property" if command.property_is_deprecated else "the same as --reader-property",
    )
    options.add_argument(
        "--line-reader",
        default=command.line_reader,
        metavar="CLASS",
        help=f"{command.line_readers_help}. Default: {command.line_reader}",
    )
    options.add_argument(
        "--compression-codec",
        nargs="?",
        const="gzip",
        default="none",
        metavar="CODEC",
        help="none, gzip, snappy, lz4 or zstd; gzip if no codec follows. Default: none",
    )
    options.add_argument("--sync", action="store_true", help="wait until each record is stored before the next is sent")
    _add_tuning(options)
    add_client_properties(options, "producer")
    return options


def _add_tuning(options: KafkaOptions) -> None:
    for name, number, metavar, text in (
        ("--batch-size", integer, "BYTES", "send a batch of a partition when it has this size. Default: 16384"),
        ("--max-partition-memory-bytes", integer, "BYTES", "deprecated: --batch-size"),
        (
            "--max-memory-bytes",
            long_integer,
            "BYTES",
            "how much may wait to be sent, in all. Default: 33554432",
        ),
        ("--max-block-ms", long_integer, "MS", "how long a record waits for metadata or free memory. Default: 60000"),
        ("--timeout", long_integer, "MS", "how long a batch waits for more records (linger.ms). Default: 1000"),
        ("--request-timeout-ms", integer, "MS", "how long a broker may take to respond. Default: 1500"),
        ("--message-send-max-retries", integer, "NUMBER", "how often a batch is sent again after an error. Default: 3"),
        ("--retry-backoff-ms", long_integer, "MS", "the pause before a batch is sent again. Default: 100"),
        ("--metadata-expiry-ms", long_integer, "MS", "refresh metadata after this time, in any case. Default: 300000"),
        ("--socket-buffer-size", integer, "BYTES", "the send buffer of a connection. Default: 102400"),
    ):
        options.add_argument(name, type=number, metavar=metavar, help=text)
    options.add_argument(
        "--request-required-acks",
        metavar="ACKS",
        help="-1 or all: all in-sync replicas have the record; 1: the leader has it; 0: do not wait. Default: -1",
    )


def main(argv: Sequence[str] | None = None, command: ProducerCommand = KAFKA) -> int:
    parser = command_options(command)
    options = parser.parse(argv)
    if not command.property_is_deprecated and options.property is not None:
        options.reader_property = [*(options.reader_property or ()), *options.property]
        options.property = None
    _check(parser, options)
    return run(lambda: _run(options, command.reader_properties), _report)


def _report(problem: KasparError) -> None:
    print(problem, file=sys.stderr)


def _check(parser: KafkaOptions, options: argparse.Namespace) -> None:
    parser.require(options, "topic")
    for name, deprecated, value, old_value in (
        ("--command-config", "--producer.config", options.command_config, options.producer_config),
        ("--command-property", "--producer-property", options.command_property, options.producer_property),
        ("--reader-property", "--property", options.reader_property, options.property),
    ):
        if value is not None and old_value is not None:
            parser.fail(f"Options {name} and {deprecated} cannot be specified together.")
    _warn_of_deprecated(options)
    if options.bootstrap_server is None:
        parser.fail("Error while validating the bootstrap address\n")
    if not are_addresses(options.bootstrap_server):
        parser.fail("Please provide valid host:port like host1:9091,host2:9092\n")


def _warn_of_deprecated(options: argparse.Namespace) -> None:
    for deprecated, value, instead in (
        ("--producer-property", options.producer_property, "--command-property"),
        ("--producer.config", options.producer_config, "--command-config"),
        ("--property", options.property, "--reader-property"),
        ("--max-partition-memory-bytes", options.max_partition_memory_bytes, "--batch-size"),
    ):
        if value is not None:
            when = "Apache Kafka 5.0" if instead == "--batch-size" else "a future version"
            print(f"Warning: {deprecated} is deprecated and will be removed in {when}. Use {instead} instead.")


def producer_properties(options: argparse.Namespace) -> dict[str, str]:
    """The properties of the file, overridden by the command line's, and those by options. Raises CommandFailed."""
    properties = load_properties(options.command_config or options.producer_config)
    properties |= key_values(options.command_property or options.producer_property or ())
    properties["bootstrap.servers"] = options.bootstrap_server
    properties["compression.type"] = options.compression_codec
    properties.setdefault("client.id", "console-producer")
    for name, (option, default) in _OPTIONS_OF_PROPERTIES.items():
        if (given := getattr(options, option)) is not None:
            properties[name] = str(given)
        else:
            properties.setdefault(name, default)
    if options.max_partition_memory_bytes is not None:
        properties["batch.size"] = str(options.max_partition_memory_bytes)
    return properties


def _run(options: argparse.Namespace, defaults: Mapping[str, str]) -> None:
    properties = {**defaults, **load_properties(options.reader_config)}
    properties |= key_values(options.reader_property or options.property or ())
    reader = line_reader(options.line_reader, options.topic, properties)
    if reader is None:
        raise CommandFailed(
            f"java.lang.ClassNotFoundException: {options.line_reader}: "
            f"Java classes cannot be loaded, and of Kafka's line readers {READER_CLASS} is here"
        )
    sending = Sending(options.topic, producer_properties(options), sync=options.sync)
    try:
        _send_lines(sys.stdin.buffer, reader, sending)
    finally:
        sending.finish()  # also after Ctrl-C


def _send_lines(source: BinaryIO, reader: LineReader, sending: Sending) -> None:
    prompt = _Prompt(source, sending)
    splitter = LineSplitter()
    count = 0
    while piece := prompt.read():
        count = _send(splitter.feed(piece), count, reader, sending)
    _send(list(splitter.finish()), count, reader, sending)


def _send(lines: list[bytes], count: int, reader: LineReader, sending: Sending) -> int:
    """Send the lines. `count` is the number of lines before them; returns the number including them."""
    if reader.values_only:
        sending.send_values(lines)
    else:
        for number, line in enumerate(lines, count + 1):
            sending.send(reader.parse(line, number))
        sending.poll()
    return count + len(lines)


class _Prompt:
    """Reads pieces of standard input, with a prompt on a terminal. While nothing is typed, failed records are
    reported.
    """

    def __init__(self, source: BinaryIO, sending: Sending) -> None:
        self._source = source
        self._sending = sending
        self._is_shown = source.isatty() and sys.stdout.isatty()

    def read(self) -> bytes:
        """The next piece; empty at the end."""
        if not self._is_shown:
            piece: bytes = self._source.read1(_PIECE_BYTES)  # type: ignore[attr-defined]  # of every buffered reader
            return piece
        print(">", end="", flush=True)
        while not select.select([self._source], [], [], _PROMPT_POLL_S)[0]:
            self._sending.poll()
        return os.read(self._source.fileno(), _PIECE_BYTES)


if __name__ == "__main__":
    sys.exit(main())
