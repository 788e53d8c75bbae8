"""The JVM behind a Spark session of this process: whether the JVM and the session are still alive."""

import contextlib
import signal
import subprocess
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Final

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
        """None under spark-submit, where the JVM starts this process."""

    @property
    def id(self) -> ProcessId | None:
        return None if self._process is None else ProcessId.of(self._process.pid)

    def problem(self) -> str | None:
        """Why the session cannot be used any more. None if it can."""
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

    @contextlib.contextmanager
    def signals_call(self, stop: Callable[[], None]) -> Iterator[None]:
        """Under spark-submit, make a SIGTERM to the JVM call `stop`. By default the JVM would exit at once, in the
        middle of a batch, and leave this process behind. It calls `stop` in a thread of py4j, and exits after this
        process.
        Ctrl-C reaches both processes, and the JVM ignores it, as it does anyway if this process has started it.
        """
        if self._process is not None:
            yield
            return
        from pyspark import SparkContext
        from pyspark.java_gateway import ensure_callback_server_started

        gateway: Any = SparkContext._gateway
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]  # comes without types
        java = gateway.jvm.sun.misc
        earlier = [
            (each, java.Signal.handle(each, handler))
            for each, handler in (
                (java.Signal("TERM"), _SignalHandler(stop)),
                (java.Signal("INT"), java.SignalHandler.SIG_IGN),
            )
        ]
        try:
            yield
        finally:
            with contextlib.suppress(Exception):  # the JVM has ended
                for each, handler in earlier:
                    java.Signal.handle(each, handler)

    def _wait_for_end(self) -> None:
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)


class _SignalHandler:
    """A sun.misc.SignalHandler, which the JVM calls in a separate thread."""

    def __init__(self, action: Callable[[], None]) -> None:
        self._action = action

    def handle(self, number: Any) -> None:
        self._action()

    class Java:
        implements: ClassVar = ["sun.misc.SignalHandler"]


def how_it_ended(exit_code: int) -> str:
    if exit_code >= 0:
        return f"exited with code {exit_code}"
    known = {number.value: number.name for number in signal.Signals}
    return f"was killed by {known.get(-exit_code, f'signal {-exit_code}')}"
