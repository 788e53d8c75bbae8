"""`kaspar rest [FILE]`: runs the REST proxy."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from kaspar.cli.command import Command
from kaspar.cli.parameters import override_option

_EXAMPLES: Final = """\
examples:
  kaspar rest                                          on 127.0.0.1:8082, for the brokers of localhost:9092
  kaspar rest kafka-rest.properties
  kaspar rest --override bootstrap.servers=b1:9092,b2:9092 --override schema.registry.url=http://registry:8081

Then, in another terminal:
  curl localhost:8082/topics
  curl localhost:8082/v3/clusters
  curl -H 'content-type: application/vnd.kafka.json.v2+json' \\
       -d '{"records": [{"value": 1}]}' localhost:8082/topics/orders

'kaspar up' runs one beside its brokers.
"""


@click.command("rest", cls=Command, epilog=_EXAMPLES)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@override_option
def command(file: Path | None, overrides: Sequence[str]) -> int:
    """Run the REST proxy until SIGTERM or Ctrl-C: programs without a Kafka client produce and consume records, and
    manage topics, over HTTP. FILE has its settings, with Confluent's names (docs/reference/rest-settings.md). Works
    with Kaspar and Apache Kafka clusters. Needs kaspar[rest]."""
    from kaspar.services.start_command import start

    return start("rest", file, overrides)
