"""Kafka's include lists, which select topics in several commands."""

import re

from kaspar.tools.command_line import CommandFailed


def topic_pattern(text: str) -> re.Pattern[str]:
    """The list as one pattern for whole names. Names are separated by commas; blanks and quotes around the list are
    removed.
    """
    pattern = text.strip().replace(",", "|").replace(" ", "").strip("\"'")
    try:
        return re.compile(pattern)
    except re.error:
        raise CommandFailed(f"{pattern} is an invalid regex.") from None
