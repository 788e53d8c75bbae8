"""The transaction coordinator of a broker: the shards of `__transaction_state`, and what their decisions ask for beyond
it: markers in the partitions of a transaction, producer ids, and word to leaders who ask about a transaction.
"""

import asyncio
import functools
from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.broker.coordination.internal_topics import transaction_state
from kaspar.broker.coordination.marker_writer import MarkerWriter
from kaspar.broker.coordination.runtime import Runtime
from kaspar.broker.coordination.tickets import Answer, Refusal
from kaspar.broker.markers import write_marker
from kaspar.coordination import Action, Decision, Now, Ticket
from kaspar.metadata import ClusterImage
from kaspar.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnResult
from kaspar.protocol.schema import Message
from kaspar.transactions.actions import TransactionCompleted, WriteMarkers
from kaspar.transactions.partitions import result_of
from kaspar.transactions.settings import CoordinatorSettings
from kaspar.transactions.shard import TransactionShard
from kaspar.transactions.state import TRANSACTIONS_V2

if TYPE_CHECKING:
    from kaspar.broker.server import Broker


class PreparedTransactions(NamedTuple):
    """How many open transactions wait for their owner's decision, and since when the oldest of them is open."""

    number: int
    oldest_age_ms: int


class Transactions:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._settings = CoordinatorSettings.of(broker.config)
        self.runtime: Runtime[TransactionShard] = Runtime(
            broker, transaction_state(broker.config), self._new_shard, self._perform
        )
        self.markers = MarkerWriter(
            broker,
            give=functools.partial(write_marker, broker),
            is_ours=self._is_ours,
            written=self._markers_written,
        )
        self._epochs: dict[int, int] = {}
        """The epoch in which this broker coordinates a partition, or did so last."""
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        """By id, those who wait for its transaction to be completed."""

    def start(self) -> None:
        self.runtime.follow()

    async def stop(self) -> None:
        await self.runtime.stop()

    def image_changed(self, old: ClusterImage, new: ClusterImage, changed_topics: frozenset[str]) -> None:
        if changed_topics:
            self.markers.image_changed()

    def prepared(self) -> PreparedTransactions:
        """For metrics. May be called from any thread."""
        starts = [
            transaction.start_ms
            for shard in self.runtime.active_shards().values()
            for transaction in tuple(shard.waiting_for_their_owners.values())
        ]
        age_ms = self._broker.now().believed_ms - min(starts) if starts else 0
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
    ) -> Answer:
        """Answered with an AddPartitionsToTxnResult."""

        def decide(shard: TransactionShard, ticket: Ticket, now: Now) -> Decision:
            return shard.add_partitions(transactional_id, producer, partitions, ticket, now, version=version)

        return self.runtime.submit(transactional_id, decide, refused)

    def verify_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: frozenset[TopicPartition],
        *,
        refused: Refusal,
    ) -> Answer:
        """Answered with an AddPartitionsToTxnResult."""

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
        """Whether these partitions belong to the transaction, for who leads them; with `add` (transactions v2) they do
        from then on. While the transaction before is being completed, somebody who adds is kept waiting for a while.
        """
        wanted = frozenset(partitions)
        refused = refused_result(transactional_id, wanted)
        if not add:
            return codes_of(
                await _answered(self.verify_partitions(transactional_id, producer, wanted, refused=refused))
            )
        patience_s = self._broker.config.add_partitions_to_txn_retry_backoff_max_ms / 1000
        until = self._broker.clock.monotonic() + patience_s
        while True:
            codes = codes_of(
                await _answered(
                    self.add_partitions(transactional_id, producer, wanted, version=TRANSACTIONS_V2, refused=refused)
                )
            )
            left_s = until - self._broker.clock.monotonic()
            if ErrorCode.CONCURRENT_TRANSACTIONS not in codes.values() or left_s <= 0:
                return codes
            await self._completion_of(transactional_id, left_s)

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

    # -- what shards ask for -------------------------------------------------------------------------------------------

    def _new_shard(self, partition: int, leader_epoch: int) -> TransactionShard:
        self._epochs[partition] = leader_epoch
        return TransactionShard(
            self._settings,
            partition,
            leader_epoch,
            next_producer_id=self._broker.producer_ids.take,
            transaction_version=lambda: self._broker.image.transaction_version,
        )

    def _perform(self, partition: int, action: Action) -> None:
        match action:
            case WriteMarkers():
                self.markers.write(partition, action)
            case TransactionCompleted(transactional_id):
                for completed in self._waiting.pop(transactional_id, ()):
                    if not completed.done():
                        completed.set_result(None)
            case _:
                raise AssertionError(f"no shard of transactions asks for {action}")

    def _markers_written(self, partition: int, action: WriteMarkers) -> None:
        self.runtime.run(
            partition, lambda shard, now: shard.markers_written(action.transactional_id, action.producer, now)
        )

    def _is_ours(self, partition: int, coordinator_epoch: int) -> bool:
        if self._epochs.get(partition) != coordinator_epoch:
            return False
        try:
            self.runtime.check_active(partition)
        except Refused:
            return False
        return True


def refused_result(transactional_id: str, partitions: frozenset[TopicPartition]) -> Refusal:
    """An AddPartitionsToTxnResult that tells the same code of all of them."""
    return lambda code: result_of(transactional_id, dict.fromkeys(sorted(partitions), code))


def codes_of(answer: Message) -> dict[TopicPartition, ErrorCode]:
    assert isinstance(answer, AddPartitionsToTxnResult)
    return {
        TopicPartition(topic.name, result.partition_index): ErrorCode(result.partition_error_code)
        for topic in answer.topic_results
        for result in topic.results_by_partition
    }


async def _answered(answer: Answer) -> Message:
    return answer if isinstance(answer, Message) else await answer
