"""Formats times with patterns of Java's SimpleDateFormat, except for letters that depend on Java's locales."""

import re
from datetime import datetime

from kaspar.tools.command_line import CommandFailed

_PART = re.compile(r"'((?:[^']|'')*)'|(([a-zA-Z])\3*)|([^a-zA-Z']+)")


def format_date(pattern: str, time_ms: float) -> str:
    """Format in the local time zone. Raises CommandFailed for an unknown letter."""
    when = datetime.fromtimestamp(time_ms / 1000).astimezone()
    return "".join(_part(found, when) for found in _PART.finditer(pattern))


def _part(found: "re.Match[str]", when: datetime) -> str:
    if found[2] is None:
        return found[4] if found[1] is None else found[1].replace("''", "'") or "'"
    letter, width = found[3], len(found[2])
    match letter:
        case "y" | "Y":
            return f"{when.year % 100:02}" if width == 2 else f"{when.year:0{width}}"
        case "M" | "L":
            return when.strftime("%b" if width == 3 else "%B") if width > 2 else f"{when.month:0{width}}"
        case "E":
            return when.strftime("%A" if width > 3 else "%a")
        case "a":
            return when.strftime("%p")
        case "z":
            return when.strftime("%Z")
        case "Z":
            return when.strftime("%z")
    numbers = {
        "d": when.day,
        "D": when.timetuple().tm_yday,
        "H": when.hour,
        "k": when.hour or 24,
        "K": when.hour % 12,
        "h": when.hour % 12 or 12,
        "m": when.minute,
        "s": when.second,
        "S": when.microsecond // 1000,
        "u": when.isoweekday(),
    }
    if letter not in numbers:
        raise CommandFailed(f"Illegal pattern character '{letter}'")
    return f"{numbers[letter]:0{width}}"
