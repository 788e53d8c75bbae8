"""Routes the requests of transactions to the right broker: verifications by leaders to the transaction's coordinator,
its markers and fences to the leaders of the partitions.

If that is this broker, it is called directly, without a request. The code for other brokers is loaded when it is first
needed, which on a single broker is never.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Protocol

from kaspar.base.clock import Clock
from kaspar.base.errors import ErrorCode
from kaspar.base.ids import BrokerId, ProducerIdAndEpoch, TopicPartition
from kaspar.broker.coordination.internal_topics import TRANSACTION_STATE
from kaspar.broker.coordination.lookup import CoordinatorLookup
from kaspar.broker.coordination.markers import GiveMarker, Marker
from kaspar.broker.security.between_brokers import ConnectToBroker, connect_in_the_clear
from kaspar.broker.services import CurrentSettings, Tasks
from kaspar.metadata import NO_LEADER
from kaspar.metadata.images import ImageChange, ImageSource

if TYPE_CHECKING:
    from kaspar.broker.coordination.remote_markers import RemoteMarkers
    from kaspar.broker.coordination.remote_verification import RemoteVerification
    from kaspar.broker.peers import Peers


class VerifyHere(Protocol):
    """`Transactions.verify` of this broker."""

    def __call__(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        *,
        add: bool,
    ) -> Awaitable[Mapping[TopicPartition, ErrorCode]]: ...


class TransactionRouting:
    def __init__(
        self,
        broker_id: BrokerId,
        images: ImageSource,
        settings: CurrentSettings,
        *,
        verify_here: VerifyHere,
        give_here: GiveMarker,
        listener: Callable[[], str],
        tasks: Tasks,
        clock: Clock,
        connect: ConnectToBroker = connect_in_the_clear,
    ) -> None:
        """`listener` returns the name of the listener between brokers."""
        self._broker_id = broker_id
        self._images = images
        self._settings = settings
        self._verify_here = verify_here
        self._give_here = give_here
        self._listener = listener
        self._connect = connect
        self._tasks = tasks
        self._clock = clock
        self._lookup = CoordinatorLookup(images)
        self._peers: list[Peers] = []
        self._verification: RemoteVerification | None = None
        self._markers: RemoteMarkers | None = None

    def image_changed(self, change: ImageChange) -> None:
        for peers in self._peers:
            peers.image_changed(change)

    async def close(self) -> None:
        for peers in self._peers:
            await peers.close()

    # -- to coordinators -----------------------------------------------------------------------------------------------

    async def verify(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        *,
        add: bool,
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Whether these partitions, which this broker leads, belong to the transaction. With `add` (transactions v2)
        they are added to it. While the previous transaction is being completed, `add` waits for a while.
        """
        coordinator = self._lookup.coordinator_of(TRANSACTION_STATE, transactional_id)
        if coordinator == self._broker_id:
            return await self._verify_here(transactional_id, producer, partitions, add=add)
        if coordinator == NO_LEADER:
            return dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return await self._verify_at(coordinator, transactional_id, producer, partitions, add=add)

    async def _verify_at(
        self,
        coordinator: BrokerId,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        *,
        add: bool,
    ) -> Mapping[TopicPartition, ErrorCode]:
        from kaspar.broker.coordination.remote_verification import Question, RemoteVerification

        if self._verification is None:
            self._verification = RemoteVerification(self._new_peers("verification"), self._settings, self._tasks)
        question = Question(transactional_id, producer, tuple(partitions), add)
        config = self._settings.config
        until = self._clock.monotonic() + config.add_partitions_to_txn_retry_backoff_max_ms / 1000
        while True:
            codes = await self._verification.ask(coordinator, question)
            is_over = not add or self._clock.monotonic() >= until
            if is_over or ErrorCode.CONCURRENT_TRANSACTIONS not in codes.values():
                return codes
            await asyncio.sleep(config.add_partitions_to_txn_retry_backoff_ms / 1000)

    # -- to leaders ----------------------------------------------------------------------------------------------------

    async def give(self, partition: TopicPartition, marker: Marker) -> ErrorCode:
        """Give a marker to the partition's leader, whichever broker that is. Returns NONE when it is committed."""
        image = self._images.current
        leader, _ = image.current_leader(*partition)
        if leader == self._broker_id:
            return await self._give_here(partition, marker)
        if leader not in image.brokers:
            return ErrorCode.LEADER_NOT_AVAILABLE
        return await self._give_at(BrokerId(leader), partition, marker)

    async def _give_at(self, leader: BrokerId, partition: TopicPartition, marker: Marker) -> ErrorCode:
        from kaspar.broker.coordination.remote_markers import RemoteMarkers

        if self._markers is None:
            self._markers = RemoteMarkers(self._new_peers("markers"), self._settings, self._tasks)
        return await self._markers.give(leader, partition, marker)

    def _new_peers(self, purpose: str) -> "Peers":
        """New connections. Markers wait for commits, and verifications must not wait behind them: each has its own."""
        from kaspar.broker.peers import Peers

        peers = Peers(
            self._images,
            listener=self._listener,
            client_id=f"broker-{self._broker_id}-{purpose}",
            connect=self._connect,
        )
        self._peers.append(peers)
        return peers
