"""What commands ask and show on a terminal: a confirmation before destructive work, a bar while long work lasts."""

import sys
from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeVar

import click

from kaspar.cli.failures import CommandFailed

T = TypeVar("T")


def yes_option(function: Callable[..., T]) -> Callable[..., T]:
    return click.option("-y", "--yes", is_flag=True, help="Do not ask; without a terminal nothing is asked anyway.")(
        function
    )


def confirm(question: str, *, yes: bool) -> None:
    """Ask on a terminal. Raises CommandFailed unless it is confirmed."""
    if yes or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    if not click.confirm(question, err=True):
        raise CommandFailed("nothing was changed")


def with_progress(items: Collection[T], description: str) -> Iterator[T]:
    """The items, with a bar on the terminal that moves with each."""
    if not sys.stderr.isatty() or len(items) < 2:
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(items, description, console=Console(stderr=True), transient=True)


def in_batches(items: Collection[T], size: int) -> list[list[T]]:
    """So many at a time, for requests with a bar."""
    all_items = list(items)
    return [all_items[start : start + size] for start in range(0, len(all_items), size)]


def secret_option(prompt: str) -> Callable[[Any], Any]:
    """A password: asked for on a terminal, or one line of standard input, so it appears in no list of processes."""

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
            raise click.UsageError("a password is needed: one line of standard input, or --password", context)
        return line

    return click.option(
        "--password",
        metavar="PASSWORD",
        callback=read,
        help="The password. Better not on the command line: without it a terminal asks, otherwise it is the first line "
        "of standard input.",
    )
