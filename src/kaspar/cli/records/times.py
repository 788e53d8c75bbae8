"""Parses times as users write them: "10 minutes ago", "yesterday", "2026-11-17T10:00", milliseconds since 1970.

A time without a zone is local, with the UTC offset that this machine's zone has at that time: a time in July is in
summer time, even in November. The current time is an argument, so that a command reads the clock only once.
"""

import re
from datetime import UTC, datetime, time, timedelta
from typing import Final

FORMS: Final = "'10 minutes ago', '1h30m ago', 'yesterday 14:30', '2026-11-17T10:00' or milliseconds since 1970"
MIN_EPOCH_MS: Final = 100_000_000_000
"""Where both are allowed, a number from here on (March 1973) is a time in milliseconds, and a smaller one an offset."""

_MAX_TIMESTAMP_MS: Final = 2**63 - 1

_SECONDS: Final = {
    "s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600,
    "d": 86400, "day": 86400, "w": 604800, "week": 604800,
}  # fmt: skip
_UNIT: Final = re.compile(r"(?P<count>\d+(?:\.\d+)?|an?\b)\s*(?P<unit>[a-z]+?)s?(?![a-z])", re.IGNORECASE)
_DAYS_BACK: Final = {"today": 0, "yesterday": 1}


def parse_time(text: str, now: datetime) -> int:
    """Parse a time to milliseconds since 1970. Earlier times become 0, because negative numbers have special meanings
    for brokers, such as -1 for the end. `now` has a time zone. Raises ValueError with a message for users."""
    words = text.strip()
    if words.startswith("@"):
        words = words[1:].strip()
    try:
        timestamp_ms = int(words) if words.isdecimal() else max(0, epoch_ms(_parse(words, now)))
        if timestamp_ms > _MAX_TIMESTAMP_MS:
            raise OverflowError
        return timestamp_ms
    except (ValueError, OverflowError):
        raise ValueError(f"'{text}' is not a time: use a form such as {FORMS}") from None


def _parse(words: str, now: datetime) -> datetime:
    lower = words.lower()
    if lower == "now":
        return now
    if lower.endswith(" ago"):
        return now - parse_duration(lower.removesuffix(" ago"))
    day, _, clock = lower.partition(" ")
    if day in _DAYS_BACK:
        at = time.fromisoformat(clock.strip()) if clock else time()
        return _local(datetime.combine(now.date() - timedelta(days=_DAYS_BACK[day]), at))
    if ":" in words[:3]:
        return _local(datetime.combine(now.date(), time.fromisoformat(words)))
    return _local(datetime.fromisoformat(words))


def _local(moment: datetime) -> datetime:
    """The moment with a time zone, by default that of this machine."""
    if moment.tzinfo is not None:
        return moment
    return moment.astimezone() if moment.year > 1 else moment.replace(tzinfo=UTC)  # astimezone() fails in the year 1


def parse_duration(text: str) -> timedelta:
    """Parse a duration such as '10 minutes', 'an hour', '1h30m' or '2 days 3 hours'. Raises ValueError with a message
    for users.
    """
    seconds = 0.0
    position = 0
    words = text.strip()
    while position < len(words):
        match = _UNIT.match(words, position)
        if match is None or (unit := match["unit"].lower()) not in _SECONDS:
            break
        count = match["count"].lower()
        seconds += (1.0 if count in ("a", "an") else float(count)) * _SECONDS[unit]
        position = match.end()
        while position < len(words) and words[position] in " ,":
            position += 1
    if not words or position < len(words):
        raise ValueError(f"'{text}' is not a duration: use a form such as '10 minutes', '90s' or '1h30m'")
    return timedelta(seconds=seconds)


def epoch_ms(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def local_time(timestamp_ms: int) -> str:
    """Format a time in the local zone as '2026-11-17 10:00:00.123', or as the number itself if it has no date."""
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000)
    except (ValueError, OverflowError, OSError):
        return str(timestamp_ms)
    return moment.isoformat(sep=" ", timespec="milliseconds")
