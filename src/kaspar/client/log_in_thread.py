"""The thread in which log-ins wait for other machines: a KDC that does not respond must not stop the event loop.

There is one, so attempts that wait are not more and more threads. It is a daemon: Kerberos tries a silent KDC for about
half a minute, and cannot be interrupted, but the process may end.
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
        """Call this after all that was submitted before. What is cancelled before its turn is not called."""
        future: Future[T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = work(*arguments)
            except BaseException as problem:  # the caller's, whatever it is
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
