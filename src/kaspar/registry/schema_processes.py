"""Hands large schemas to processes (schema_process.py), of which there are few. A process is started when it is needed.

A task that ends its process, or takes too long, was too much; the next one gets another process.
"""

import asyncio
import contextlib
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import IO, Final, cast

import msgspec

from kaspar.base.log import get_log
from kaspar.base.pipes import PeerEnded, Pipes
from kaspar.registry.schema_process import Outcome
from kaspar.registry.schema_work import Task, Unparseable

log = get_log(__name__)

PROCESSES: Final = 2
DEADLINE_S: Final = 20.0
"""A process gives up after ten seconds of CPU time. This is for one that does not even get those."""


class TooComplex(Exception):
    """The task took too much time or memory."""


class SchemaProcesses:
    def __init__(self, *, deadline_s: float = DEADLINE_S) -> None:
        self._deadline_s = deadline_s
        self._threads: ThreadPoolExecutor | None = None
        self._idle: SimpleQueue[_Process] = SimpleQueue()
        self._all = tuple(_Process() for _ in range(PROCESSES))
        for process in self._all:
            self._idle.put(process)

    async def do(self, task: Task) -> tuple[str, ...]:
        """Raises Unparseable and TooComplex."""
        if self._threads is None:
            # One for each process: a thread only waits for it.
            self._threads = ThreadPoolExecutor(PROCESSES, "schema-process")
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._do, task)

    def _do(self, task: Task) -> tuple[str, ...]:
        process = self._idle.get()
        try:
            outcome = process.ask(task, self._deadline_s)
        finally:
            self._idle.put(process)
        if outcome.refusal is not None:
            raise Unparseable(outcome.refusal)
        return outcome.texts

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None
        for process in self._all:
            process.kill()  # the thread that waits for it ends, too
        with contextlib.suppress(Empty):
            while True:
                self._idle.get_nowait().end()


class _Process:
    """At most one process at a time. Used by one thread at a time; `kill` is called by any."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closing = False

    def ask(self, task: Task, deadline_s: float) -> Outcome:
        request = msgspec.msgpack.encode(task)
        if self._process is not None and self._process.poll() is not None:
            self.end()  # it was idle
        try:
            response = self._ask(request, deadline_s)
        except PeerEnded:
            status = self.end()
            # A process that ends because it is idle may do so just when it is asked.
            if status != 0 or self._is_closing:
                log.warning("a schema process ended", characters=task.characters, status=status)
                raise TooComplex from None
            response = self._ask_again(request, deadline_s)
        except TimeoutError:
            self.end()
            log.warning("a schema took too long", characters=task.characters)
            raise TooComplex from None
        return msgspec.msgpack.decode(response, type=Outcome)

    def _ask_again(self, request: bytes, deadline_s: float) -> bytes:
        try:
            return self._ask(request, deadline_s)
        except (PeerEnded, TimeoutError):
            self.end()
            raise TooComplex from None

    def _ask(self, request: bytes, deadline_s: float) -> bytes:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "kaspar.registry.schema_process"],
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
        """Returns the exit status."""
        process, self._process = self._process, None
        if process is None:
            return 0
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.1)  # one that has ended by itself has a status that says why
        process.kill()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                cast(IO[bytes], pipe).close()
        return process.wait()
