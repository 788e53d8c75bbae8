"""What the fault tests share: seeds, the number of rounds, and a report of how long the broker's loop stood still.

`CHAOS_SEED` repeats a run; `CHAOS_ROUNDS` makes it longer (`make chaos`). Each test prints the seed it used.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.peers.observed import ObservedBroker

ROUNDS = 6  # what `make test` has time for

_stalls: dict[str, float] = {}

StartBroker = Callable[..., ObservedBroker]


@pytest.fixture
def rounds() -> int:
    return int(os.environ.get("CHAOS_ROUNDS", ROUNDS))


@pytest.fixture
def start_broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StartBroker]:
    """Starts brokers that are stopped at the end; what they logged is then looked through, and their stalls noted.

    A test that restarts a broker itself notes its stall before (`note_stall`), for the metrics end with the process.
    """
    started: list[ObservedBroker] = []

    def start(**options: object) -> ObservedBroker:
        folder = tmp_path / f"broker-{len(started)}"
        broker = ObservedBroker(folder, **options)  # type: ignore[arg-type]
        started.append(broker)
        return broker.start()

    try:
        yield start
        for broker in started:
            if broker.running:
                note_stall(request.node.name, broker)
            code = broker.stop()
            errors = broker.unexpected_errors()
            assert not errors, "the broker logged:\n" + "\n".join(errors)
            assert code == 0, f"the broker ended with exit code {code}:\n{broker.log_text()[-3000:]}"
    finally:
        for broker in started:
            broker.kill()


def note_stall(test: str, broker: ObservedBroker) -> None:
    stall = broker.longest_stall()
    _stalls[test] = max(_stalls.get(test, 0.0), stall)
    print(f"the loop's longest stall: {stall * 1000:.1f} ms")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _stalls:
        terminalreporter.section("the longest stall of the broker's loop")
        for test, seconds in sorted(_stalls.items(), key=lambda item: -item[1]):
            terminalreporter.write_line(f"{seconds * 1000:8.1f} ms  {test}")
