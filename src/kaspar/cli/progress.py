"""The progress of a long run, on a terminal: a bar if the number of records is known, and the rate."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Final

_EVERY_S: Final = 0.1

Advance = Callable[[int], None]
"""Called with the number of records so far."""


@contextlib.contextmanager
def progress(total: int | None, *, shown: bool) -> Iterator[Advance]:
    """Show the progress, if `shown` and standard error is a terminal."""
    if not shown or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = [TextColumn("{task.completed:,.0f} records"), TextColumn("{task.fields[rate]}"), TimeElapsedColumn()]
    if total is not None:
        columns.insert(0, BarColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total, rate="")
        started = last = time.monotonic()

        def advance(done: int) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= _EVERY_S:
                last = now
                bar.update(task, completed=done, rate=f"{done / (now - started):,.0f}/s")

        yield advance
