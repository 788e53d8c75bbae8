"""Parses times in options, in the formats of Kafka's commands."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from kaspar.tools.command_line import CommandFailed

_DATETIME: Final = re.compile(
    r"(\d{1,4})-(\d{1,2})-(\d{1,2})T(\d{1,2}):(\d{1,2}):(\d{1,2})\.(\d{1,3})(?:Z|([+-])(\d\d)(?::?(\d\d))?)?",
    re.ASCII,
)
_DURATION: Final = re.compile(
    r"([-+]?)P(?:([-+]?\d+)D)?(?:(T)(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?)(\d+)(?:[.,](\d{0,9}))?S)?)?",
    re.ASCII | re.IGNORECASE,
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class UnreadableTime(CommandFailed):
    """Corresponds to the ParseException of Kafka's Utils.getDateTime."""


def parse_datetime(text: str) -> int:
    """Parse YYYY-MM-DDThh:mm:ss.sss to milliseconds since 1970, in UTC unless a time zone follows. As in Java's
    SimpleDateFormat, the digits after the point are a number of milliseconds: .5 is 5 ms."""
    if "T" not in text:
        raise UnreadableTime("Error parsing timestamp. It does not contain a 'T' according to ISO8601 format")
    found = _DATETIME.fullmatch(text)
    read_as = text if set(text.partition("T")[2]) & set("Z+-") else f"{text}Z"
    if found is None:
        raise UnreadableTime(f'Unparseable date: "{read_as}"')
    year, month, day, hour, minute, second, millisecond = map(int, found.groups()[:7])
    try:
        moment = datetime(year, month, day, hour, minute, second, millisecond * 1000, UTC)
    except ValueError:
        raise UnreadableTime(f'Unparseable date: "{read_as}"') from None
    sign, hours, minutes = found.groups()[7:]
    if sign is not None:
        east = timedelta(hours=int(hours), minutes=int(minutes or 0))
        moment = moment - east if sign == "+" else moment + east
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def parse_duration(text: str) -> int:
    """Parse PnDTnHnMnS to milliseconds, like Java's Duration. Fractions of a millisecond are rounded down."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise CommandFailed("Text cannot be parsed to a Duration")
    sign, days, in_day, hours, minutes, seconds_sign, seconds, fraction = found.groups()
    if (days is None and in_day is None) or (in_day is not None and (hours, minutes, seconds) == (None, None, None)):
        raise CommandFailed("Text cannot be parsed to a Duration")
    of_seconds = int(seconds or 0) * 10**9 + int((fraction or "").ljust(9, "0"))
    if seconds_sign == "-":
        of_seconds = -of_seconds
    whole = int(days or 0) * 86_400 + int(hours or 0) * 3_600 + int(minutes or 0) * 60
    nanoseconds = whole * 10**9 + of_seconds
    return (-nanoseconds if sign == "-" else nanoseconds) // 10**6
