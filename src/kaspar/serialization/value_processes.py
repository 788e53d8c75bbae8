"""Passes large and costly values to a few processes (value_process.py)."""

from typing import Final

import msgspec

from kaspar.base.limited_process import LimitedProcesses, TooMuch
from kaspar.serialization.errors import InvalidValue, UnreadableBytes
from kaspar.serialization.value_process import Outcome, Task, ValueSchema

PROCESSES: Final = 2
DEADLINE_S: Final = 20.0
"""A process gives up after five seconds of CPU time. This is for a process that does not even get those."""

_outcome: Final = msgspec.msgpack.Decoder(Outcome)


class ValueProcesses:
    """May be used by several threads. Calls block."""

    def __init__(self, *, deadline_s: float = DEADLINE_S) -> None:
        self._processes = LimitedProcesses("kaspar.serialization.value_process", PROCESSES, deadline_s=deadline_s)

    def encode(self, schema: ValueSchema, data: bytes) -> bytes:
        """Encode JSON. Raises InvalidValue."""
        try:
            outcome = self._ask(Task(schema, data, is_encoded=False))
        except TooMuch:
            raise InvalidValue("The value takes too much time or memory to encode.") from None
        if outcome.problem is not None:
            raise InvalidValue(outcome.problem)
        return outcome.data

    def decode(self, schema: ValueSchema, data: bytes) -> bytes:
        """Decode a value to JSON. Raises UnreadableBytes."""
        try:
            outcome = self._ask(Task(schema, data, is_encoded=True))
        except TooMuch:
            raise UnreadableBytes("The value takes too much time or memory to decode.") from None
        if outcome.problem is not None:
            raise UnreadableBytes(outcome.problem)
        return outcome.data

    def _ask(self, task: Task) -> Outcome:
        return _outcome.decode(self._processes.ask(msgspec.msgpack.encode(task)))

    def close(self) -> None:
        self._processes.close()
