"""What stores have to do, as plainly as can be: dicts, and every rule written out."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class KeyValueModel:
    """A map, in the order of its keys' bytes."""

    rows: dict[bytes, Any] = field(default_factory=dict)

    def put(self, key: bytes, value: Any) -> None:
        if value is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = value

    def get(self, key: bytes) -> Any:
        return self.rows.get(key)

    def range(self, first: bytes | None, last: bytes | None) -> list[tuple[bytes, Any]]:
        """Both bounds are inclusive."""
        return [
            (key, value)
            for key, value in sorted(self.rows.items())
            if (first is None or key >= first) and (last is None or key <= last)
        ]


@dataclass
class SegmentedModel:
    """Entries that expire: the time of each is the start of a window or the end of a session."""

    retention_ms: int
    now: int = -1
    entries: dict[tuple[bytes, int, int], Any] = field(default_factory=dict)
    """By key, time, and the sequence number of the window or the start of the session."""

    @property
    def interval_ms(self) -> int:
        return max(self.retention_ms // 2, 60_000)

    def put(self, key: bytes, time: int, rest: int, value: Any) -> None:
        self.now = max(self.now, time)
        if time // self.interval_ms < (self.now - self.retention_ms) // self.interval_ms:
            return
        if value is None:
            self.entries.pop((key, time, rest), None)
        else:
            self.entries[key, time, rest] = value

    def visible(self) -> list[tuple[bytes, int, int, Any]]:
        """Those within the retention: by segment, then by the bytes of key, time and rest."""
        found = [
            (key, time, rest, value)
            for (key, time, rest), value in self.entries.items()
            if time > self.now - self.retention_ms
        ]
        found.sort(
            key=lambda entry: (entry[1] // self.interval_ms, entry[0] + entry[1].to_bytes(8) + entry[2].to_bytes(8))
        )
        return found

    def get(self, key: bytes, time: int, rest: int) -> Any:
        return next((value for *entry, value in self.visible() if entry == [key, time, rest]), None)
