"""Spark's daemon of Python workers, without tracebacks for queries that are stopped.

When a query is stopped, Spark closes the connections to the workers of its tasks. Each of them then fails to send its
last rows, and the daemon would print a traceback (BrokenPipeError) for every one. No other error is hidden: an error
inside a task has been reported to Spark before that, as the failure of the task.

Run by Spark: `python -m kaspar.spark.running.worker_daemon pyspark.worker` (`spark.python.daemon.module`), and by
worker_python.sh in place of Spark's own daemon.
"""

import os
import socket
from collections.abc import Callable
from typing import Final

from pyspark import daemon

from kaspar.spark.disconnects import DISCONNECTED

# Environment variable of PySpark: a worker that fails to send its last bytes raises, instead of printing why.
RAISE_ON_FLUSH_FAILURE: Final = "PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE"

Worker = Callable[[socket.socket, bool], int]


def exits_on_disconnect(worker: Worker) -> Worker:
    """Wrap a worker, so that its process exits silently when Spark has closed its connection."""

    def run(connection: socket.socket, authenticated: bool) -> int:
        try:
            return worker(connection, authenticated)
        except DISCONNECTED:
            return 1  # the daemon does not reuse this process

    return run


def main() -> None:
    os.environ[RAISE_ON_FLUSH_FAILURE] = "true"  # Spark sets it for the workers of tasks only
    vars(daemon)["worker"] = exits_on_disconnect(daemon.worker)  # the manager looks it up by this name
    daemon.manager()


if __name__ == "__main__":
    main()
