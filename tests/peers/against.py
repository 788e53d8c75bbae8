"""The broker that a test is about: ours, or with `--against kafka` Apache Kafka's, to show wrong expectations."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.peers.kafka import DEFAULT_HEAP, ApacheKafka, kafka_jars
from tests.peers.kaspar import KasparProcess
from tests.peers.missing import unless_missing
from tests.peers.process import BrokerProcess


def broker_to_test(
    request: pytest.FixtureRequest,
    folder: Path,
    overrides: Mapping[str, str],
    *,
    ours: type[KasparProcess] = KasparProcess,
    kafka_heap: str = DEFAULT_HEAP,
) -> BrokerProcess:
    """Not started yet: it is a context manager. `ours` is the class of our broker's process."""
    if request.config.getoption("--against") != "kafka":
        return ours(folder, overrides=overrides)
    unless_missing(kafka_jars)
    return ApacheKafka(folder, heap=kafka_heap, overrides=overrides)
