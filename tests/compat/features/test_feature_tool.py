"""Kafka's own tool shows, lowers and raises the levels of features."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compat.conftest import SETTINGS
from tests.compat.features.served import broker_that_counts
from tests.peers.kafka import kafka_jars, run_tool
from tests.peers.missing import unless_missing
from tests.peers.process import BrokerProcess

FEATURE_TOOL = "org.apache.kafka.tools.FeatureCommand"
_LINE = re.compile(
    r"Feature: (\S+)\s+SupportedMinVersion: (\S+)\s+SupportedMaxVersion: (\S+)\s+FinalizedVersionLevel: (\S+)"
)


@pytest.fixture
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess]:
    unless_missing(kafka_jars)
    with broker_that_counts(request.config.getoption("--against"), tmp_path, SETTINGS) as running:
        yield running


def tool(broker: BrokerProcess, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return run_tool(FEATURE_TOOL, "--bootstrap-server", broker.bootstrap, *words, check=check)


def levels(broker: BrokerProcess) -> dict[str, tuple[str, str, str]]:
    """By feature: the lowest and the highest level there can be, and the one that is finalised."""
    return {name: (low, high, level) for name, low, high, level in _LINE.findall(tool(broker, "describe").stdout)}


def test_levels_are_shown_lowered_and_raised(broker: BrokerProcess) -> None:
    shown = levels(broker)
    assert shown["transaction.version"] == ("0", "2", "2")
    assert shown["group.version"] == ("0", "1", "1")
    assert shown["metadata.version"][1:] == ("4.3-IV0", "4.3-IV0")

    tool(broker, "downgrade", "--feature", "transaction.version=1", "--dry-run")
    assert levels(broker)["transaction.version"][-1] == "2"
    tool(broker, "downgrade", "--feature", "transaction.version=1", "--feature", "group.version=0")
    lowered = levels(broker)
    assert (lowered["transaction.version"][-1], lowered["group.version"][-1]) == ("1", "0")

    broker.stop()
    broker.start()
    assert levels(broker)["transaction.version"][-1] == "1"
    tool(broker, "upgrade", "--feature", "transaction.version=2", "--feature", "group.version=1")
    assert levels(broker) == shown


def test_what_cannot_be_is_refused(broker: BrokerProcess) -> None:
    refused = tool(broker, "upgrade", "--feature", "transaction.version=9", check=False)
    assert refused.returncode != 0
    assert "only supports versions 0-2" in refused.stdout + refused.stderr
    unknown = tool(broker, "upgrade", "--feature", "nothing.such=1", check=False)
    assert unknown.returncode != 0
    down = tool(broker, "upgrade", "--feature", "transaction.version=1", check=False)
    assert down.returncode != 0
    assert levels(broker)["transaction.version"][-1] == "2"
