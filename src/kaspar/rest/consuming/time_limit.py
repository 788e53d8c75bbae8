"""A time limit for librdkafka calls that have none or do not keep it: a commit waits for the coordinator for as long as
it is unavailable.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from kaspar.rest.errors import KAFKA_RETRIABLE, RestError

_Result = TypeVar("_Result")


class TimeLimit:
    """A call that exceeds the limit continues in its thread. There is at most one such thread: the next call waits for
    it first."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._running: threading.Thread | None = None

    def run(self, aim: str, function: Callable[[], _Result]) -> _Result:
        """Return or raise what the function does. Raises RestError (50003) after the time limit, with a message that it
        "expired before {aim}"."""
        self._join(aim)
        result: Future[_Result] = Future()

        def call() -> None:
            try:
                result.set_result(function())
            except BaseException as problem:
                result.set_exception(problem)

        # A daemon thread, so that the process can exit while a broker does not respond.
        self._running = threading.Thread(target=call, name="rest-consumer-call", daemon=True)
        self._running.start()
        self._join(aim)
        return result.result()

    def wait(self) -> None:
        """Waits for the call in progress, without a time limit."""
        if self._running is not None:
            self._running.join()

    def _join(self, aim: str) -> None:
        if self._running is not None:
            self._running.join(self._limit_s)
            if self._running.is_alive():
                raise RestError(KAFKA_RETRIABLE, f"Timeout of {round(self._limit_s * 1000)}ms expired before {aim}")
            self._running = None
