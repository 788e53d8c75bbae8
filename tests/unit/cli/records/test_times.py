"""Times as people write them."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from kaspar.cli.records.times import epoch_ms, local_time, parse_duration, parse_time

HERE = timezone(timedelta(hours=2))
NOW = datetime(2026, 11, 17, 15, 30, 0, tzinfo=HERE)


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The zone of this machine is two hours east of Greenwich."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Etc/GMT-2")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize("text", ["2026-07-01T10:00", "2026-11-17T10:00"])
def test_local_time_has_the_offset_of_its_day(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo("Europe/Berlin"))
    with monkeypatch.context() as patched:  # ends before that of _here, which restores what was before both
        patched.setenv("TZ", "Europe/Berlin")
        time.tzset()
        assert parse_time(text, datetime(2026, 11, 17, 15, 30, tzinfo=UTC)) == epoch_ms(expected)


@pytest.mark.parametrize("text", ["1969-12-31T23:59:59.999Z", "0001-01-01", "60 weeks ago"])
def test_time_before_1970_is_no_name_of_an_offset(text: str) -> None:
    assert parse_time(text, datetime(1970, 1, 2, tzinfo=UTC)) == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", NOW),
        ("10 minutes ago", NOW - timedelta(minutes=10)),
        ("10min ago", NOW - timedelta(minutes=10)),
        ("an hour ago", NOW - timedelta(hours=1)),
        ("1h30m ago", NOW - timedelta(minutes=90)),
        ("2 days, 3 hours ago", NOW - timedelta(days=2, hours=3)),
        ("1.5 h ago", NOW - timedelta(minutes=90)),
        ("A week ago", NOW - timedelta(weeks=1)),
        ("today", datetime(2026, 11, 17, tzinfo=HERE)),
        ("yesterday", datetime(2026, 11, 16, tzinfo=HERE)),
        ("yesterday 14:30", datetime(2026, 11, 16, 14, 30, tzinfo=HERE)),
        ("10:15", datetime(2026, 11, 17, 10, 15, tzinfo=HERE)),
        ("2026-11-17", datetime(2026, 11, 17, tzinfo=HERE)),
        ("2026-11-17T10:00", datetime(2026, 11, 17, 10, tzinfo=HERE)),
        ("2026-11-17 10:00:05.250", datetime(2026, 11, 17, 10, 0, 5, 250_000, tzinfo=HERE)),
        ("2026-11-17T10:00Z", datetime(2026, 11, 17, 10, tzinfo=UTC)),
        ("2026-11-17T10:00+05:30", datetime(2026, 11, 17, 4, 30, tzinfo=UTC)),
    ],
)
def test_time_is_understood(text: str, expected: datetime) -> None:
    assert parse_time(text, NOW) == epoch_ms(expected)


@pytest.mark.parametrize("text", ["1763374800000", "@1763374800000", "0"])
def test_number_is_milliseconds(text: str) -> None:
    assert parse_time(text, NOW) == int(text.lstrip("@"))


@pytest.mark.parametrize(
    "text",
    ["", "soon", "10 bananas ago", "ago", "2026-13-01", "25:00", "yesterday noon", "99999999999 weeks ago", "9" * 20],
)
def test_what_is_no_time_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time: use a form such as '10 minutes ago'"):
        parse_time(text, NOW)


def test_duration_needs_a_unit() -> None:
    assert parse_duration("90s") == timedelta(seconds=90)
    with pytest.raises(ValueError, match="'90' is not a duration"):
        parse_duration("90")


def test_timestamp_that_no_calendar_has_is_shown_as_a_number() -> None:
    assert local_time(-(2**62)) == str(-(2**62))
    assert local_time(0).endswith(":00:00.000")
