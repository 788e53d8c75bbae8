"""What this Python process keeps for exactly-once writes, by the options of a write.

Spark's Python workers are forked from a process that may have imported this module, and are reused for many tasks. So
the state is created in the worker that uses it, and kept for as long as the worker lives.
"""

import os

from kaspar.exactly_once.process_state import ProcessState
from kaspar.spark.writing.options import WriteOptions

_processes: dict[tuple[int, object], ProcessState] = {}


def this_process(options: WriteOptions) -> ProcessState:
    timeout_ms = options.producer.transaction_timeout_ms
    key = os.getpid(), (options.connection, timeout_ms)
    if key not in _processes:
        _processes[key] = ProcessState.of(options.connection.client(), transaction_timeout_ms=timeout_ms)
    return _processes[key]
