"""Terminal interaction: confirmation before destructive changes, and a progress bar for long ones."""

import sys
from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeVar

import click

from kaspar.cli.failures import CommandFailed

T = TypeVar("T")


def yes_option(function: Callable[..., T]) -> Callable[..., T]:
    return click.option(
        "-y", "--yes", is_flag=True, help="Do not ask for confirmation. Without a terminal there is no prompt."
    )(function)


def confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation, on a terminal only. Raises CommandFailed if the user declines."""
    if yes or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    if not click.confirm(question, err=True):
        raise CommandFailed("nothing was changed")


def with_progress(items: Collection[T], description: str) -> Iterator[T]:
    """Iterate over the items, with a progress bar on a terminal."""
    if not sys.stderr.isatty() or len(items) < 2:
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(items, description, console=Console(stderr=True), transient=True)


def in_batches(items: Collection[T], size: int) -> list[list[T]]:
    """Split the items into batches of this size, for requests with a progress bar."""
    all_items = list(items)
    return [all_items[start : start + size] for start in range(0, len(all_items), size)]


def secret_option(prompt: str) -> Callable[[Any], Any]:
    """An option for a password. By default it is prompted for on a terminal or read from standard input, so that it
    does not appear in the process list.
    """

    def read(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
        if context.resilient_parsing:
            return None
        if value is not None:
            return value
        if sys.stdin.isatty():
            password: str = click.prompt(prompt, hide_input=True, confirmation_prompt=True, err=True)
            return password
        line = sys.stdin.readline().rstrip("\n")
        if not line:
            raise click.UsageError(
                "a password is required: pass it as one line of standard input, or with --password", context
            )
        return line

    return click.option(
        "--password",
        metavar="PASSWORD",
        callback=read,
        help="The password. Avoid passing it on the command line: by default it is prompted for, or read from the "
        "first line of standard input.",
    )
