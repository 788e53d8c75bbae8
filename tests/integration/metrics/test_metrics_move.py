"""Every metric of the reference page moves on a running broker, or the page says why it does not."""

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from kaspar.base.exposition import Kind
from kaspar.broker.metrics.catalogue import FAMILIES
from tests.chaos.faulty_disk import FaultyDisk
from tests.integration.metrics.stage import SETTINGS, Scenario, Stage
from tests.integration.metrics.table import ALWAYS_0, MOVED_BY, UP_TO_THE_MACHINE
from tests.integration.metrics.traffic import a_start
from tests.peers.missing import unless_missing
from tests.peers.observed import ObservedBroker, wait_until
from tests.peers.raw_transactions import TRANSACTION, find_coordinator

Samples = Mapping[str, float]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("metrics")
    disk = unless_missing(lambda: FaultyDisk.prepare(folder, folder / "bad"))
    overrides = {**SETTINGS, "log.dirs": f"{folder / 'good'},{folder / 'bad'}"}
    with ObservedBroker(folder, overrides=overrides, environment=disk.environment) as broker:
        at_start = broker.metrics()
        with broker.client() as client:
            find_coordinator(client, "any", TRANSACTION)
        assert (folder / "good" / "__transaction_state-0").exists()
        yield Stage(broker, disk, at_start)


def test_every_metric_has_a_scenario_or_stands_still() -> None:
    named = [*ALWAYS_0, *UP_TO_THE_MACHINE, *(name for names in MOVED_BY.values() for name in names)]
    assert sorted(named) == sorted(family.name for family in FAMILIES)


def test_a_running_broker_shows_every_metric(stage: Stage) -> None:
    """The page of Kafka's metrics says of each whether it is here, by the declarations."""
    _, text = stage.broker.get("metrics")
    assert re.findall(r"^# TYPE (\S+)", text, re.MULTILINE) == [family.name for family in FAMILIES]


@pytest.mark.parametrize("scenario", MOVED_BY, ids=lambda scenario: scenario.play.__name__)
def test_metrics_move(scenario: Scenario, stage: Stage, tmp_path: Path) -> None:
    with ExitStack() as running:
        if (own := scenario.own_broker(tmp_path)) is not None:
            stage = Stage(running.enter_context(own))
        before = _before(scenario, stage)
        waiting = set(MOVED_BY[scenario])

        def all_moved() -> bool:
            now = stage.broker.metrics()
            waiting.difference_update([name for name in waiting if _of(name, now) != _of(name, before)])
            return not waiting

        with scenario.play(stage):
            try:
                wait_until(all_moved, "every metric of the scenario moves")
            except AssertionError:
                pytest.fail(f"not moved: {sorted(waiting)}")


def _before(scenario: Scenario, stage: Stage) -> Samples:
    if scenario.play is a_start:
        return {}
    return stage.at_start if scenario.since_start else stage.broker.metrics()


def test_what_stands_still_is_0_and_the_page_says_so(stage: Stage) -> None:
    metrics = stage.broker.metrics()
    for family in FAMILIES:
        if family.name in ALWAYS_0:
            assert set(_of(family.name, metrics).values()) <= {0}
            assert "Always 0" in family.help, family.name
        else:
            assert "Always 0" not in family.help or family.kind is Kind.SUMMARY, family.name


def _of(name: str, samples: Samples) -> dict[str, float]:
    """The samples of one metric that are not 0: a series that is there, and at 0, has not moved."""
    of_family = re.compile(rf"{name}(_count|_sum)?(\{{|$)")
    return {key: value for key, value in samples.items() if value and of_family.match(key)}
