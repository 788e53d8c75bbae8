"""Several brokers on one event loop, with one controller over one embedded store: replication without ZooKeeper.

The brokers are whole, and reach each other over loopback sockets. The controller belongs to the cluster, not to one of
the brokers, so that each of them can be stopped or crash.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import BrokerId
from kaspar.broker.metrics import BrokerState
from kaspar.broker.server import Broker
from kaspar.client.asynchronous import AsyncConnection
from kaspar.config import BrokerSettings
from kaspar.controller import Controller, ControllerShell
from kaspar.controller.events import AlterReassignments, CreateTopics, NewTopic, Reassignment
from kaspar.metadata import PartitionImage, SqliteMetadata, SqliteStore, Store
from kaspar.metadata.images import ImageUpdate, ImageVersion
from kaspar.metadata.loading import prepare_store
from kaspar.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from kaspar.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kaspar.replication.partition import Partition
from tests.unit.storage.logs import make_batch

PATIENCE_S = 20.0
BY_NAME = 12


class ClusterBroker(Broker):
    def __init__(self, settings: BrokerSettings, cluster: "InProcessCluster") -> None:
        super().__init__(settings)
        self._cluster = cluster
        self._store: Store | None = None

    async def _open_metadata(self, cluster_id: str | None) -> tuple[SqliteMetadata, SqliteStore]:
        store = self._store = self._cluster.metadata.connect()
        await prepare_store(store, cluster_id)
        return self._cluster.metadata, store

    async def _start_controller(self, metadata: SqliteMetadata, store: Store, cluster_id: str) -> None:
        shell = await self._cluster.controller(self.settings, cluster_id)
        shell.add_follower(self.images.receive)
        self.controller.connect(shell)
        await shell.look_at_brokers()

    async def stop(self) -> None:
        await super().stop()
        await self._end_session()

    async def crash(self) -> None:
        """Stop as a process that is killed does: nothing is written any more, and connections break."""
        self.state = BrokerState.SHUTTING_DOWN
        await self.network.stop_accepting()
        await self.network.close_connections()
        await self.moves.stop()
        await self.cleaning.stop()
        await self.replicas.stop()
        await self.tasks.cancel_all()
        await self.images.stop()
        await self.syncing.finish()
        await self.threads.run_blocking(self.logs.abandon)
        self.timers.stop()
        self._monitor.stop()
        self.threads.shut_down()
        self.state = BrokerState.NOT_RUNNING
        await self._end_session()

    async def _end_session(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            await store.close()


class InProcessCluster:
    def __init__(self, folder: Path, metadata: SqliteMetadata, overrides: dict[str, str]) -> None:
        self.folder = folder
        self.metadata = metadata
        self.brokers: dict[int, ClusterBroker] = {}
        self._overrides = overrides
        self._shell: ControllerShell | None = None

    async def controller(self, settings: BrokerSettings, cluster_id: str) -> ControllerShell:
        if self._shell is None:
            self._shell = ControllerShell(self.metadata.connect(), Controller(settings), cluster_id=cluster_id)
            await self._shell.start()
        return self._shell

    async def start(self, broker_id: int, **overrides: str) -> ClusterBroker:
        values = {
            "node.id": str(broker_id),
            "log.dirs": str(self.folder / str(broker_id)),
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "kaspar.metrics.listener": "",
            "broker.rack": f"rack-{broker_id}",
            **self._overrides,
            **{name.replace("_", "."): value for name, value in overrides.items()},
        }
        broker = ClusterBroker(BrokerSettings.of(values), self)
        self.brokers[broker_id] = broker
        await broker.start()
        return broker

    async def crash(self, broker_id: int) -> None:
        await self.brokers.pop(broker_id).crash()

    async def stop(self) -> None:
        for broker in self.brokers.values():
            await broker.stop()
        if self._shell is not None:
            await self._shell.stop()
        await self.metadata.close()

    # -- topics --------------------------------------------------------------------------------------------------------

    async def create_topic(self, name: str, *replicas: tuple[int, ...], **configs: str) -> None:
        """A topic whose partitions have these replicas, the leader first."""
        assert self._shell is not None
        new = NewTopic(
            name,
            assignments=tuple(enumerate(replicas)),
            configs=tuple((key.replace("_", "."), value) for key, value in configs.items()),
        )
        (created,) = await self._shell.submit(CreateTopics((new,)))
        assert created.outcome.error is ErrorCode.NONE, created.outcome.message
        for broker in self.brokers.values():
            await until(lambda broker=broker: name in broker.image.topics)  # type: ignore[misc]
            mine = {index for index, each in enumerate(replicas) if broker.broker_id in each}
            await until(lambda broker=broker, mine=mine: mine <= self._led_or_followed(broker, name))  # type: ignore[misc]

    async def reassign(self, topic: str, *replicas: int, index: int = 0) -> None:
        """Have a partition get these replicas."""
        assert self._shell is not None
        wanted = Reassignment(topic, index, replicas)
        (asked,) = await self._shell.submit(AlterReassignments((wanted,)))
        assert asked.outcome.error is ErrorCode.NONE, asked.outcome.message

    @staticmethod
    def _led_or_followed(broker: ClusterBroker, topic: str) -> set[int]:
        hosted = broker.partitions.by_name.get(topic)
        return set() if hosted is None else set(hosted.partitions)

    def image_of(self, topic: str, index: int = 0) -> PartitionImage:
        assert self._shell is not None
        return self._shell.image.topics[topic].partitions[index]

    def publish(self, topic: str, changed: PartitionImage, index: int = 0) -> None:
        """Have every broker see another state of a partition, whatever the controller says."""
        assert self._shell is not None
        image = self._shell.image.topics[topic]
        partitions = (*image.partitions[:index], changed, *image.partitions[index + 1 :])
        for broker in self.brokers.values():
            known = broker.image.topics[topic]
            scripted = broker.image.with_topics(
                {topic: type(known)(known.name, known.topic_id, partitions, known.configs)}
            )
            broker.images.receive(ImageUpdate(ImageVersion(1 << 30, 0), scripted, frozenset({topic})))

    def partition(self, broker_id: int, topic: str, index: int = 0) -> Partition:
        return self.brokers[broker_id].partitions.by_name[topic].partitions[index]

    def contents(self, broker_id: int, topic: str, index: int = 0) -> bytes:
        """The bytes of the partition's segments."""
        folder = self.folder / str(broker_id) / f"{topic}-{index}"
        return b"".join(segment.read_bytes() for segment in sorted(folder.glob("*.log")))

    # -- clients -------------------------------------------------------------------------------------------------------

    async def produce(
        self,
        broker_id: int,
        topic: str,
        *values: bytes,
        index: int = 0,
        acks: int = -1,
        timeout_ms: int = 10_000,
        batch: bytearray | None = None,
    ) -> PartitionProduceResponse:
        data = PartitionProduceData(index=index, records=bytes(batch or make_batch(list(values))))
        request = ProduceRequest(
            acks=acks, timeout_ms=timeout_ms, topic_data=(TopicProduceData(name=topic, partition_data=(data,)),)
        )
        async with await self.connect(broker_id) as connection:
            response = await connection.request(request, BY_NAME)
        assert isinstance(response, ProduceResponse)
        return response.responses[0].partition_responses[0]

    async def fetch(
        self, broker_id: int, topic: str, offset: int, *, rack: str = "", version: int = BY_NAME, max_wait_ms: int = 0
    ) -> PartitionData:
        wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            topics=(FetchTopic(topic=topic, partitions=(wanted,)),),
            rack_id=rack,
        )
        async with await self.connect(broker_id) as connection:
            response = await connection.request(request, version)
        assert isinstance(response, FetchResponse)
        return response.responses[0].partitions[0]

    async def connect(self, broker_id: int) -> AsyncConnection:
        return await AsyncConnection.connect("127.0.0.1", self.brokers[broker_id].port)

    # -- conditions ----------------------------------------------------------------------------------------------------

    async def in_sync(self, topic: str, *broker_ids: int, index: int = 0) -> None:
        """Wait until exactly these replicas are in sync, and the leader knows it."""
        expected = {BrokerId(each) for each in broker_ids}

        def holds() -> bool:
            image = self.image_of(topic, index)
            leader = self.brokers.get(image.leader)
            if set(image.isr) != expected or leader is None:
                return False
            state = leader.partitions.by_name[topic].partitions[index].state
            return set(state.leadership.in_sync_replicas) == expected and state.pending is None

        await until(holds)

    async def equal_logs(self, topic: str, *broker_ids: int, index: int = 0) -> bytes:
        """Wait until the logs are the same, byte for byte, and all of them committed."""

        def ends() -> set[tuple[int, int]]:
            found = (self.partition(each, topic, index) for each in broker_ids)
            return {(each.log.log_end_offset, each.high_watermark) for each in found}

        await until(lambda: len(ends()) == 1 and all(end == committed for end, committed in ends()))
        contents = {self.contents(each, topic, index) for each in broker_ids}
        assert len(contents) == 1
        return contents.pop()


@contextlib.asynccontextmanager
async def running_cluster(folder: Path, *broker_ids: int, **overrides: str) -> AsyncIterator[InProcessCluster]:
    """A setting's dots are underscores here."""
    metadata = await SqliteMetadata.open(folder)
    given = {name.replace("_", "."): value for name, value in overrides.items()}
    cluster = InProcessCluster(folder, metadata, given)
    try:
        for broker_id in broker_ids:
            await cluster.start(broker_id)
        yield cluster
    finally:
        await cluster.stop()


async def until(condition: Callable[[], bool]) -> None:
    """The test's own time limit ends a wait in vain."""
    never = asyncio.Event()
    while not condition():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(never.wait(), 0.005)
