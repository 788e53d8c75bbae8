"""Standard input, output and error of the command, in whatever state the caller left them."""

import io
import os
import sys
from typing import TextIO


def prepare_standard_streams() -> None:
    """A stream that was closed (`>&-`) is /dev/null, and what an encoding other than UTF-8 lacks is escaped."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - open until the process ends
    if isinstance(sys.stdout, io.TextIOWrapper) and not is_utf8(sys.stdout):
        sys.stdout.reconfigure(errors="backslashreplace")


def is_utf8(stream: TextIO) -> bool:
    return (stream.encoding or "utf-8").lower() in ("utf-8", "utf8")  # None: a stream in memory, which takes any text
