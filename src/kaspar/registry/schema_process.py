"""The process that works on large schemas (`python -m kaspar.registry.schema_process`).

A schema of a megabyte keeps an interpreter busy for seconds, and its garbage collector stops all threads while it
traverses what was parsed. So that happens here. Schemas are untrusted input: a task has limits of memory and of CPU
time, and the process ends when one exceeds them. It also ends when its standard input does, or when it was idle for a
while.

Requests and responses are frames (kaspar.base.pipes) of msgpack: a Task, and its texts or a Refusal.
"""

import contextlib
import os
import resource
import select
import signal
import sys
from typing import Final

import msgspec

from kaspar.base.pipes import LENGTH_BYTES
from kaspar.registry.schema_work import Refusal, SchemaWork, Task, Unparseable

CPU_S: Final = 10
MEMORY_BYTES: Final = 2 << 30
IDLE_S: Final = 60.0
_NICENESS: Final = 5
"""The event loop of the registry is served first."""


class Outcome(msgspec.Struct, frozen=True):
    texts: tuple[str, ...] = ()
    refusal: Refusal | None = None


def serve() -> None:
    work = SchemaWork()
    decoder = msgspec.msgpack.Decoder(Task)
    while select.select([0], [], [], IDLE_S)[0]:
        request = _receive()
        if request is None:
            return
        _limit_cpu_time()
        _send(msgspec.msgpack.encode(_outcome(work, decoder.decode(request))))


def _outcome(work: SchemaWork, task: Task) -> Outcome:
    try:
        return Outcome(work.do(task))
    except Unparseable as problem:
        return Outcome(refusal=problem.refusal)


def _limit_cpu_time() -> None:
    """Of the next task. SIGXCPU ends the process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    with contextlib.suppress(ValueError):  # it is limited already
        resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + CPU_S, hard))


def _receive() -> bytes | None:
    length = _read(LENGTH_BYTES)
    return _read(int.from_bytes(length)) if length else None


def _read(size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        chunk = os.read(0, size - len(data))
        if not chunk:
            return None
        data += chunk
    return bytes(data)


def _send(body: bytes) -> None:
    data = memoryview(len(body).to_bytes(LENGTH_BYTES) + body)
    while data:
        data = data[os.write(1, data) :]


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_NICENESS)
    with contextlib.suppress(ValueError, OSError):  # a lower limit holds already, or the system knows none
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    try:
        serve()
    except (MemoryError, BrokenPipeError):
        sys.exit(1)


if __name__ == "__main__":
    main()
