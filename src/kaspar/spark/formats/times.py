"""Parses dates and times in the forms that Spark casts from: 2024-05-01, 2024-05-01T12:30:00.25+02:00 and shorter.

Years are 0 to 9999. Fractions beyond a microsecond are truncated. Functions return None for a text without such a form.
"""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

_DATE = r"(?P<year>\d{4})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2})%s)?)?"
_CLOCK = r"(?P<hour>\d{1,2})(?::(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d{0,9}))?)?)?"
_DATE_ALONE = re.compile(_DATE % r"(?:[ T].*)?", re.ASCII | re.DOTALL)  # Spark's cast to a date also ignores a time
_MOMENT = re.compile(_DATE % rf"(?:[ T]{_CLOCK}\s*(?P<zone>\S.*)?)?", re.ASCII)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d{2}))?", re.ASCII)
_PARTS = (("month", 1), ("day", 1), ("hour", 0), ("minute", 0), ("second", 0))  # with their defaults
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_LARGEST_OFFSET_HOURS = 18  # of Java's ZoneOffset
_CYCLE_YEARS, _CYCLE = 400, timedelta(days=146_097)  # the calendar repeats; Python's begins in the year 1


def days_of(text: str) -> int | None:
    """Days since 1970."""
    found = _DATE_ALONE.fullmatch(text.strip())
    if found is None:
        return None
    year = int(found["year"])
    try:
        day = date(year or _CYCLE_YEARS, int(found["month"] or 1), int(found["day"] or 1))
    except ValueError:
        return None
    return (day - _EPOCH.date() - (timedelta() if year else _CYCLE)).days


def micros_of(text: str) -> int | None:
    """Microseconds since 1970 in UTC; a time without a zone is in UTC."""
    return _micros(text, _zone)


def micros_without_zone(text: str) -> int | None:
    """Microseconds since 1970 without a zone; a text with a zone is not accepted."""
    return _micros(text, lambda name: None if name else UTC)


def _micros(text: str, zone_of: Callable[[str], tzinfo | None]) -> int | None:
    found = _MOMENT.fullmatch(text.strip())
    zone = zone_of(found["zone"] or "") if found is not None else None
    if found is None or zone is None:
        return None
    year = int(found["year"])
    month, day, hour, minute, second = (int(found[part] or least) for part, least in _PARTS)
    fraction = int((found["fraction"] or "").ljust(6, "0")[:6])
    try:
        moment = datetime(year or _CYCLE_YEARS, month, day, hour, minute, second, fraction)
    except ValueError:
        return None
    offset = moment.replace(tzinfo=zone).utcoffset() or timedelta()
    return (moment - _EPOCH - offset - (timedelta() if year else _CYCLE)) // _MICROSECOND


def _zone(name: str) -> tzinfo | None:
    if name in ("", "Z", "UTC", "GMT", "UT"):
        return UTC
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        hours, minutes = int(offset["hours"]), int(offset["minutes"] or 0)
        if minutes > 59 or hours * 60 + minutes > _LARGEST_OFFSET_HOURS * 60:
            return None
        apart = timedelta(hours=hours, minutes=minutes)
        return timezone(apart if offset["sign"] == "+" else -apart)
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # no such zone, or no such file name
        return None
