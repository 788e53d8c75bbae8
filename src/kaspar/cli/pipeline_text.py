"""The output of `kaspar pipeline list` and `describe` for people."""

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kaspar.pipelines.statuses import PipelineDetails, PipelineStatus

_COLUMNS: Final = ("name", "state", "since", "restarts", "rows/s", "lag", "batch ms", "state size")
_RIGHT: Final = frozenset({"restarts", "rows/s", "lag", "batch ms", "state size"})


def table(statuses: "Sequence[PipelineStatus]", now_ms: int) -> list[str]:
    """A line for each pipeline, followed by the reason if it does not run."""
    rows = [_cells(status, now_ms) for status in statuses]
    widths = [max(map(len, column)) for column in zip(_COLUMNS, *rows, strict=True)]
    lines = [_line(_COLUMNS, widths)]
    for row, status in zip(rows, statuses, strict=True):
        lines.append(_line(row, widths))
        if status.reason is not None and _is_failing(status):
            lines.append(f"  {status.reason}")
    return lines


def _cells(status: "PipelineStatus", now_ms: int) -> tuple[str, ...]:
    from kaspar.pipelines.lines import age, number, rate, state_size

    progress = status.progress
    return (
        status.name,
        status.state,
        age(now_ms - status.since_ms),
        str(status.restarts),
        rate(progress),
        number(progress.lag),
        number(progress.batch_ms),
        state_size(progress),
    )


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        f"{cell:>{width}}" if column in _RIGHT else f"{cell:<{width}}"
        for cell, width, column in zip(cells, widths, _COLUMNS, strict=True)
    ]
    return "  ".join(padded).rstrip()


def _is_failing(status: "PipelineStatus") -> bool:
    from kaspar.pipelines.statuses import State

    return status.state in (State.FAILED, State.RESTARTING)


def description(details: "PipelineDetails", now_ms: int) -> list[str]:
    from kaspar.pipelines.lines import age, dropped_records, event_time, progress_parts

    status = details.status
    lines = [
        f"{status.name}: {status.state} for {age(now_ms - status.since_ms)}, restarts: {status.restarts}",
        f"  program    {shlex.join((details.program, *details.arguments))}",
        f"  log        {details.log}",
    ]
    if parts := progress_parts(status.progress):
        lines.append(f"  progress   {', '.join(' '.join(part.split()) for part in parts)}")
    if status.progress.stream_time_ms is not None:
        lines.append(f"  time       {event_time(status.progress.stream_time_ms)} (of events)")
    if status.progress.dropped:
        lines.append(f"  dropped    {dropped_records(status.progress)}")
    for query in details.queries:
        doing = query.doing if query.is_active else "has ended"
        lines.append(f"  query      {query.name or 'without a name'} ({query.id}): {doing}")
    if status.reason is not None:
        when = "" if status.failed_ms is None else f" ({age(now_ms - status.failed_ms)} ago)"
        lines.append(f"  last error {status.reason}{when}")
    if details.description:
        lines += ["", *details.description.rstrip().splitlines()]
    return lines
