"""Administrative calls of the monitor: one session, used in one thread, and replaced after a connection problem."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from kaspar.client.admin.session import Admin

_Result = TypeVar("_Result")


class AdminThread:
    def __init__(self, new_admin: Callable[[], Admin], name: str) -> None:
        self._new_admin = new_admin
        self._threads = ThreadPoolExecutor(1, thread_name_prefix=f"monitor-{name}")
        self._admin: Admin | None = None
        self._closing = False

    async def call(self, function: Callable[[Admin], _Result]) -> _Result:
        """Call the function in the thread, and return or raise what it does."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._call, function)

    def _call(self, function: Callable[[Admin], _Result]) -> _Result:
        if self._admin is None:
            self._admin = self._new_admin()
            self._admin.report_unreachable = self._give_up_if_closing
        try:
            return function(self._admin)
        except OSError:
            self._admin.close()
            self._admin = None
            raise

    async def close(self) -> None:
        """Wait for the call in progress: a request has a timeout, and a wait for unreachable brokers is aborted."""
        self._closing = True
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)
        if self._admin is not None:
            self._admin.close()
            self._admin = None

    def _give_up_if_closing(self, problem: OSError) -> None:
        if self._closing:
            raise problem
