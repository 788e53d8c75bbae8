"""Scenarios of moves between log directories, on a pair of brokers that have two each."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from tests.compat.responses.compare import differences
from tests.compat.responses.conftest import SETTINGS, Pair
from tests.compat.responses.masks import masked
from tests.compat.responses.play import Stage
from tests.compat.responses.scenario import Scenario
from tests.compat.responses.scenarios import log_dirs
from tests.peers.kafka import ApacheKafka
from tests.peers.kaspar import KasparProcess
from tests.peers.missing import unless_missing
from tests.peers.process import BrokerProcess
from tests.peers.telemetry_receiver import telemetry_receiver

CASES = [
    pytest.param(scenario, version, id=f"{scenario.slug}-v{version}")
    for scenario in (*log_dirs.SCENARIOS, *log_dirs.MOVES)
    for version in scenario.tested_versions()
]


@pytest.fixture(scope="module")
def two_directories(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    same = request.config.getoption("--against") == "kafka"
    unless_missing(telemetry_receiver)

    def settings(name: str) -> dict[str, str]:
        folder = tmp_path_factory.mktemp(name)
        return {**SETTINGS, "log.dirs": f"{folder / 'one'},{folder / 'two'}"}

    def apache_kafka(name: str) -> ApacheKafka:
        return ApacheKafka(tmp_path_factory.mktemp(name), overrides=settings(name), plugins=telemetry_receiver())

    subject: BrokerProcess = (
        apache_kafka("subject")
        if same
        else KasparProcess(tmp_path_factory.mktemp("subject"), overrides=settings("subject"))
    )
    with ExitStack() as running:
        peers = [running.enter_context(peer) for peer in (apache_kafka("kafka"), subject)]
        beside = running.enter_context(ThreadPoolExecutor(max_workers=1))
        kafka, ours = (Stage(peer) for peer in peers)
        yield Pair(kafka, ours, same, 0, beside)


@pytest.mark.parametrize(("scenario", "version"), CASES)
def test_replicas_move_as_in_apache_kafka(scenario: Scenario, version: int, two_directories: Pair) -> None:
    of_kafka, of_subject = (masked(transcript, scenario) for transcript in two_directories.play(scenario, version))
    problems = [str(difference) for difference in differences(of_kafka, of_subject)]
    if problems:
        pytest.fail(f"{scenario.name}, v{version}:\n" + "\n".join(problems), pytrace=False)
