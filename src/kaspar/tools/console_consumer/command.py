"""kafka-console-consumer: its options, and the properties that follow from them."""

import argparse
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kaspar.base.errors import KasparError
from kaspar.tools.client_config import add_client_properties
from kaspar.tools.client_properties import key_values
from kaspar.tools.command_line import CommandFailed, KafkaOptions, integer, load_properties, long_integer, run
from kaspar.tools.console_consumer.consuming import (
    Consuming,
    Limits,
    OutputClosed,
    ReadingEnded,
    Source,
    pattern_of,
)
from kaspar.tools.console_consumer.formatters import DEFAULT_FORMATTER, Formatter, formatter
from kaspar.tools.java_numbers import parse_long

_OFFSETS: Final = {"earliest": -2, "latest": -1}
"""librdkafka uses the same numbers."""
_NEW_PROTOCOL: Final = (
    "The consumer rebalance protocol (KIP-848) is production-ready! Set group.protocol=consumer to try it out. "
    "See https://kafka.apache.org/documentation/#consumer_rebalance_protocol"
)
_FORMATTER_PROPERTIES: Final = (
    "print.timestamp, print.partition, print.offset, print.headers, print.key, print.value=true|false: what is printed "
    "of a record, in this order; only the value by default. key.separator (a tab), line.separator (a line feed) and "
    "headers.separator (a comma): what stands between them. null.literal: what is printed for null. key.deserializer, "
    "value.deserializer, headers.deserializer: how bytes are read. print.delivery and print.epoch print NOT_PRESENT"
)


@dataclass(frozen=True, slots=True)
class ConsumerCommand:
    """One of the commands that print records. They differ in how a record is printed."""

    name: str
    description: str
    example: str
    formatter: str
    formatters_help: str
    formatter_properties: Mapping[str, str] = field(default_factory=dict)
    """The default formatter properties."""
    formatter_properties_help: str = ""
    property_is_deprecated: bool = True
    """Whether --property is deprecated in favour of --formatter-property. Confluent's users usually give it."""


KAFKA: Final = ConsumerCommand(
    "kafka-console-consumer",
    "Print the records of topics as they come, until Ctrl-C, --max-messages or --timeout-ms.",
    example="kafka-console-consumer --bootstrap-server localhost:9092 --topic orders --from-beginning "
    "--formatter-property print.key=true",
    formatter=DEFAULT_FORMATTER,
    formatters_help="in org.apache.kafka.tools.consumer: DefaultMessageFormatter, LoggingMessageFormatter, "
    "NoOpMessageFormatter; OffsetsMessageFormatter and GroupMetadataMessageFormatter for __consumer_offsets, "
    "TransactionLogMessageFormatter for __transaction_state; or one of Confluent's, as kafka-avro-console-consumer has "
    "it",
)


def command_options(command: ConsumerCommand = KAFKA) -> KafkaOptions:
    options = KafkaOptions(command.name, command.description, example=command.example)
    options.add_argument("--bootstrap-server", metavar="HOST:PORT", help="brokers to connect to. REQUIRED")
    options.add_argument("--topic", help="the topic to read; this or --include")
    options.add_argument("--include", metavar="REGEX", help="read every topic whose whole name matches this pattern")
    options.add_argument("--partition", type=integer, metavar="ID", help="read this partition of --topic only")
    options.add_argument(
        "--offset",
        metavar="OFFSET",
        help="where to start in --partition: a number, earliest or latest. Default: latest",
    )
    options.add_argument(
        "--from-beginning",
        action="store_true",
        help="start with the earliest record where the group has no committed offset; otherwise with the next to come",
    )
    options.add_argument("--max-messages", type=integer, metavar="NUMBER", help="end after this many records")
    options.add_argument(
        "--timeout-ms", type=long_integer, metavar="MS", help="end when no record has come for this long"
    )
    options.add_argument(
        "--group", metavar="ID", help="the consumer group. By default a new one, which commits nothing"
    )
    options.add_argument(
        "--isolation-level",
        default=None,
        metavar="LEVEL",
        help="read_committed leaves out records of open and aborted transactions. Default: read_uncommitted",
    )
    options.add_argument(
        "--skip-message-on-error", action="store_true", help="continue after a record that cannot be printed"
    )
    _add_formatting(options, command)
    add_client_properties(options, "consumer")
    options.add_argument("--enable-systest-events", action="store_true", help="print shutdown_complete at the end")
    return options


