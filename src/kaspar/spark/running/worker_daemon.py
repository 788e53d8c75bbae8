"""Spark's daemon of Python workers, without tracebacks for queries that are stopped.

When a query is stopped, Spark closes the connections to the workers of its tasks. Each of them then fails to hand over
its last rows, and the daemon would print a traceback (BrokenPipeError) for every one. Nothing else is hidden: an error
inside a task has been handed to Spark before that, as the failure of the task.

Run by Spark: `python -m kaspar.spark.running.worker_daemon pyspark.worker` (`spark.python.daemon.module`), and by
worker_python.sh in place of Spark's own daemon.
"""

import os
import socket
from collections.abc import Callable
from typing import Final

from pyspark import daemon

from kaspar.spark.disconnects import DISCONNECTED

# Environment variable of PySpark: a worker that fails to hand over its last bytes raises, instead of printing why.
RAISE_ON_FLUSH_FAILURE: Final = "PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE"

Worker = Callable[[socket.socket, bool], int]


def exits_on_disconnect(worker: Worker) -> Worker:
    """The same worker, whose process exits silently once Spark has closed its connection."""

    def run(connection: socket.socket, authenticated: bool) -> int:
        try:
            return worker(connection, authenticated)
        except DISCONNECTED:
            return 1  # the daemon does not use this process again

    return run


def main() -> None:
    os.environ[RAISE_ON_FLUSH_FAILURE] = "true"  # Spark sets it for the workers of tasks only
    vars(daemon)["worker"] = exits_on_disconnect(daemon.worker)  # by which name the manager finds it
    daemon.manager()


if __name__ == "__main__":
    main()
