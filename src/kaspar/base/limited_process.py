"""Child processes for untrusted work, which can be arbitrarily large: each request has limits of CPU time and memory.

The parent uses `LimitedProcesses`. A request that ends its process, or takes too long, raises TooMuch, and the next one
gets another process. Processes are started on demand. The child calls `serve`: it ends when its standard input ends,
when it has been idle for a while, or when a request exceeds the limits.
"""

import contextlib
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import IO, Final, cast

from kaspar.base.log import get_log
from kaspar.base.pipes import LENGTH_BYTES, PeerEnded, Pipes

log = get_log(__name__)

_NICENESS: Final = 5
"""Gives the event loop of the parent priority."""


class TooMuch(Exception):
    """The request took too much time or memory."""


# --- The parent -------------------------------------------------------------------------------------------------------


class LimitedProcesses:
    """Runs requests in child processes. May be used by several threads; calls block."""

    def __init__(self, module: str, processes: int, *, deadline_s: float) -> None:
        """`module` is run with `python -m`. `deadline_s` is for a process that does not even get its CPU time."""
        self.deadline_s = deadline_s
        self._all = tuple(_Process(module) for _ in range(processes))
        self._idle: SimpleQueue[_Process] = SimpleQueue()
        for process in self._all:
            self._idle.put(process)

    def ask(self, request: bytes) -> bytes:
        """Send a request to an idle process, after waiting for one. Raises TooMuch."""
        process = self._idle.get()
        try:
            return process.ask(request, self.deadline_s)
        finally:
            self._idle.put(process)

    def close(self) -> None:
        """Stop the processes. Later requests raise TooMuch."""
        for process in self._all:
            process.kill()  # wakes the thread that waits for it
        idle = []
        with contextlib.suppress(Empty):
            while True:
                idle.append(self._idle.get_nowait())
        for process in idle:
            process.end()
            self._idle.put(process)


class _Process:
    """Manages at most one process at a time. Used by one thread at a time; any thread may call `kill`."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closing = False

    def ask(self, request: bytes, deadline_s: float) -> bytes:
        if self._process is not None and self._process.poll() is not None:
            self.end()  # it ended because it was idle
        try:
            return self._ask(request, deadline_s)
        except PeerEnded:
            status = self.end()
            # A process that was idle may end just when it gets a request.
            if status == 0 and not self._is_closing:
                return self._ask_again(request, deadline_s)
            log.warning("a helper process ended", module=self._module, bytes=len(request), status=status)
        except TimeoutError:
            self.end()
            log.warning("a helper process took too long", module=self._module, bytes=len(request))
        raise TooMuch

    def _ask_again(self, request: bytes, deadline_s: float) -> bytes:
        try:
            return self._ask(request, deadline_s)
        except (PeerEnded, TimeoutError):
            self.end()
            raise TooMuch from None

    def _ask(self, request: bytes, deadline_s: float) -> bytes:
        if self._is_closing:
            raise TooMuch
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", self._module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        pipes = Pipes(cast(IO[bytes], self._process.stdin), cast(IO[bytes], self._process.stdout))
        return pipes.ask(request, time.monotonic() + deadline_s)

    def kill(self) -> None:
        self._is_closing = True
        process = self._process
        if process is not None:
            process.kill()

    def end(self) -> int:
        """End the process. Returns its exit status."""
        process, self._process = self._process, None
        if process is None:
            return 0
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.1)  # if it has ended by itself, its status is the reason
        process.kill()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                cast(IO[bytes], pipe).close()
        return process.wait()


# --- The child --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Limits:
    cpu_s: int
    """Limit for one request. SIGXCPU ends the process."""
    memory_bytes: int
    idle_s: float


def serve(answer: Callable[[bytes], bytes], limits: Limits) -> None:
    """Respond to requests until there are no more; exits if one takes too much memory."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_NICENESS)
    with contextlib.suppress(ValueError, OSError):  # a lower limit is set already, or the system has none
        resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))
    try:
        while select.select([0], [], [], limits.idle_s)[0]:
            request = _receive()
            if request is None:
                return
            _limit_cpu_time(limits.cpu_s)
            _send(answer(request))
    except (MemoryError, BrokenPipeError):
        sys.exit(1)


def _limit_cpu_time(cpu_s: int) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    with contextlib.suppress(ValueError):  # a lower limit is set already
        resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + cpu_s, hard))


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
