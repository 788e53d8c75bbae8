"""The pair of brokers: Apache Kafka, and the one that is compared with it. Both fresh, with the same settings."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.compat.answers.play import Stage, Transcript
from tests.compat.answers.scenario import Scenario
from tests.peers.kafka import ApacheKafka, kafka_jars
from tests.peers.kaspar import KasparProcess
from tests.peers.missing import unless_missing
from tests.peers.process import BrokerProcess

# Records carry fixed timestamps of the past, which no retention may take away while the scenarios run.
SETTINGS = {"log.retention.ms": "-1", "num.partitions": "2", "auto.create.topics.enable": "true"}


@dataclass(frozen=True)
class Pair:
    kafka: Stage
    subject: Stage
    same: bool  # both are Apache Kafka: then nothing at all may differ
    _beside: ThreadPoolExecutor

    def play(self, scenario: Scenario, version: int) -> tuple[Transcript, Transcript]:
        """On both at once."""
        of_kafka = self._beside.submit(self.kafka.play, scenario, version)
        of_subject = self.subject.play(scenario, version)
        return of_kafka.result(), of_subject


@pytest.fixture(scope="session")
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    same = request.config.getoption("--against") == "kafka"
    folder = tmp_path_factory.mktemp("answers")
    unless_missing(kafka_jars)
    with ExitStack() as running:
        kafka = running.enter_context(ApacheKafka(folder / "kafka", overrides=SETTINGS))
        subject = running.enter_context(_subject(folder / "subject", same=same))
        beside = running.enter_context(ThreadPoolExecutor(max_workers=1))
        stages = Stage(kafka), Stage(subject)
        for stage in stages:
            stage.wait_ready()
        yield Pair(*stages, same, beside)


def _subject(folder: Path, *, same: bool) -> BrokerProcess:
    kind = ApacheKafka if same else KasparProcess
    return kind(folder, overrides=SETTINGS)
