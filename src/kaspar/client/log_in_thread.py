"""The thread in which log-ins wait for other machines, because a KDC that does not respond must not block the event
loop.

There is only one, so that the number of threads is limited while attempts wait. It is a daemon thread: Kerberos tries a
KDC that does not respond for about half a minute and cannot be interrupted, but the process can exit meanwhile.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TypeVar

T = TypeVar("T")


class LogInThread:
    def __init__(self) -> None:
        self._work: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._lock = threading.Lock()
        self._has_started = False

    def submit(self, work: Callable[..., T], *arguments: object) -> Future[T]:
        """Call a function after those that were submitted before. It is not called if the future is cancelled first."""
        future: Future[T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = work(*arguments)
            except BaseException as problem:  # raised again in the caller
                future.set_exception(problem)
            else:
                future.set_result(result)

        self._work.put(run)
        with self._lock:
            if not self._has_started:
                threading.Thread(target=self._run, name="kaspar-log-in", daemon=True).start()
                self._has_started = True
        return future

    def _run(self) -> None:
        while True:
            self._work.get()()
