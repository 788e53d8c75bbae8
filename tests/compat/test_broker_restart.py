"""A broker that is stopped or killed and started again: members, commits and transactions of every client go on."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.compat.clients.api import Client, ClientKind, Consumer, Feature, Transformer
from tests.compat.clients.registry import CLIENTS, JAVA
from tests.compat.clients.words import wait_for_offsets, wait_for_values
from tests.compat.conftest import SETTINGS
from tests.compat.drivers.api import Record
from tests.compat.drivers.confluent import ConfluentDriver
from tests.compat.scenario import eventually, wait_for_leaders
from tests.peers.against import broker_to_test
from tests.peers.missing import unless_missing
from tests.peers.process import BrokerProcess

BEFORE = [f"before-{number}" for number in range(10)]
AFTER = [f"after-{number}" for number in range(10)]
RECOVERY_SECONDS = 60.0  # clients back off in their own ways

STOPS: dict[str, Callable[[BrokerProcess], object]] = {"stopped": BrokerProcess.stop, "killed": BrokerProcess.kill}


@pytest.fixture
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess]:
    with broker_to_test(request, tmp_path / "broker", SETTINGS) as running:
        yield running


@dataclass(frozen=True, slots=True)
class Work:
    """What one client does while its broker goes away: it consumes a topic, and transforms it into another."""

    kind: ClientKind
    consumer: Consumer
    transformer: Transformer | None

    @property
    def source(self) -> str:
        return f"{self.kind.name}-source"

    @property
    def target(self) -> str:
        return f"{self.kind.name}-target"


def begin(client: Client, kind: ClientKind) -> Work:
    source, target = f"{kind.name}-source", f"{kind.name}-target"
    consumer = client.consumer(f"{kind.name}-reader", source, auto_commit=True)
    transformer = None
    if kind.can([Feature.TRANSACTIONS, Feature.TRANSFORM_AFTER_RESTART]):
        transformer = client.transformer(f"{kind.name}-transformer", source, target, f"{kind.name}-id")
    return Work(kind, consumer, transformer)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", ["killed", pytest.param("stopped", marks=pytest.mark.long)])
def test_every_client_goes_on_where_it_was(broker: BrokerProcess, how: str) -> None:
    driver = ConfluentDriver(broker.bootstrap)
    with ExitStack() as opened:
        admin = opened.enter_context(closing(unless_missing(lambda: Client(JAVA, broker.bootstrap))))
        works = []
        for kind in (kind for kind in CLIENTS.values() if kind.can([Feature.BROKER_RESTART])):
            for topic in (f"{kind.name}-source", f"{kind.name}-target"):
                driver.create_topic(topic)
                wait_for_leaders(broker, topic, [0])
            client = unless_missing(lambda kind=kind: Client(kind, broker.bootstrap))  # type: ignore[misc]
            opened.callback(client.close)
            opened.callback(client.kill)
            works.append(begin(client, kind))
            driver.produce(works[-1].source, [Record(value.encode()) for value in BEFORE])
        for work in works:
            wait_for_values([work.consumer], BEFORE)
            wait_for_offsets(admin, f"{work.kind.name}-reader", {(work.source, 0): 10})
            if work.transformer is not None:
                wait_for_offsets(admin, f"{work.kind.name}-transformer", {(work.source, 0): 10})
        STOPS[how](broker)
        broker.start()
        for work in works:
            driver.produce(work.source, [Record(value.encode()) for value in AFTER])
        for work in works:
            wait_for_values([work.consumer], BEFORE + AFTER, seconds=RECOVERY_SECONDS)
            if work.transformer is not None:
                check_transformed(admin, work)


def check_transformed(admin: Client, work: Work) -> None:
    wanted = sorted(value.upper() for value in BEFORE + AFTER)
    with closing(admin.consumer(f"{work.kind.name}-check", work.target, isolation="read_committed")) as reader:
        eventually(
            lambda: len(reader.look().values) >= len(wanted),
            lambda: f"{work.kind.name}: {reader.look().values}, {work.transformer and work.transformer.look()}",
            seconds=RECOVERY_SECONDS,
        )
        assert sorted(reader.look().values) == wanted, work.kind.name
