"""The pair of brokers: Apache Kafka, and the one that is compared with it. Both fresh, with the same settings."""

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.compat.responses.compare import differences
from tests.compat.responses.differences import KNOWN, judge
from tests.compat.responses.masks import masked
from tests.compat.responses.play import Stage, Transcript
from tests.compat.responses.scenario import Scenario
from tests.peers.jmx import jmx_flags
from tests.peers.kafka import LIGHT_JVM, ApacheKafka
from tests.peers.missing import unless_missing
from tests.peers.observed import ObservedBroker
from tests.peers.process import BrokerProcess
from tests.peers.telemetry_receiver import REPORTERS, telemetry_receiver
from tests.peers.wire import free_port

# Records carry fixed timestamps of the past, which no retention may take away while the scenarios run.
SETTINGS = {
    "log.retention.ms": "-1",
    "num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    **REPORTERS,
}


@dataclass(frozen=True)
class Pair:
    kafka: Stage
    subject: Stage
    same: bool  # both are Apache Kafka: then nothing at all may differ
    jmx_port: int  # Kafka's
    _beside: ThreadPoolExecutor

    def play(self, scenario: Scenario, version: int, *, again: bool = False) -> tuple[Transcript, Transcript]:
        """On both at once."""
        of_kafka = self._beside.submit(self.kafka.play, scenario, version, again=again)
        of_subject = self.subject.play(scenario, version, again=again)
        return of_kafka.result(), of_subject

    def check_responses(self, scenario: Scenario, version: int) -> None:
        """Play it, and fail the test if they differ in anything but the known differences, or no longer in those."""
        of_kafka, of_subject = (masked(transcript, scenario) for transcript in self.play(scenario, version))
        if os.environ.get("KASPAR_SHOW_RESPONSES"):
            print(json.dumps(of_kafka, indent=1, default=str))
        judgement = judge(differences(of_kafka, of_subject), scenario, version, () if self.same else KNOWN)
        problems = [str(difference) for difference in judgement.unexpected]
        problems += [f"no longer differs, so must go from the known differences: {entry}" for entry in judgement.stale]
        if problems:
            pytest.fail(f"{scenario.api.title} v{version}, {scenario.name}:\n" + "\n".join(problems), pytrace=False)


@pytest.fixture(scope="session")
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    same = request.config.getoption("--against") == "kafka"
    folder = tmp_path_factory.mktemp("responses")
    unless_missing(telemetry_receiver)
    with ExitStack() as running:
        jmx_port = free_port()
        kafka = running.enter_context(_apache_kafka(folder / "kafka", jmx_flags(jmx_port)))
        subject = running.enter_context(_subject(folder / "subject", same=same))
        beside = running.enter_context(ThreadPoolExecutor(max_workers=1))
        stages = Stage(kafka), Stage(subject)
        for stage in stages:
            stage.wait_ready()
        yield Pair(*stages, same, jmx_port, beside)


def _apache_kafka(folder: Path, more_flags: tuple[str, ...] = ()) -> ApacheKafka:
    return ApacheKafka(folder, overrides=SETTINGS, jvm_flags=(*LIGHT_JVM, *more_flags), plugins=telemetry_receiver())


def _subject(folder: Path, *, same: bool) -> BrokerProcess:
    return _apache_kafka(folder) if same else ObservedBroker(folder, overrides=SETTINGS)
