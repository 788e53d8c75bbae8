"""`kaspar version`: shows the installed versions."""

import sys

import click

from kaspar import __version__
from kaspar.cli.command import Command


@click.command("version", cls=Command, epilog="Example: kaspar version")
def command() -> None:
    """Show the versions of Kaspar and Python, and whether the modules of the core are compiled."""
    from kaspar.base import compiled

    print(f"kaspar {__version__}, Python {sys.version.split()[0]}")
    for module in compiled.COMPILED_MODULES:
        form = (
            "compiled"
            if compiled.load(module).__name__ != module
            else "interpreted (slower: no C compiler was found at installation)"
        )
        print(f"  {module}: {form}")
