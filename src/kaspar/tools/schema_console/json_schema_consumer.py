"""kafka-json-schema-console-consumer: prints JSON records with a schema as JSON."""

import sys
from collections.abc import Sequence
from typing import Final

from kaspar.tools.command_line import KafkaOptions
from kaspar.tools.console_consumer import command
from kaspar.tools.schema_console.commands import consumer_command
from kaspar.tools.schema_records.formats import JSON_SCHEMA

_COMMAND: Final = consumer_command("kafka-json-schema-console-consumer", JSON_SCHEMA)


def command_options() -> KafkaOptions:
    return command.command_options(_COMMAND)


def main(argv: Sequence[str] | None = None) -> int:
    return command.main(argv, _COMMAND)


if __name__ == "__main__":
    sys.exit(main())