def _add_formatting(options: KafkaOptions, command: ConsumerCommand) -> None:
    options.add_argument(
        "--formatter",
        default=command.formatter,
        metavar="CLASS",
        help=f"{command.formatters_help}. Default: {command.formatter}",
    )
    options.add_argument(
        "--formatter-property",
        action="append",
        metavar="KEY=VALUE",
        help=f"{command.formatter_properties_help}{_FORMATTER_PROPERTIES}",
    )
    options.add_argument(
        "--formatter-config", metavar="FILE", help="a file with such properties; --formatter-property wins"
    )
    options.add_argument(
        "--property",
        action="append",
        metavar="KEY=VALUE",
        help="deprecated: --formatter-property"
        if command.property_is_deprecated
        else "the same as --formatter-property",
    )
    options.add_argument(
        "--key-deserializer",
        metavar="CLASS",
        help="how keys are read, in org.apache.kafka.common.serialization: StringDeserializer, LongDeserializer, "
        "IntegerDeserializer, ShortDeserializer, DoubleDeserializer, FloatDeserializer, BooleanDeserializer, "
        "UUIDDeserializer, BytesDeserializer, ByteArrayDeserializer",
    )
    options.add_argument("--value-deserializer", metavar="CLASS", help="how values are read, by the same names")


def main(argv: Sequence[str] | None = None, command: ConsumerCommand = KAFKA) -> int:
    parser = command_options(command)
    options = parser.parse(argv)
    if not command.property_is_deprecated and options.property is not None:
        options.formatter_property = [*(options.formatter_property or ()), *options.property]
        options.property = None
    return run(lambda: _run(parser, options, command.formatter_properties), _report)


def _report(problem: KasparError) -> None:
    print(f"ERROR Unknown error when running consumer: \n{problem}", file=sys.stderr)


def _run(parser: KafkaOptions, options: argparse.Namespace, formatter_defaults: Mapping[str, str]) -> None:
    _check(parser, options)
    properties = consumer_properties(parser, options)
    source = _source(parser, options)
    write = _formatter(parser, options, formatter_defaults)
    timeout_s = options.timeout_ms / 1000 if options.timeout_ms is not None and options.timeout_ms >= 0 else None
    max_messages = None if options.max_messages in (None, -1) else options.max_messages
    consuming = Consuming(
        source,
        properties,
        Limits(max_messages, timeout_s),
        write,
        skip_message_on_error=options.skip_message_on_error,
    )
    if source.partition is None and properties.get("group.protocol", "classic").lower() == "classic":
        print(_NEW_PROTOCOL, file=sys.stderr, flush=True)
    try:
        _consume(consuming)
    finally:
        consuming.close()
        print(f"Processed a total of {consuming.count} messages", file=sys.stderr)
        if options.enable_systest_events:
            print("shutdown_complete")


def _consume(consuming: Consuming) -> None:
    try:
        consuming.run()
    except ReadingEnded as end:
        print(f"ERROR Error processing message, terminating consumer process: \n{end}", file=sys.stderr)
    except OutputClosed:
        print("Unable to write to standard out, closing consumer.", file=sys.stderr)


