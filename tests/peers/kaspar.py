"""Kaspar's broker as a process, started by the command that people use, with the same face as the Apache Kafka peer.

    with KasparProcess(folder, overrides={"num.partitions": "4"}) as broker:
        broker.expect_error("No space left")
        ...

An ERROR that the broker logged and no test expected is a failure: the end of the `with` block raises
UnexpectedLogError, and a fixture that outlives a test asks `unexpected_errors()` itself.
"""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from tests.peers.process import BrokerProcess, write_properties

# An entry of the log is a line that starts with the time, and what follows it: a traceback.
_ENTRY_START = re.compile(r"\n?^(?=\[\d{4}-)", re.MULTILINE)
_ERROR = re.compile(r"\A\[[^\]]+\] (ERROR|CRITICAL) |^Traceback \(most recent call last\)", re.MULTILINE)


class UnexpectedLogError(AssertionError):
    """The broker logged an ERROR that nobody expected."""


class KasparProcess(BrokerProcess):
    def __init__(
        self,
        folder: Path,
        *,
        overrides: Mapping[str, str] | None = None,
        port: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(folder, overrides=overrides, port=port, environment=environment)
        self._expected: list[re.Pattern[str]] = []
        self._seen_bytes = 0

    def command(self) -> list[str]:
        start = Path(sys.executable).with_name("kafka-server-start")
        overrides = [word for key, value in self.overrides.items() for word in ("--override", f"{key}={value}")]
        return [str(start), str(self.properties_file), *overrides]

    def prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = {
            "node.id": "1",
            "listeners": f"PLAINTEXT://{self.host}:{self.port}",
            "advertised.listeners": f"PLAINTEXT://{self.host}:{self.port}",
            "log.dirs": os.fspath(self.data_dir),
        }
        write_properties(self.properties_file, settings)

    def expect_error(self, pattern: str) -> None:
        """From now on a logged ERROR that matches this pattern is no failure."""
        self._expected.append(re.compile(pattern))

    def unexpected_errors(self) -> list[str]:
        """What was logged as an ERROR since the last call and nobody expected, tracebacks included."""
        if not self.log_file.exists():
            return []
        with self.log_file.open("rb") as file:
            file.seek(self._seen_bytes)
            fresh = file.read()
        whole, _, _ = fresh.rpartition(b"\n")
        self._seen_bytes += len(whole)
        entries = _ENTRY_START.split(whole.decode(errors="replace"))
        return [entry for entry in entries if _ERROR.search(entry) and not any(e.search(entry) for e in self._expected)]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, traceback)
        errors = self.unexpected_errors()
        if errors and error is None:
            raise UnexpectedLogError("the broker logged:\n" + "\n".join(errors))
