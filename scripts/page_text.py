"""Pieces of the reference pages of commands."""

import re

NOTE = "This page is written by `scripts/command_pages.py` from the command's own help.\n"


def cell(text: str) -> str:
    """Text in a table. Characters that mean something to Markdown stand for themselves."""
    return re.sub(r"([|*_`\[\]<\\])", r"\\\1", " ".join(text.split()))


def code_block(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines()) + "\n"
