"""`kaspar monitor [FILE]`: runs the monitor."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from kaspar.cli.command import Command
from kaspar.cli.parameters import override_option

_EXAMPLES: Final = """\
examples:
  kaspar monitor                                       on 127.0.0.1:8000, for the brokers of localhost:9092
  kaspar monitor monitor.properties
  kaspar monitor --override bootstrap.servers=b1:9092,b2:9092 --override canary.enable=true

Then, in another terminal:
  curl localhost:8000/v3/kafka/local/consumer          the groups that have committed offsets
  curl localhost:8000/v3/kafka/local/consumer/billing/lag
  curl localhost:8000/v1/findings                      the doctor's findings
  curl localhost:8000/metrics                          for Prometheus

'kaspar up' runs one beside its brokers.
"""


@click.command("monitor", cls=Command, epilog=_EXAMPLES)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@override_option
def command(file: Path | None, overrides: Sequence[str]) -> int:
    """Run the monitor until SIGTERM or Ctrl-C: it evaluates consumer group lag as Burrow does, probes every broker with
    a canary, and diagnoses the cluster, with an HTTP API and metrics for Prometheus. FILE has its settings
    (docs/reference/monitor-settings.md). Works with Kaspar and Apache Kafka clusters. Needs kaspar[monitor]."""
    from kaspar.services.start_command import start

    return start("monitor", file, overrides)
