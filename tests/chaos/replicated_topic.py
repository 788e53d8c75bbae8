"""A topic with a replica on every broker of a cluster: who leads it, and what became of it in the end."""

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic, PartitionMetadata

from kaspar.client import Client
from kaspar.config import load_settings
from kaspar.records import Record
from kaspar.security.client import ClientSecurity, client_security
from kaspar.testing import Cluster
from tests.chaos.actors.membership import NO_SETTINGS
from tests.chaos.history.logs import read_batches
from tests.chaos.ledger import Ledger
from tests.peers.observed import wait_until

PARTITIONS = 3
SECONDS = 60.0


def admin_security(cluster: Cluster) -> ClientSecurity | None:
    """How our client logs in as an administrator, if the cluster is secured."""
    settings = cluster.data_dir / "clients" / "admin.properties"
    return client_security(load_settings(settings)) if settings.exists() else None


class ReplicatedTopic:
    """`data_of` is the data directory of the broker with that id; `client` and `security` are how stock clients and
    ours log in as an administrator."""

    def __init__(
        self,
        bootstrap: str,
        data_of: Callable[[int], Path],
        name: str,
        *,
        replicas: int = 3,
        client: Mapping[str, str | int] = NO_SETTINGS,
        security: ClientSecurity | None = None,
    ) -> None:
        self.bootstrap = bootstrap
        self.name = name
        self.replicas = replicas
        self._data_of = data_of
        self._security = security
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, **client})
        configs = {"segment.bytes": "1048576"}  # so that some of it is rolled
        new = NewTopic(name, PARTITIONS, replicas, config=configs)
        self._admin.create_topics([new])[name].result(30)

    def partitions(self) -> Mapping[int, PartitionMetadata]:
        return self._admin.list_topics(timeout=30).topics[self.name].partitions

    def leader(self, partition: int) -> int:
        wait_until(lambda: self.partitions()[partition].leader > 0, "there is a leader", seconds=SECONDS)
        return self.partitions()[partition].leader

    def is_in_sync(self) -> bool:
        return all(len(each.isrs) == self.replicas for each in self.partitions().values())

    # -- afterwards ----------------------------------------------------------------------------------------------------

    def check(self, ledger: Ledger) -> None:
        """Every replica is in sync again and has the same bytes, and what was acknowledged is there."""
        wait_until(self.is_in_sync, "every replica is in sync again", seconds=SECONDS)
        wait_until(self.has_equal_replicas, "all replicas have the same bytes", seconds=SECONDS)
        acknowledged = Counter(partition for partition, _ in ledger.acknowledged)
        ledger.check({number: self._read(number, acknowledged[number]) for number in range(PARTITIONS)})
        print(f"{ledger.count} records acknowledged")

    def _read(self, partition: int, at_least: int) -> list[Record]:
        """A leader that was elected just now knows the high watermark a moment later, so it is read until then."""
        records: list[Record] = []

        def has_them() -> bool:
            with Client(self.bootstrap, security=self._security) as client:
                batches = read_batches(client, self.name, partition)
                records[:] = [record for _, batch in batches for record in batch]
            return len(records) >= at_least

        with contextlib.suppress(AssertionError):  # what is missing is for the ledger to say
            wait_until(has_them, "as many records as were acknowledged", seconds=20)
        return records

    def has_equal_replicas(self) -> bool:
        return all(
            len({self._bytes_on(broker, partition) for broker in found.replicas}) == 1
            for partition, found in self.partitions().items()
        )

    def _bytes_on(self, broker: int, partition: int) -> bytes:
        folder = self._data_of(broker) / f"{self.name}-{partition}"
        return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))
