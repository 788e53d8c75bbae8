"""`kaspar help`: shows the help of a command, as --help does."""

from collections.abc import Sequence

import click

from kaspar.cli.command import Command, Group

_EXAMPLES = """\
examples:
  kaspar help
  kaspar help topic create
"""


@click.command("help", cls=Command, epilog=_EXAMPLES)
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def command(context: click.Context, /, words: Sequence[str]) -> None:
    """Show the help of a command, as --help does."""
    found = context.find_root()
    for word in words:
        group = found.command
        if not isinstance(group, Group):
            raise click.UsageError(f"'{found.command_path}' has no commands", context)
        name, subcommand, _ = group.resolve_command(found, [word])
        assert subcommand is not None
        found = click.Context(subcommand, info_name=name, parent=found)
    click.echo(found.get_help())
