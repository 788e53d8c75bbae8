"""The transaction coordinator of a broker: the shards of `__transaction_state`, and the actions of their decisions:
markers in the partitions of a transaction, producer ids, and the verification of transactions for leaders.
"""

import asyncio
from collections.abc import Callable, Collection
from typing import Final, NamedTuple, TypeAlias

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.broker.coordination.fences import Fences
from kaspar.broker.coordination.internal_topics import transaction_state
from kaspar.broker.coordination.marker_writer import Due, MarkerWriter
from kaspar.broker.coordination.markers import GiveMarker
from kaspar.broker.coordination.runtime import Runtime
from kaspar.broker.coordination.services import CoordinatorServices
from kaspar.broker.coordination.tickets import Refusal, Response
from kaspar.coordination import Action, Decision, Now
from kaspar.metadata.images import ImageChange
from kaspar.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnResult
from kaspar.protocol.schema import Message
from kaspar.transactions.actions import TransactionCompleted, WriteFences, WriteMarkers
from kaspar.transactions.partitions import result_of
from kaspar.transactions.settings import CoordinatorSettings
from kaspar.transactions.shard import TransactionShard
from kaspar.transactions.state import TRANSACTIONS_V2

TransactionRuntime: TypeAlias = Runtime[TransactionShard]

FENCED_WITHIN_S: Final = 5.0
"""How long a request to prepare a transaction waits for the fences of its partitions."""


class PreparedTransactions(NamedTuple):
    """The number of open transactions that wait for their owner's decision, and the age of the oldest of them."""

    number: int
    oldest_age_ms: int


