"""Spark ends what its Python processes do by closing the connections to them, in the middle of whatever they do.

They take that for an error, and print a traceback for every query that is stopped. Here are those that would, and what
keeps them quiet. Nothing else is hidden: what goes wrong in a call was handed to Spark, which tells the program.
"""

import socketserver
import sys
from types import TracebackType
from typing import Any, Final

_RUNNER: Final = "pyspark.sql.streaming.python_streaming_source_runner"
_HUNG_UP: Final = (BrokenPipeError, ConnectionResetError)


def end_quietly_when_spark_hangs_up() -> None:
    """For the process that runs a stream's source; in any other it does nothing.

    It fails to read its next call, and again when it tells Spark so: that second failure ends the process.
    """
    runs = getattr(sys.modules["__main__"], "__spec__", None)
    if runs is not None and runs.name == _RUNNER:
        sys.excepthook = _tell_unless_hung_up


def _tell_unless_hung_up(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if not isinstance(error, _HUNG_UP):
        sys.__excepthook__(kind, error, traceback)


def keep_accumulators_quiet() -> None:
    """For the driver. A query that is stopped in the middle of a commit closes the connection by which Spark tells it
    of accumulators. Spark makes another when it needs one."""
    from pyspark.accumulators import AccumulatorUnixServer

    server: Any = AccumulatorUnixServer
    server.handle_error = _tell_unless_at_end


def _tell_unless_at_end(server: socketserver.BaseServer, request: Any, client_address: Any) -> None:
    if not isinstance(sys.exception(), EOFError):
        socketserver.BaseServer.handle_error(server, request, client_address)
