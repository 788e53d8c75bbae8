"""`kaspar broker [FILE]`: runs a broker.

If the first argument is the name of a command, such as `list`, it is that command; a file of this name is `./list`.
"""

from collections.abc import Sequence
from typing import Final

import click

from kaspar.cli.broker_views import describe, list_brokers, log_dirs
from kaspar.cli.command import Group
from kaspar.cli.parameters import override_option

_EXAMPLES: Final = """\
examples:
  kaspar broker                                   a broker on localhost:9092
  kaspar broker server.properties --override listeners=PLAINTEXT://127.0.0.1:9092
  kaspar broker list                              the brokers of a running cluster
"""
_RUN: Final = "run"


class _RunsABroker(Group):
    """A group that passes its arguments to `run` if they do not start with a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_about_group = bool(args) and (args[0] in ctx.help_option_names or self.get_command(ctx, args[0]) is not None)
        return super().parse_args(ctx, args if is_about_group else [_RUN, *args])


@click.group("broker", cls=_RunsABroker, epilog=_EXAMPLES, subcommand_metavar="[COMMAND | FILE] [ARGS]...")
def command() -> None:
    """Run a broker until SIGTERM or Ctrl-C: 'kaspar broker' on localhost:9092, 'kaspar broker FILE' with the settings
    of a file. Or show the brokers of a running cluster."""


for _view in (list_brokers, describe, log_dirs):
    command.add_command(_view)


@command.command(_RUN, epilog=_EXAMPLES)
@click.argument("properties", required=False)
@click.option("-daemon", "--daemon", is_flag=True, help="Run in the background.")
@override_option
def run(properties: str | None, daemon: bool, overrides: Sequence[str]) -> int:
    """Run a broker until SIGTERM or Ctrl-C. PROPERTIES is its settings file, with Kafka's names
    (docs/reference/broker-settings.md); without one it listens on localhost:9092."""
    from kaspar.tools.server_start import run as run_broker

    return run_broker(properties, overrides, daemon=daemon)
