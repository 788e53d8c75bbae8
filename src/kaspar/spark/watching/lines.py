"""Lines that are updated in place on a terminal."""

import shutil
from collections.abc import Sequence
from typing import TextIO


class LiveLines:
    """For one writer at a time. Other output to the same terminal must use `say`, or it would be overwritten."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._drawn: Sequence[str] = ()

    def show(self, lines: Sequence[str]) -> None:
        """Show these lines in place of those shown before."""
        self._write("", lines)

    def say(self, line: str) -> None:
        """Print a permanent line, above the others."""
        self._write(f"{line}\x1b[K\n", self._drawn)

    def _write(self, before: str, lines: Sequence[str]) -> None:
        width = shutil.get_terminal_size().columns - 1  # a wrapped line would count as two
        up = f"\x1b[{len(self._drawn)}A" if self._drawn else ""
        drawn = "".join(f"{line[:width]}\x1b[K\n" for line in lines)
        below = "\x1b[J" if len(lines) < len(self._drawn) else ""
        print(up + before + drawn + below, end="", file=self._out, flush=True)
        self._drawn = tuple(lines)
