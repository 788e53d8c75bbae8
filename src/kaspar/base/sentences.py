"""Parts of sentences for people: counts, lists of names, sizes and durations."""

from collections.abc import Iterable


def counted(count: int, one: str, many: str | None = None) -> str:
    """1 topic, 2 topics; `many` is the plural if it is not formed with an s."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def some(names: Iterable[object], most: int = 5) -> str:
    """The first few names: "a, b, c and 12 more"."""
    listed = [str(name) for name in names]
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def bytes_text(count: float) -> str:
    """A size in the unit that fits, of those that are powers of 1024."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def duration_text(seconds: float) -> str:
    """A duration in the unit that fits: 40 s, 12 minutes, 5 hours, 3 days."""
    for limit, size, unit in ((120, 1, "s"), (7200, 60, "minutes"), (172_800, 3600, "hours")):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86_400:.0f} days"
