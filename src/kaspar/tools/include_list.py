"""Kafka's include lists, by which several commands choose topics."""

import re

from kaspar.tools.command_line import CommandFailed


def topic_pattern(text: str) -> re.Pattern[str]:
    """The list as one pattern for whole names: commas separate, blanks and the quotes around it are left out."""
    pattern = text.strip().replace(",", "|").replace(" ", "").strip("\"'")
    try:
        return re.compile(pattern)
    except re.error:
        raise CommandFailed(f"{pattern} is an invalid regex.") from None
