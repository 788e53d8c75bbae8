"""Prints the selected records, and counts the problems that the command reports at its end."""

import select
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import BinaryIO, Final

from kaspar.cli.consuming.outputs import Show
from kaspar.cli.consuming.where import Where
from kaspar.cli.failures import FAILED
from kaspar.cli.records.record import RawRecord, ReadRecord
from kaspar.cli.records.types import CannotRead, RecordType

_MAX_UNREADABLE_SHOWN: Final = 10


@dataclass(slots=True)
class Printer:
    show: Show
    where: Where | None = None
    limit: int | None = None
    """The maximum number of records to print."""
    key_type: RecordType = RecordType.AUTO
    value_type: RecordType = RecordType.AUTO
    decode: Callable[[RawRecord], RawRecord] | None = None
    """Transforms a record before its key and value are decoded. Raises CannotRead."""
    out: BinaryIO = field(default_factory=lambda: sys.stdout.buffer)
    printed: int = 0
    unreadable: int = 0
    _reader: "select.poll | None" = None

    @property
    def is_done(self) -> bool:
        return self.limit is not None and self.printed >= self.limit

    def print(self, raw: RawRecord) -> None:
        """Print a record if it matches. A record that cannot be decoded is reported at once."""
        try:
            decoded = raw if self.decode is None else self.decode(raw)
            record = ReadRecord(decoded, self.key_type, self.value_type)
            if self.where is not None and not self.where.matches(record):
                return
            text = self.show(record)
        except (CannotRead, RecursionError) as problem:
            self.unreadable += 1
            if self.unreadable <= _MAX_UNREADABLE_SHOWN:
                reason = problem if isinstance(problem, CannotRead) else "the value is nested too deeply"
                print(f"kaspar: {raw}: {reason}", file=sys.stderr)
            return
        if text:
            self.out.write(text)
            self.printed += 1

    def flush(self) -> None:
        self.out.flush()

    def check_reader(self) -> None:
        """Raise BrokenPipeError if the reader of the output is gone. A write would detect that only with the next
        record."""
        if self._reader is None:
            self._reader = select.poll()
            self._reader.register(self.out.fileno(), 0)
        if any(event & (select.POLLERR | select.POLLNVAL) for _, event in self._reader.poll(0)):
            raise BrokenPipeError

    def report(self) -> int:
        """Report on standard error what was skipped, and why. Returns the exit code."""
        if self.where is not None and self.where.failures:
            print(
                f"kaspar: --where failed on {self.where.failures} records, which were skipped; the first was "
                f"{self.where.first_failure}",
                file=sys.stderr,
            )
        if self.unreadable > _MAX_UNREADABLE_SHOWN:
            print(f"kaspar: {self.unreadable} records could not be decoded", file=sys.stderr)
        return FAILED if self.unreadable else 0
