"""Loads the logs at start, in threads, and reports the progress of a recovery."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from kaspar.base.errors import KasparError
from kaspar.base.log import get_log
from kaspar.broker.services import Threads
from kaspar.config import LogConfig
from kaspar.storage import Expected, Loaded, LogManager

log = get_log(__name__)

REPORT_EVERY_S: Final = 1.0


class LogLoading:
    def __init__(self, logs: LogManager, threads: Threads) -> None:
        self.all_clean = True
        """Whether every directory loaded so far had been closed cleanly, including directories without logs."""
        self._logs = logs
        self._threads = threads
        self._cancelled = False
        self._next_report = 0.0

    async def load(self, config_of: Callable[[str], LogConfig], expected: Expected) -> None:
        """Load all logs. Cancellation waits for the threads, because the next broker must not find them in the same
        files.
        """
        loading = asyncio.ensure_future(
            self._threads.run_blocking(self._logs.load, config_of, self._on_progress, expected)
        )
        try:
            await asyncio.shield(loading)
        except asyncio.CancelledError:
            self._cancelled = True
            await asyncio.gather(loading, return_exceptions=True)
            raise

    def _on_progress(self, loaded: Loaded) -> None:
        """Called by the threads that load logs."""
        if self._cancelled:
            raise KasparError("the broker was stopped while it loaded its logs")
        self.all_clean = self.all_clean and loaded.clean
        now = time.monotonic()
        if not loaded.clean and loaded.partitions and now >= self._next_report:
            self._next_report = now + REPORT_EVERY_S
            log.info(
                "recovering logs after an unclean stop",
                directory=loaded.directory,
                partitions=f"{loaded.partitions_done}/{loaded.partitions}",
                checked_mb=loaded.bytes_checked // 1_000_000,
            )
