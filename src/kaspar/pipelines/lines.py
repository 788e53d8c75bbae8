"""The progress of a pipeline as text: parts of a line on the terminal, cells of a table."""

import datetime
from typing import Final

from kaspar.pipelines.pipeline import PipelineProgress
from kaspar.pipelines.statuses import PipelineStatus, State
from kaspar.supervisor.back_off import FIRST_DELAY_S, LONGEST_DELAY_S, STABLE_AFTER_S

_UNITS: Final = ("B", "kB", "MB", "GB", "TB")
_UNKNOWN: Final = "-"


def status_line(status: PipelineStatus) -> str:
    """The state of a pipeline in one line, with its progress, or why it is not running."""
    parts = [f"{status.name}: {status.state}"]
    if status.state is State.RUNNING:
        parts += progress_parts(status.progress)
        if status.progress.dropped:
            parts.append(f"dropped {sum(status.progress.dropped.values()):,}")
        if status.progress.stream_time_ms is not None:
            parts.append(f"at {event_time(status.progress.stream_time_ms)}")
    elif status.state in (State.RESTARTING, State.FAILED) and status.reason is not None:
        parts = [f"{status.name}: {status.state}: {status.reason}"]
    if status.restarts:
        parts.append(f"{status.restarts} restart{'s' if status.restarts > 1 else ''}")
    return "   ".join(parts)


def progress_parts(progress: PipelineProgress) -> list[str]:
    parts = []
    if progress.input_rows_per_second is not None:
        parts.append(f"in {progress.input_rows_per_second:>9,.0f} rows/s")
    if progress.processed_rows_per_second is not None:
        parts.append(f"done {progress.processed_rows_per_second:>9,.0f} rows/s")
    if progress.batch_ms is not None:
        parts.append(f"{progress.batch_ms:>6,} ms a batch")
    if progress.lag is not None:
        parts.append(f"lag {progress.lag:>7,}")
    if progress.state_rows is not None or progress.state_bytes is not None:
        parts.append(f"state {state_size(progress)}")
    return parts


def dropped_records(progress: PipelineProgress) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in sorted((progress.dropped or {}).items()))


def event_time(ms: int) -> str:
    return datetime.datetime.fromtimestamp(ms / 1000).isoformat(sep=" ", timespec="seconds")


def rate(progress: PipelineProgress) -> str:
    known = progress.input_rows_per_second
    return _UNKNOWN if known is None else f"{known:,.0f}"


def number(value: int | None) -> str:
    return _UNKNOWN if value is None else f"{value:,}"


def state_size(progress: PipelineProgress) -> str:
    if progress.state_bytes is not None:
        return byte_size(progress.state_bytes)
    return _UNKNOWN if progress.state_rows is None else f"{progress.state_rows:,} rows"


def byte_size(count: int) -> str:
    size = float(count)
    for unit in _UNITS:
        if size < 1000 or unit == _UNITS[-1]:
            break
        size /= 1000
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"


def age(ms: int) -> str:
    """A duration in its two largest units."""
    seconds = max(0, ms // 1000)
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if days:
        return f"{days} d {hours % 24} h"
    if hours:
        return f"{hours} h {minutes % 60} min"
    if minutes:
        return f"{minutes} min {seconds % 60} s"
    return f"{seconds} s"


def restart_policy() -> str:
    """Explains what happens to a pipeline that fails."""
    return (
        f"Failed pipelines are restarted after {FIRST_DELAY_S:g} s; the delay doubles with each failure, up to "
        f"{LONGEST_DELAY_S:g} s, and is reset after {STABLE_AFTER_S:g} s without a failure. "
        "A stopped pipeline stays stopped."
    )
