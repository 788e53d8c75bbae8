"""What scenarios play on: a broker whose metrics are read, and a topic for each of them.

A scenario is entered, and what it moves has moved or will soon; then it is left, and cleans up behind itself. It counts
on nothing that another one did.
"""

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kaspar.records import Record, build_batch
from tests.chaos.faulty_disk import FaultyDisk
from tests.peers.observed import ObservedBroker
from tests.peers.raw_client import RawClient

ONE_PARTITION_EACH = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
SETTINGS = {
    **ONE_PARTITION_EACH,
    "log.cleaner.backoff.ms": "50",
    "log.cleaner.dedupe.buffer.size": "2097152",
    "max.connections.per.ip.overrides": "127.0.0.2:0",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.retention.check.interval.ms": "100",
    "transaction.two.phase.commit.enable": "true",
    "queued.max.request.bytes": "100000000",
    "max.incremental.fetch.session.cache.slots": "2",
}


@dataclass
class Stage:
    broker: ObservedBroker
    disk: FaultyDisk | None = None
    """What fails the second log directory."""
    at_start: Mapping[str, float] = field(default_factory=dict)
    """The metrics when the broker had done nothing yet."""

    def client(self) -> RawClient:
        return self.broker.client()

    @contextlib.contextmanager
    def topic(
        self, configs: Mapping[str, str] | None = None, *, partitions: int = 1
    ) -> Iterator[tuple[RawClient, str]]:
        """A client and a topic of its own, which is deleted again."""
        name = f"topic-{uuid.uuid4().hex[:8]}"
        with self.client() as client:
            assert client.create_topic(name, partitions=partitions, configs=configs) == 0
            yield client, name
            assert client.delete_topic(name) == 0


Play = Callable[[Stage], contextlib.AbstractContextManager[object]]


@dataclass(frozen=True, eq=False)
class Scenario:
    play: Play
    since_start: bool = False
    """Whether what it moves may have moved before: it is an average that moves slowly."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """What the broker of this scenario needs that would disturb the others: it gets one of its own."""
    new_broker: Callable[[Path], ObservedBroker] | None = None
    """What creates that broker, where settings do not say all of it."""

    def own_broker(self, folder: Path) -> ObservedBroker | None:
        if self.new_broker is not None:
            return self.new_broker(folder)
        return ObservedBroker(folder, overrides=self.settings) if self.settings else None


def batch_of(*records: Record) -> bytes:
    return bytes(build_batch(records or (Record(now_ms(), b"key", b"value"),)))


def now_ms() -> int:
    return time.time_ns() // 1_000_000
