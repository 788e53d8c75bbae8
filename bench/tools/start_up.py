"""The duration of a command that has little to do, which is its start-up time."""

import statistics
from collections.abc import Mapping

from bench.rows import Better, Row
from bench.tools.case import KAFKAS, OURS, Program
from bench.tools.commands import command_line, seconds_of
from tests.peers.process import BrokerProcess

_RUNS = 10


class StartUp:
    """The median of a few runs. The first, which fills the disk cache, is not counted."""

    sides = (OURS, KAFKAS)

    def __init__(self, row: Row, command: str, *arguments: str) -> None:
        self.name = row.name
        self.rows: tuple[Row, ...] = (row,)
        self._command = command
        self._arguments = arguments

    def measure(self, broker: BrokerProcess, side: Program, scale: float) -> Mapping[str, float]:
        command = command_line(side, self._command, "--bootstrap-server", broker.bootstrap, *self._arguments)
        seconds_of(command)
        runs = max(3, round(_RUNS * scale))
        return {self.name: 1000 * statistics.median(seconds_of(command) for _ in range(runs))}


def start_ups() -> list[StartUp]:
    def row(name: str, title: str, goal: float | None = None) -> Row:
        return Row(name, title, "Start-up", "ms", Better.LESS, goal)

    return [
        StartUp(row("topics_list", "kafka-topics --list", 0.25), "kafka-topics", "--list"),
        StartUp(row("topics_describe", "kafka-topics --describe"), "kafka-topics", "--describe"),
        StartUp(row("get_offsets", "kafka-get-offsets"), "kafka-get-offsets"),
        StartUp(row("log_dirs", "kafka-log-dirs --describe"), "kafka-log-dirs", "--describe"),
        StartUp(row("broker_api_versions", "kafka-broker-api-versions"), "kafka-broker-api-versions"),
    ]
