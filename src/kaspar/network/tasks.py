"""Tasks of requests under way, for which the broker waits when it stops."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

LAST_S: Final = 5.0  # how long they may take when the broker stops


class RequestTasks:
    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None], *, name: str) -> None:
        """Start a task for `work`, which handles its own exceptions."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self) -> None:
        """Wait for the requests under way. Those that are not done in time are cancelled."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=LAST_S)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
