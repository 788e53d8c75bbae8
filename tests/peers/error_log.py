"""The ERRORs of a broker's log file, and those of them that a test expects."""

import re
from pathlib import Path

# An entry of the log is a line that starts with the time, and what follows it: a traceback.
_ENTRY_START = re.compile(r"\n?^(?=\[\d{4}-)", re.MULTILINE)
_ERROR = re.compile(r"\A\[[^\]]+\] (ERROR|CRITICAL) |^Traceback \(most recent call last\)", re.MULTILINE)


class ErrorLog:
    def __init__(self, file: Path) -> None:
        self._file = file
        self._expected: list[re.Pattern[str]] = []
        self._seen_bytes = 0

    def expect(self, pattern: str) -> None:
        """From now on a logged ERROR that matches this pattern is no failure."""
        self._expected.append(re.compile(pattern))

    def unexpected(self) -> list[str]:
        """What was logged as an ERROR since the last call and nobody expected, tracebacks included."""
        if not self._file.exists():
            return []
        with self._file.open("rb") as file:
            file.seek(self._seen_bytes)
            fresh = file.read()
        whole, _, _ = fresh.rpartition(b"\n")
        self._seen_bytes += len(whole)
        entries = _ENTRY_START.split(whole.decode(errors="replace"))
        return [entry for entry in entries if _ERROR.search(entry) and not any(e.search(entry) for e in self._expected)]
