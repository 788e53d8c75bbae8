"""The click classes of `kaspar` and its groups: help that keeps examples verbatim, and commands loaded on first use."""

import importlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

ALIASES: Mapping[str, str] = {"ls": "list", "rm": "delete"}
"""Aliases for the commands of a group. Help does not show them."""


class Command(click.Command):
    """A command whose epilog keeps its line breaks, because it contains examples."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.epilog:
            formatter.write_paragraph()
            formatter.write(f"{self.epilog.rstrip()}\n")


class Group(click.Group):
    """A group of commands, such as `kaspar topic`. Without a command it prints its help and exits with 2."""

    command_class = Command
    group_class = type

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, cmd_name) or super().get_command(ctx, ALIASES.get(cmd_name, cmd_name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands, each with its whole first sentence."""
        names = self.list_commands(ctx)
        commands = [(name, command) for name in names if (command := self.get_command(ctx, name)) is not None]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(limit=200)) for name, command in commands])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            ctx.fail(f"unknown command '{ctx.command_path} {args[0]}'{self._similar(ctx, args[0])}")
        return super().resolve_command(ctx, args)

    def _similar(self, ctx: click.Context, name: str) -> str:
        from difflib import get_close_matches

        close = get_close_matches(name, self.list_commands(ctx), n=1, cutoff=0.5)
        return f"; did you mean '{close[0]}'?" if close else ""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        Command.format_epilog(self, ctx, formatter)  # type: ignore[arg-type]  # needs only the epilog


class Entry(NamedTuple):
    """A command that is imported on first use."""

    module: str
    """The module that defines the click command, named `command`."""
    help: str
    """One line for the list of commands, so that listing imports none of them."""


class LazyGroup(Group):
    def __init__(
        self, *args: Any, sections: Mapping[str, Mapping[str, Entry]], aliases: Mapping[str, str], **more: Any
    ) -> None:
        """`sections`: the commands by name, under the headings of the help."""
        super().__init__(*args, **more)
        self._sections = sections
        self._entries = {name: entry for section in sections.values() for name, entry in section.items()}
        self._aliases = aliases

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self._entries.get(self._aliases.get(cmd_name, cmd_name))
        if entry is None:
            return None
        command = importlib.import_module(entry.module).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, entries in self._sections.items():
            with formatter.section(title):
                formatter.write_dl([(name, entry.help) for name, entry in entries.items()], col_max=14)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem

        names = [CompletionItem(name, help=entry.help) for name, entry in self._matching(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def _matching(self, incomplete: str) -> Iterator[tuple[str, Entry]]:
        return ((name, entry) for name, entry in self._entries.items() if name.startswith(incomplete))
