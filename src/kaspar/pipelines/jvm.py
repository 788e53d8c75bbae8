"""The JVM behind a Spark session of this process: whether it, and the session, are still there."""

import contextlib
import signal
import subprocess
from typing import TYPE_CHECKING, Any, Final

from kaspar.base.processes import ProcessId

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TRIES: Final = 3
_END_S: Final = 1.0


class Jvm:
    def __init__(self, session: "SparkSession") -> None:
        from pyspark import SparkContext

        self.session = session
        self._context: Any = session.sparkContext
        self._process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
        """None under spark-submit, where the JVM has started this process."""

    @property
    def id(self) -> ProcessId | None:
        return None if self._process is None else ProcessId.of(self._process.pid)

    def problem(self) -> str | None:
        """Why the session cannot be used any more."""
        for _ in range(_TRIES):
            code = None if self._process is None else self._process.poll()
            if code is not None:
                return f"Spark's JVM {how_it_ended(code)}"
            try:
                stopped = self._context._jsc is None or self._context._jsc.sc().isStopped()
            except Exception:  # a JVM that is killed closes its connections first
                self._wait_for_end()
            else:
                return "the Spark session was stopped" if stopped else None
        return "Spark's JVM does not respond"

    def _wait_for_end(self) -> None:
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)


def how_it_ended(exit_code: int) -> str:
    if exit_code >= 0:
        return f"exited with code {exit_code}"
    known = {number.value: number.name for number in signal.Signals}
    return f"was killed by {known.get(-exit_code, f'signal {-exit_code}')}"
