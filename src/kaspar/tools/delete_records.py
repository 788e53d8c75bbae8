"""kafka-delete-records: deletes the records of partitions before given offsets."""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from typing import Final

from kaspar.base.errors import Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.records import delete_records
from kaspar.tools import json_fields
from kaspar.tools.client_config import add_command_config
from kaspar.tools.command_line import CommandFailed, KafkaOptions, open_admin, read_file, run
from kaspar.tools.kafka_errors import exception_text, report

_VERSION: Final = 1


def command_options() -> KafkaOptions:
    options = KafkaOptions(
        "kafka-delete-records",
        "Delete the records of partitions before given offsets. Consumers no longer get them; disk space is freed by "
        "whole segments.",
        example="kafka-delete-records --bootstrap-server localhost:9092 --offset-json-file offsets.json",
    )
    options.add_argument("--bootstrap-server", metavar="HOST:PORT", help="brokers to connect to. REQUIRED")
    options.add_argument(
        "--offset-json-file",
        metavar="FILE",
        help='a JSON file: {"partitions": [{"topic": "foo", "partition": 1, "offset": 100}], "version": 1}. The offset '
        "is that of the first record to keep; -1 keeps none. REQUIRED",
    )
    add_command_config(options)
    return options


def main(argv: Sequence[str] | None = None) -> int:
    parser = command_options()
    options = parser.parse(argv)
    parser.require(options, "bootstrap-server", "offset-json-file")
    return run(lambda: _run(options), report)


def _run(options: argparse.Namespace) -> None:
    before = parse_offsets(read_file(options.offset_json_file))
    with open_admin(options.bootstrap_server, options.command_config, client_id="kafka-delete-records") as admin:
        print("Executing records delete operation")
        results = delete_records(admin, before)
        print("Records delete operation completed:")
        for where, result in results.items():
            if isinstance(result, Refused):
                print(f"partition: {where}\terror: {exception_text(result)}")
            else:
                print(f"partition: {where}\tlow_watermark: {result}")


def parse_offsets(text: str) -> dict[TopicPartition, int]:
    """The offsets in a file: {"partitions": [{"topic": "foo", "partition": 1, "offset": 1}], "version": 1}."""
    fields = json_fields.as_object(_parse(text))
    version = json_fields.as_integer(fields.get("version", _VERSION))
    if version != _VERSION:
        raise CommandFailed(f"Not supported version field value {version}")
    if "partitions" not in fields:
        raise CommandFailed("Missing partitions field")
    entries = []
    for entry in json_fields.as_array(fields["partitions"]):
        each = json_fields.as_object(entry)
        topic = json_fields.as_string(json_fields.field(each, "topic"))
        partition = json_fields.as_integer(json_fields.field(each, "partition"))
        offset = json_fields.as_integer(json_fields.field(each, "offset"), "Long")
        entries.append((TopicPartition(topic, partition), offset))
    counts = Counter(where for where, _ in entries)
    if duplicates := [str(where) for where, count in sorted(counts.items()) if count > 1]:
        raise CommandFailed(f"Offset json file contains duplicate topic partitions: {','.join(duplicates)}")
    return dict(entries)


def _parse(text: str) -> object:
    if text and text.isspace():
        return None
    try:
        return json.loads(text)
    except ValueError:
        raise CommandFailed("The input string is not a valid JSON") from None
