"""What the fault tests share: seeds, the number of rounds, and a report of how long the broker's loop stood still.

`CHAOS_SEED` repeats a run; `CHAOS_ROUNDS` makes it longer (`make chaos`). Each test prints the seed it used. With
`--secured` stock clients log in over SASL_SSL and are allowed just what they do (`make chaos-secured`); what only
prepares or looks on still uses PLAINTEXT.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kaspar.acls.acl import AclOperation, ResourceType
from tests.peers.observed import ObservedBroker
from tests.peers.sasl_ssl import Acl, SecuredListener, User

ROUNDS = 4  # what `make test` has time for

USER = User("client", "client-pass-0815")
ACLS = (
    Acl(ResourceType.TOPIC, "*", AclOperation.READ),
    Acl(ResourceType.TOPIC, "*", AclOperation.WRITE),
    Acl(ResourceType.TOPIC, "*", AclOperation.CREATE),
    Acl(ResourceType.GROUP, "*", AclOperation.READ),
    Acl(ResourceType.TRANSACTIONAL_ID, "*", AclOperation.WRITE),
)

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
    listeners: list[SecuredListener] = []

    def start(**options: object) -> ObservedBroker:
        folder = tmp_path / f"broker-{len(started)}"
        broker = ObservedBroker(folder, **options)  # type: ignore[arg-type]
        started.append(broker)
        if not request.config.getoption("--secured"):
            return broker.start()
        listener = SecuredListener(folder / "security", broker, USER)
        listeners.append(listener)
        broker.clients |= listener.librdkafka
        broker.start()
        listener.admit(ACLS)
        return broker

    try:
        yield start
        for broker in started:
            if broker.running:
                note_stall(request.node.name, broker)
            code = broker.stop()
            errors = broker.unexpected_errors()
            assert not errors, "the broker logged:\n" + "\n".join(errors)
            assert code == 0, f"the broker exited with code {code}:\n{broker.log_text()[-3000:]}"
        for listener in listeners:
            listener.check_log()
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
