"""Clients of the simulated cluster, on the product's wire client: producers, and consumers that read what is committed.

A client trusts the newest leader epoch that it has seen, as Kafka's do: metadata of an older one is ignored.
"""

import asyncio
import random
from collections.abc import Sequence
from typing import Final

from kaspar.base.errors import ErrorCode, KasparError
from kaspar.base.ids import TopicPartition
from kaspar.client.asynchronous import AsyncConnection
from kaspar.client.core import UnsupportedByPeer
from kaspar.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from kaspar.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kaspar.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kaspar.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from kaspar.records import Record, build_batch, iter_batch, iter_headers
from tests.sim.machines import PORT
from tests.sim.oracle import Oracle
from tests.sim.virtual_loop import Process

BY_NAME: Final = 12
LIST_OFFSETS_VERSION: Final = 7
PATIENCE_S: Final = 3.0
LATEST: Final = -1
FAILURES = (OSError, KasparError, TimeoutError, UnsupportedByPeer)


class Client:
    def __init__(
        self, name: str, topic_partition: TopicPartition, brokers: Sequence[int], rng: random.Random, oracle: Oracle
    ) -> None:
        self.process = Process(name, name)
        self.name = name
        self.topic_partition = topic_partition
        self.rng = rng
        self.oracle = oracle
        self.is_stopping = False
        self.is_done = False
        self.epoch = -1
        """The newest leader epoch that it knows."""
        self.leader: int | None = None
        self.replicas: tuple[int, ...] = ()
        self._brokers = tuple(brokers)
        self._connections: dict[int, AsyncConnection] = {}

    async def run(self) -> None:
        while not self.is_stopping:
            await self.step()
        self.is_done = True

    async def step(self) -> None:
        raise NotImplementedError

    async def connection(self, broker: int) -> AsyncConnection:
        known = self._connections.get(broker)
        if known is None or known.is_closed:
            known = await AsyncConnection.connect(f"b{broker}", PORT, client_id=self.name, timeout_s=PATIENCE_S)
            self._connections[broker] = known
        return known

    async def find_leader(self) -> int | None:
        """Asks until it hears of a leader in no older epoch than it knows."""
        if self.leader is not None:
            return self.leader
        topic, index = self.topic_partition
        try:
            connection = await self.connection(self.rng.choice(self._brokers))
            request = MetadataRequest(topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False)
            response = await connection.request(request, 12)
        except FAILURES:
            return None
        assert isinstance(response, MetadataResponse)
        for found in response.topics:
            for partition in found.partitions:
                if partition.partition_index == index and partition.leader_epoch >= self.epoch:
                    self.epoch = partition.leader_epoch
                    self.replicas = partition.replica_nodes
                    self.leader = partition.leader_id if partition.leader_id >= 0 else None
        return self.leader

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(self.rng.random() * seconds)


class Producer(Client):
    """One batch at a time. With acks=all it is idempotent, and repeats a batch until it is acknowledged."""

    def __init__(self, *arguments: object, acks: int, producer_id: int, pace_s: float) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.acks = acks
        self.pace_s = pace_s
        self.sent: list[bytes] = []
        self.acknowledged: list[bytes] = []
        self._producer_id = producer_id

    async def step(self) -> None:
        await self.pause(2 * self.pace_s)
        first = len(self.sent)
        values = [f"{self.name}/{first + number}".encode() for number in range(self.rng.randint(1, 3))]
        self.sent += values
        while not await self._deliver(first, values):
            self.leader = None
            await self.pause(0.4)
            if self.acks != -1:
                return

    async def _deliver(self, first: int, values: list[bytes]) -> bool:
        leader = await self.find_leader()
        if leader is None:
            return False
        topic, index = self.topic_partition
        records = [Record(0, None, value) for value in values]
        if self.acks == -1:
            batch = build_batch(records, producer_id=self._producer_id, producer_epoch=0, base_sequence=first)
        else:
            batch = build_batch(records)
        data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=index, records=bytes(batch)),))
        request = ProduceRequest(acks=self.acks, timeout_ms=1500, topic_data=(data,))
        try:
            connection = await self.connection(leader)
            response = await connection.request(request, BY_NAME)
        except FAILURES:
            return False
        assert isinstance(response, ProduceResponse)
        (result,) = response.responses[0].partition_responses
        code = ErrorCode(result.error_code)
        if code is ErrorCode.NONE:
            self.acknowledged += values
            if self.acks == -1:
                self.oracle.acknowledged(self.name, self.topic_partition, result.base_offset, values)
            return True
        if code in (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID):
            self.oracle.violated(
                f"{self.topic_partition}: the leader b{leader} does not know what it has acknowledged to {self.name}: "
                f"{code.name} for sequence {first} ({result.error_message})"
            )
        return False


class Consumer(Client):
    """Reads from the beginning, mostly from the leader, and asks now and then where the log ends."""

    position = 0

    async def step(self) -> None:
        leader = await self.find_leader()
        if leader is None:
            await self.pause(0.2)
            return
        kind = self.rng.random()
        try:
            if kind < 0.1:
                await self._ask_for_end(leader)
            elif kind < 0.25 and self.replicas:
                await self._fetch(self.rng.choice(self.replicas))
            else:
                await self._fetch(leader)
        except FAILURES:
            self.leader = None
            await self.pause(0.2)

    async def _fetch(self, broker: int) -> None:
        topic, index = self.topic_partition
        wanted = FetchPartition(
            partition=index,
            current_leader_epoch=self.epoch,
            fetch_offset=self.position,
            partition_max_bytes=1 << 16,
        )
        request = FetchRequest(
            max_wait_ms=300, min_bytes=1, topics=(FetchTopic(topic=topic, partitions=(wanted,)),), session_epoch=-1
        )
        response = await (await self.connection(broker)).request(request, BY_NAME)
        assert isinstance(response, FetchResponse)
        (result,) = response.responses[0].partitions
        code = ErrorCode(result.error_code)
        if code is not ErrorCode.NONE:
            if code is ErrorCode.OFFSET_OUT_OF_RANGE and broker == self.leader:
                self.oracle.violated(
                    f"{self.topic_partition}: {self.name} has read up to {self.position}, which is out of range for "
                    f"the leader b{broker} in epoch {self.epoch}"
                )
            self.leader = None
            await self.pause(0.2)
            return
        records = memoryview(bytes(result.records or b""))
        for at, header in iter_headers(records, 0, len(records)):
            self.epoch = max(self.epoch, header.leader_epoch)
            for record in iter_batch(records, at, header):
                if record.offset >= self.position:
                    self.oracle.read(self.name, self.topic_partition, record.offset, record.value or b"")
                    self.position = record.offset + 1

    async def _ask_for_end(self, leader: int) -> None:
        topic, index = self.topic_partition
        before, epoch = self.position, self.epoch
        wanted = ListOffsetsPartition(partition_index=index, current_leader_epoch=epoch, timestamp=LATEST)
        request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=(wanted,)),))
        response = await (await self.connection(leader)).request(request, LIST_OFFSETS_VERSION)
        assert isinstance(response, ListOffsetsResponse)
        (result,) = response.topics[0].partitions
        if result.error_code:
            self.leader = None
        elif result.offset < before:
            self.oracle.violated(
                f"{self.topic_partition}: {self.name} has read up to {before}, but for the leader b{leader} in epoch "
                f"{epoch} the log ends at {result.offset}"
            )
