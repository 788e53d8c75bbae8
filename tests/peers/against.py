"""The broker that a test is about: ours, or with `--against kafka` Apache Kafka's, to show wrong expectations; or, for
tests that share their brokers, three of ours with `--against cluster`.

With `--against cluster` only tests that use the fixture `shared_broker` are run, since all others start single brokers
of their own. A test whose statement holds for one broker only has the marker `one_broker` with the reason.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.peers.brokers import Brokers
from tests.peers.downloads import require_tool
from tests.peers.kafka import DEFAULT_HEAP, ApacheKafka, kafka_jars
from tests.peers.kaspar import KasparProcess
from tests.peers.kaspar_cluster import KasparCluster
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


def brokers_to_test(
    request: pytest.FixtureRequest, folder: Path, overrides: Mapping[str, str], *, kafka_heap: str = DEFAULT_HEAP
) -> AbstractContextManager[Brokers]:
    """Not started yet. One broker, or a cluster."""
    if request.config.getoption("--against") != "cluster":
        return broker_to_test(request, folder, overrides, kafka_heap=kafka_heap)
    unless_missing(lambda: require_tool("java"))
    return KasparCluster(folder, overrides=overrides)


def leave_out_for_cluster(items: list[pytest.Item]) -> list[pytest.Item]:
    """The tests that are about single brokers of their own. Those with the marker `one_broker` are skipped."""
    left_out = [item for item in items if "shared_broker" not in getattr(item, "fixturenames", ())]
    for item in items:
        marker = item.get_closest_marker("one_broker")
        if marker is not None:
            item.add_marker(pytest.mark.skip(reason=f"holds for one broker: {marker.args[0]}"))
    return left_out
