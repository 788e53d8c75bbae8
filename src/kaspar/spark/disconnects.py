"""Spark stops its Python processes by closing their connections, whatever they are doing at that moment.

The processes treat that as an error, and print a traceback for every query that is stopped. This module suppresses
these tracebacks. No other error is hidden: an error inside a call has been passed to Spark, which reports it to the
program.
"""

import socketserver
import sys
from types import TracebackType
from typing import Any, Final

DISCONNECTED: Final = (BrokenPipeError, ConnectionResetError)
"""The errors of a write to Spark after it has closed the connection."""

_RUNNER: Final = "pyspark.sql.streaming.python_streaming_source_runner"


def exit_quietly_on_disconnect() -> None:
    """Let the process that runs a stream's source exit silently when Spark disconnects; a no-op in any other.

    The process fails to read its next call, and fails again when it reports that to Spark. The second failure ends it.
    """
    runs = getattr(sys.modules["__main__"], "__spec__", None)
    if runs is not None and runs.name == _RUNNER:
        sys.excepthook = _report_unless_disconnected


def _report_unless_disconnected(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    if not isinstance(error, DISCONNECTED):
        sys.__excepthook__(kind, error, traceback)


def silence_accumulators() -> None:
    """Suppress the tracebacks of the driver's accumulator server. A query that is stopped in mid-commit closes the
    connection that carries accumulator updates; Spark opens another when it needs one."""
    from pyspark.accumulators import AccumulatorUnixServer

    server: Any = AccumulatorUnixServer
    server.handle_error = _report_unless_at_end


def _report_unless_at_end(server: socketserver.BaseServer, request: Any, client_address: Any) -> None:
    if not isinstance(sys.exception(), EOFError):
        socketserver.BaseServer.handle_error(server, request, client_address)
