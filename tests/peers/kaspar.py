"""Kaspar's broker as a process, started by the command that people use, with the same face as the Apache Kafka peer.

    with KasparProcess(folder, overrides={"num.partitions": "4"}) as broker:
        broker.expect_error("No space left")
        ...

An ERROR that the broker logged and no test expected is a failure: the end of the `with` block raises
UnexpectedLogError, and a fixture that outlives a test asks `unexpected_errors()` itself.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from tests.peers.error_log import ErrorLog
from tests.peers.process import BrokerProcess, write_properties


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
        program: Path | None = None,
    ) -> None:
        """`program`: the kafka-server-start of another installation than this one."""
        super().__init__(folder, overrides=overrides, port=port, environment=environment)
        self._program = program or Path(sys.executable).with_name("kafka-server-start")
        self._errors = ErrorLog(self.log_file)

    def command(self) -> list[str]:
        overrides = [word for key, value in self.overrides.items() for word in ("--override", f"{key}={value}")]
        return [str(self._program), str(self.properties_file), *overrides]

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
        self._errors.expect(pattern)

    def unexpected_errors(self) -> list[str]:
        return self._errors.unexpected()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, traceback)
        errors = self.unexpected_errors()
        if errors and error is None:
            raise UnexpectedLogError("the broker logged:\n" + "\n".join(errors))
