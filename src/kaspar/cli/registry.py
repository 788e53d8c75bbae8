"""`kaspar registry [FILE]`: runs the schema registry."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from kaspar.cli.command import Command
from kaspar.cli.parameters import override_option

_EXAMPLES: Final = """\
examples:
  kaspar registry                                      on 127.0.0.1:8081, for the brokers of localhost:9092
  kaspar registry schema-registry.properties
  kaspar registry --override kafkastore.bootstrap.servers=b1:9092,b2:9092 --override listeners=http://0.0.0.0:8081
  kaspar registry --override schema.compatibility.level=FULL

Then, in another terminal:
  curl localhost:8081/subjects
  curl -H 'content-type: application/json' -d '{"schema": "\\"string\\""}' localhost:8081/subjects/orders-value/versions

'kaspar up' runs one beside its brokers. Instances that share a topic elect a leader, to which the others forward
writes.
"""


@click.command("registry", cls=Command, epilog=_EXAMPLES)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@override_option
def command(file: Path | None, overrides: Sequence[str]) -> int:
    """Run the schema registry until SIGTERM or Ctrl-C, for clients of Confluent's. FILE has its settings, with
    Confluent's names (docs/reference/registry-settings.md). The schemas are kept in the topic _schemas of a Kaspar or
    Apache Kafka cluster. Needs kaspar[registry]."""
    from kaspar.services.start_command import start

    return start("registry", file, overrides)
