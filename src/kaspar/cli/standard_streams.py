"""Prepares standard input, output and error of the command, which the caller may have closed."""

import io
import os
import sys
from typing import TextIO


def prepare_standard_streams() -> None:
    """Replace closed streams (`>&-`) by /dev/null, and escape characters that the output's encoding lacks."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - open until the process ends
    if isinstance(sys.stdout, io.TextIOWrapper) and not is_utf8(sys.stdout):
        sys.stdout.reconfigure(errors="backslashreplace")


def is_utf8(stream: TextIO) -> bool:
    return (stream.encoding or "utf-8").lower() in ("utf-8", "utf8")  # None: a stream in memory, which accepts any text
