"""Clients read a compacted topic: offsets with gaps, batches of which records are gone, or all of them, compressed ones
too, and transactions of which nothing but the marker is left.
"""

import itertools
import threading

import pytest

from tests.compat.clients.api import Feature
from tests.compat.clients.stage import Stage, for_every_client
from tests.compat.clients.words import wait_for_values
from tests.compat.compacted_partition import CompactedPartition
from tests.compat.drivers.api import EARLIEST, Ability, Driver, at_offset
from tests.compat.scenario import needs
from tests.peers.brokers import Brokers

transactions_over_one_connection = pytest.mark.one_broker(
    "the partition is filled by transactions over one connection, to its leader and to their coordinators at once"
)
_filling = threading.Lock()
_filled: dict[tuple[str, str], CompactedPartition] = {}


def compacted(broker: Brokers, topic: str, *, tombstones: bool = True) -> CompactedPartition:
    """Filled and cleaned twice, for all clients together."""
    with _filling:
        if (broker.bootstrap, topic) not in _filled:
            partition = CompactedPartition(broker, topic, tombstones=tombstones)
            partition.create()
            for _ in range(2):
                partition.fill()
                partition.compact()
            _filled[broker.bootstrap, topic] = partition
        return _filled[broker.bootstrap, topic]


@pytest.fixture
def partition(broker: Brokers) -> CompactedPartition:
    return compacted(broker, "compacted")


@transactions_over_one_connection
@needs(Ability.CONSUME)
def test_all_that_is_left_is_read(driver: Driver, partition: CompactedPartition) -> None:
    left = partition.left()
    assert len(left) < left[-1].offset / 2
    assert driver.consume(partition.topic, start=EARLIEST, count=len(left)) == left


@transactions_over_one_connection
@needs(Ability.CONSUME)
def test_reading_begins_behind_a_gap(driver: Driver, partition: CompactedPartition) -> None:
    """At an offset that is no more: in a batch that has lost it, and in a stretch without any batch."""
    left = partition.left()
    gaps = [before.offset + 1 for before, after in itertools.pairwise(left) if after.offset > before.offset + 1]
    for offset in (gaps[0], gaps[len(gaps) // 2], gaps[-1]):
        behind = [record for record in left if record.offset >= offset]
        assert driver.consume(partition.topic, start=at_offset(offset), count=len(behind)) == behind


@transactions_over_one_connection
@for_every_client(Feature.READ_COMMITTED, Feature.COMPACTED_TRANSACTIONS)
def test_a_group_reads_what_is_committed(stage: Stage) -> None:
    partition = compacted(stage.broker, "compacted-for-groups", tombstones=False)
    member = stage.consumer(stage.new_name("group"), partition.topic, isolation="read_committed")
    wait_for_values([member], [(record.value or b"").decode() for record in partition.left()])


@for_every_client()
def test_a_group_reads_a_topic_that_was_compacted(stage: Stage) -> None:
    """Without transactions: every client there is."""
    topic = stage.new_name("plain")
    partition = CompactedPartition(stage.broker, topic, tombstones=False)
    partition.create()
    partition.fill_plainly(60)
    partition.compact()
    left = partition.left()
    assert len(left) < left[-1].offset
    member = stage.consumer(stage.new_name("group"), topic)
    wait_for_values([member], [(record.value or b"").decode() for record in left])
