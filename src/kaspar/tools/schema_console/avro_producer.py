"""kafka-avro-console-producer: sends lines of JSON as Avro records."""

import sys
from collections.abc import Sequence
from typing import Final

from kaspar.tools.command_line import KafkaOptions
from kaspar.tools.console_producer import command
from kaspar.tools.schema_console.commands import producer_command
from kaspar.tools.schema_records.formats import AVRO

_COMMAND: Final = producer_command(
    "kafka-avro-console-producer",
    AVRO,
    'echo \'{"name": "Ada"}\' | kafka-avro-console-producer --bootstrap-server localhost:9092 --topic people '
    '--property value.schema=\'{"type":"record","name":"Person","fields":[{"name":"name","type":"string"}]}\'',
)


def command_options() -> KafkaOptions:
    return command.command_options(_COMMAND)


def main(argv: Sequence[str] | None = None) -> int:
    return command.main(argv, _COMMAND)


if __name__ == "__main__":
    sys.exit(main())
