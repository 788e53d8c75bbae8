"""kafka-json-schema-console-producer: sends lines of JSON as JSON records with a schema."""

import sys
from collections.abc import Sequence
from typing import Final

from kaspar.tools.command_line import KafkaOptions
from kaspar.tools.console_producer import command
from kaspar.tools.schema_console.commands import producer_command
from kaspar.tools.schema_records.formats import JSON_SCHEMA

_COMMAND: Final = producer_command(
    "kafka-json-schema-console-producer",
    JSON_SCHEMA,
    'echo \'{"name": "Ada"}\' | kafka-json-schema-console-producer --bootstrap-server localhost:9092 --topic people '
    '--property value.schema=\'{"type":"object","properties":{"name":{"type":"string"}}}\'',
)


def command_options() -> KafkaOptions:
    return command.command_options(_COMMAND)


def main(argv: Sequence[str] | None = None) -> int:
    return command.main(argv, _COMMAND)


if __name__ == "__main__":
    sys.exit(main())
