"""Dates in Java's patterns, and the summary of latencies."""

from datetime import datetime

import pytest

from kaspar.tools.command_line import CommandFailed
from kaspar.tools.perf.java_dates import format_date
from kaspar.tools.perf.latency_command import summary

WHEN_MS = datetime(2026, 3, 4, 15, 6, 7, 89_000).timestamp() * 1000


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd HH:mm:ss:SSS", "2026-03-04 15:06:07:089"),
        ("yy/M/d h:m:s", "26/3/4 3:6:7"),
        ("yyyy'T'HH 'o''clock'", "2026T15 o'clock"),
        ("D K k", "63 3 15"),
    ],
)
def test_dates_have_javas_patterns(pattern: str, text: str) -> None:
    assert format_date(pattern, WHEN_MS) == text


def test_letter_without_meaning() -> None:
    with pytest.raises(CommandFailed, match="Illegal pattern character 'Q'"):
        format_date("yyyy QQ", WHEN_MS)


def test_summary_of_latencies() -> None:
    assert summary([number + 0.5 for number in range(1000)]) == [
        "Avg latency: 500.0000 ms",
        "Percentiles: 50th = 500, 99th = 990, 99.9th = 999",
    ]
