"""Spark's daemon of Python workers, which does not take a query that is stopped for a fault of a worker.

When a query is stopped, Spark closes the connections to the workers of its tasks. Each of them fails to hand over its
last rows then, and the daemon would print a traceback (BrokenPipeError) for every one. Nothing else is hidden: what
goes wrong in a task has been handed to Spark before that, as the failure of the task.

Run by Spark: `python -m kaspar.spark.worker_daemon pyspark.worker` (`spark.python.daemon.module`).
"""

import socket
from collections.abc import Callable
from typing import Final

from pyspark import daemon

HUNG_UP: Final = (BrokenPipeError, ConnectionResetError)
"""What writing to Spark raises once it has closed the connection."""

Worker = Callable[[socket.socket, bool], int]


def ends_when_spark_hangs_up(worker: Worker) -> Worker:
    """The same worker, whose process ends without a word when there is nobody left to hand its rows to."""

    def run(connection: socket.socket, authenticated: bool) -> int:
        try:
            return worker(connection, authenticated)
        except HUNG_UP:
            return 1  # the daemon does not use this process again

    return run


def main() -> None:
    vars(daemon)["worker"] = ends_when_spark_hangs_up(daemon.worker)  # by which name the manager finds it
    daemon.manager()


if __name__ == "__main__":
    main()
