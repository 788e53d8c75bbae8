"""A limit for calls of librdkafka that have none, or do not keep it: to commit, it waits for the coordinator however
long that is away.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from kaspar.rest.errors import KAFKA_RETRIABLE, RestError

_Result = TypeVar("_Result")


class TimeLimit:
    """A call that exceeds its time continues in its own thread. There is at most one: the next call waits for it
    first."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._running: threading.Thread | None = None

    def run(self, aim: str, function: Callable[[], _Result]) -> _Result:
        """What the function returns or raises. Raises RestError (50003) if that takes too long: before `aim`."""
        self._join(aim)
        result: Future[_Result] = Future()

        def call() -> None:
            try:
                result.set_result(function())
            except BaseException as problem:
                result.set_exception(problem)

        # A daemon: the process may end while a broker does not respond.
        self._running = threading.Thread(target=call, name="rest-consumer-call", daemon=True)
        self._running.start()
        self._join(aim)
        return result.result()

    def wait(self) -> None:
        """Without a time limit."""
        if self._running is not None:
            self._running.join()

    def _join(self, aim: str) -> None:
        if self._running is not None:
            self._running.join(self._limit_s)
            if self._running.is_alive():
                raise RestError(KAFKA_RETRIABLE, f"Timeout of {round(self._limit_s * 1000)}ms expired before {aim}")
            self._running = None
