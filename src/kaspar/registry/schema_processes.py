"""Passes large schemas to processes (schema_process.py), of which there are few."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import msgspec

from kaspar.base.limited_process import LimitedProcesses, TooMuch
from kaspar.registry.schema_process import Outcome
from kaspar.registry.schema_work import Task, Unparseable

PROCESSES: Final = 2
DEADLINE_S: Final = 20.0
"""A process ends after ten seconds of CPU time. This deadline is for a process that does not even get that much."""

_outcome: Final = msgspec.msgpack.Decoder(Outcome)


class TooComplex(Exception):
    """The task took too much time or memory."""


class SchemaProcesses:
    def __init__(self, *, deadline_s: float = DEADLINE_S) -> None:
        self._processes = LimitedProcesses("kaspar.registry.schema_process", PROCESSES, deadline_s=deadline_s)
        self._threads: ThreadPoolExecutor | None = None

    async def do(self, task: Task) -> tuple[str, ...]:
        """Raises Unparseable and TooComplex."""
        if self._threads is None:
            # One thread per process, which only waits for it.
            self._threads = ThreadPoolExecutor(PROCESSES, "schema-process")
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._do, task)

    def _do(self, task: Task) -> tuple[str, ...]:
        try:
            outcome = _outcome.decode(self._processes.ask(msgspec.msgpack.encode(task)))
        except TooMuch:
            raise TooComplex from None
        if outcome.refusal is not None:
            raise Unparseable(outcome.refusal)
        return outcome.texts

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None
        self._processes.close()