class Transactions:
    def __init__(
        self, services: CoordinatorServices, *, next_producer_id: Callable[[], int], write_marker: GiveMarker
    ) -> None:
        """`next_producer_id` returns an id that was never used, or raises Refused."""
        self._services = services
        self._next_producer_id = next_producer_id
        self._settings = CoordinatorSettings.of(services.settings.config)
        self.runtime: TransactionRuntime = Runtime(
            services, transaction_state(services.settings.config), self._new_shard, self._perform
        )
        self.markers = MarkerWriter(
            images=services.images,
            tasks=services.tasks,
            failures=services.failures,
            give=write_marker,
            is_deleted=services.is_deleted,
            claim=self._claim,
            written=self._written,
            abandoned=self._abandoned,
        )
        self._fences = Fences(self.markers.write)
        self._terms: dict[int, object] = {}
        """One object for each time that this broker begins to coordinate a partition. The leader epoch does not
        identify these: a broker that has lost its registration may become the leader again in the same epoch.
        """
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        """By transactional id, the calls that wait until its transaction is completed."""

    def start(self) -> None:
        self.runtime.follow()

    async def stop(self) -> None:
        await self.runtime.stop()

    def image_changed(self, change: ImageChange) -> None:
        if change.changed_topics:
            self.markers.image_changed()

    def prepared(self) -> PreparedTransactions:
        """For metrics. May be called from any thread."""
        starts = [
            transaction.start_ms
            for shard in self.runtime.active_shards().values()
            for transaction in tuple(shard.waiting_for_their_owners.values())
        ]
        age_ms = self._services.now().believed_ms - min(starts) if starts else 0
        return PreparedTransactions(len(starts), max(0, age_ms))

    # -- partitions of a transaction -----------------------------------------------------------------------------------

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: frozenset[TopicPartition],
        *,
        version: int,
        refused: Refusal,
    ) -> Response:
        """Add partitions to a transaction. The response is an AddPartitionsToTxnResult."""

        def decide(shard: TransactionShard, now: Now) -> Decision:
            return shard.add_partitions(transactional_id, producer, partitions, now, version=version)

        return self.runtime.submit(transactional_id, decide, refused)

    def verify_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: frozenset[TopicPartition],
        *,
        refused: Refusal,
    ) -> Response:
        """Check that partitions belong to a transaction. The response is an AddPartitionsToTxnResult."""

        def question(shard: TransactionShard, now: Now) -> Message:
            return shard.verify_partitions(transactional_id, producer, partitions, now)

        return self.runtime.ask(transactional_id, question, refused)

    async def verify(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        *,
        add: bool,
    ) -> dict[TopicPartition, ErrorCode]:
        """Whether these partitions, which this broker leads, belong to the transaction. With `add` (transactions v2)
        they are added to it. While the previous transaction is being completed, `add` waits for a while.
        """
        wanted = frozenset(partitions)
        refused = refused_result(transactional_id, wanted)
        if not add:
            return codes_of(
                await _received(self.verify_partitions(transactional_id, producer, wanted, refused=refused))
            )
        patience_s = self._services.settings.config.add_partitions_to_txn_retry_backoff_max_ms / 1000
        until = self._services.clock.monotonic() + patience_s
        while True:
            codes = codes_of(
                await _received(
                    self.add_partitions(transactional_id, producer, wanted, version=TRANSACTIONS_V2, refused=refused)
                )
            )
            left_s = until - self._services.clock.monotonic()
            if ErrorCode.CONCURRENT_TRANSACTIONS not in codes.values() or left_s <= 0:
                return codes
            await self._completion_of(transactional_id, left_s)

    async def fenced(self, transactional_id: str) -> ErrorCode:
        """NONE when the partitions of a prepared transaction accept no more records (broker/coordination/fences.py)."""
        return await self._fences.settled(transactional_id, FENCED_WITHIN_S)

    async def _completion_of(self, transactional_id: str, patience_s: float) -> None:
        completed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(transactional_id, set())
        waiting.add(completed)
        try:
            await asyncio.wait_for(completed, patience_s)
        except TimeoutError:
            waiting.discard(completed)
            if not waiting:
                self._waiting.pop(transactional_id, None)

    # -- actions of shards ---------------------------------------------------------------------------------------------

    def _new_shard(self, partition: int, leader_epoch: int) -> TransactionShard:
        self._terms[partition] = object()
        self._fences.forget(partition)
        return TransactionShard(
            self._settings,
            partition,
            leader_epoch,
            next_producer_id=self._next_producer_id,
            transaction_version=lambda: self._services.images.current.transaction_version,
        )

    def _perform(self, partition: int, action: Action) -> None:
        match action:
            case WriteMarkers():
                self._fences.ended(action.transactional_id)
                self.markers.write(partition, action)
            case WriteFences():
                self._fences.begin(partition, action)
            case TransactionCompleted(transactional_id):
                for completed in self._waiting.pop(transactional_id, ()):
                    if not completed.done():
                        completed.set_result(None)
            case _:
                raise AssertionError(f"no shard of transactions asks for {action}")

    def _written(self, partition: int, action: Due) -> None:
        if isinstance(action, WriteFences):
            self._fences.written(action)
            return
        self.runtime.run(
            partition, lambda shard, now: shard.markers_written(action.transactional_id, action.producer, now)
        )

    def _abandoned(self, partition: int, action: Due) -> None:
        if isinstance(action, WriteFences):
            self._fences.abandoned(action)

    def _claim(self, partition: int) -> Callable[[], bool]:
        term = self._terms[partition]
        return lambda: self._terms[partition] is term and self.runtime.is_active(partition)


def refused_result(transactional_id: str, partitions: frozenset[TopicPartition]) -> Refusal:
    """Returns an AddPartitionsToTxnResult with the same error for all of the partitions."""
    return lambda code: result_of(transactional_id, dict.fromkeys(sorted(partitions), code))


def codes_of(result: Message) -> dict[TopicPartition, ErrorCode]:
    assert isinstance(result, AddPartitionsToTxnResult)
    return {
        TopicPartition(topic.name, each.partition_index): ErrorCode(each.partition_error_code)
        for topic in result.topic_results
        for each in topic.results_by_partition
    }


async def _received(response: Response) -> Message:
    return response if isinstance(response, Message) else await response