def _check(parser: KafkaOptions, options: argparse.Namespace) -> None:
    if (options.topic is None) == (options.include is None):
        parser.fail("Exactly one of the following arguments is required: [topic], [include]")
    if options.partition is not None:
        if options.topic is None:
            parser.fail("The topic is required when partition is specified.")
        if options.from_beginning and options.offset is not None:
            parser.fail("Options from-beginning and offset cannot be specified together.")
    elif options.offset is not None:
        parser.fail("The partition is required when offset is specified.")
    parser.require(options, "bootstrap-server")
    for name, deprecated, value, old_value in (
        ("--command-property", "--consumer-property", options.command_property, options.consumer_property),
        ("--command-config", "--consumer.config", options.command_config, options.consumer_config),
    ):
        if value is not None and old_value is not None:
            parser.fail(f"Options {deprecated} and {name} cannot be specified together.")
    for name, deprecated, old_value in (
        ("--command-property", "--consumer-property", options.consumer_property),
        ("--command-config", "--consumer.config", options.consumer_config),
    ):
        if old_value is not None:
            print(f"Option {deprecated} is deprecated and will be removed in a future version. Use {name} instead.")


def consumer_properties(parser: KafkaOptions, options: argparse.Namespace) -> dict[str, str]:
    """The properties of the file, overridden by the command line's, and those by options. Raises CommandFailed."""
    of_file = load_properties(options.command_config or options.consumer_config)
    of_words = key_values(options.command_property or options.consumer_property or ())
    groups = [options.group, of_file.get("group.id"), of_words.get("group.id")]
    given = list(dict.fromkeys(group for group in groups if group is not None))
    if len(given) > 1:
        parser.fail(
            "The group ids provided in different places (directly using '--group', via '--consumer-property', or via "
            f"'--consumer.config') do not match. Detected group ids: {', '.join(repr(each) for each in given)}"
        )
    if given and options.partition is not None:
        parser.fail("Options group and partition cannot be specified together.")
    properties = of_file | of_words
    reset = properties.setdefault("auto.offset.reset", "earliest" if options.from_beginning else "latest")
    if options.from_beginning and reset != "earliest":
        sentence = f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={reset}'"
        parser.fail(f"{sentence}, please remove one option")
    properties["bootstrap.servers"] = options.bootstrap_server
    properties.setdefault("client.id", "console-consumer")
    if options.isolation_level is not None:
        properties["isolation.level"] = options.isolation_level
    if given:
        properties["group.id"] = given[0]
    else:
        properties["group.id"] = f"console-consumer-{random.randrange(100_000)}"
        properties.setdefault("enable.auto.commit", "false")
    return properties


def _source(parser: KafkaOptions, options: argparse.Namespace) -> Source:
    offset = _OFFSETS["earliest"] if options.from_beginning else _OFFSETS["latest"]
    if options.offset is not None:
        text = options.offset.lower()
        if text not in _OFFSETS and not _is_offset(text):
            parser.fail(
                f"The provided offset value '{options.offset}' is incorrect. Valid values are 'earliest', 'latest', or "
                "a non-negative long."
            )
        offset = _OFFSETS[text] if text in _OFFSETS else int(text)
    include = None if options.include is None else pattern_of(options.include)
    return Source(options.topic, options.partition, offset, include)


def _is_offset(text: str) -> bool:
    try:
        return parse_long(text) >= 0
    except ValueError:
        return False


def _formatter(parser: KafkaOptions, options: argparse.Namespace, defaults: Mapping[str, str]) -> Formatter:
    if options.property is not None and options.formatter_property is not None:
        parser.fail("Options --property and --formatter-property cannot be specified together.")
    if options.property is not None:
        print(
            "Option --property is deprecated and will be removed in a future version. Use --formatter-property instead."
        )
    try:
        properties = {**defaults, **load_properties(options.formatter_config)}
    except CommandFailed as problem:
        parser.fail(str(problem))
    for name, class_name in (("key", options.key_deserializer), ("value", options.value_deserializer)):
        if class_name:
            properties[f"{name}.deserializer"] = class_name
    properties |= key_values(options.formatter_property or options.property or ())
    write = formatter(options.formatter, properties)
    if write is None:
        parser.fail(f"{options.formatter} is not one of Kafka's formatters, and Java classes cannot be loaded")
    return write


if __name__ == "__main__":
    sys.exit(main())
