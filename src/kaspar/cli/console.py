"""`kaspar console [FILE]`: runs the web console."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from kaspar.cli.command import Command
from kaspar.cli.parameters import override_option

_EXAMPLES: Final = """\
examples:
  kaspar console                                       on http://127.0.0.1:8080, for the brokers of localhost:9092
  kaspar console console.properties
  kaspar console --override bootstrap.servers=b1:9092,b2:9092 --override schema.registry.url=http://registry:8081
  kaspar console --override kaspar.metrics.urls=1=http://b1:9404/metrics,2=http://b2:9404/metrics
  kaspar console --override kaspar.console.read.only=true

'kaspar up' runs one beside its brokers.
"""


@click.command("console", cls=Command, epilog=_EXAMPLES)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@override_option
def command(file: Path | None, overrides: Sequence[str]) -> int:
    """Run the web console until SIGTERM or Ctrl-C: brokers, topics, messages, groups, schemas, pipelines and more in a
    browser. FILE has its settings (docs/reference/console-settings.md). It listens on the loopback address by default;
    with a log-in, the brokers' ACLs decide what each user can see and change. Works with Kaspar and Apache Kafka
    clusters, and can be started before them. Needs kaspar[console]."""
    from kaspar.services.start_command import start

    return start("console", file, overrides)
