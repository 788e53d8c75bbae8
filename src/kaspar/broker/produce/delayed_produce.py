"""A Produce request whose response is delayed, as in Kafka's DelayedProduce.

It waits for checks in a thread (broker/produce/appender.py), for a transaction's coordinator
(broker/produce/unverified.py), and for the commit that `acks` requires. The response is sent when the last result is
known.
"""

import asyncio
from typing import Final, NamedTuple

from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.base.ids import Offset
from kaspar.broker.partitions import HostedTopic
from kaspar.broker.produce.appender import Done, Written
from kaspar.broker.produce.counts import count_appended, count_rebuilt
from kaspar.broker.produce.results import PartitionResults, TopicResults, count_errors, produce_response, success
from kaspar.broker.produce.services import ProduceServices
from kaspar.broker.produce.transaction_terms import TransactionTerms, base_sequence_of
from kaspar.broker.produce.unverified import Unverified
from kaspar.network.exchange import Exchange, Outcome
from kaspar.protocol.produce import PartitionProduceResponse, ProduceRequest
from kaspar.replication.partition import Partition
from kaspar.storage import Appended

NO_ACKS: Final = 0
LEADER_ACK: Final = 1
ALL_ACKS: Final = -1
ACKS_0_FAILED: Final = "a Produce request with acks=0 failed; its connection is closed to tell the client"


def waits_for_commit(acks: int, partition: Partition) -> bool:
    """Whether a response waits for the commit. With acks=1 it does if a sync comes first: records must be on disk."""
    return acks == ALL_ACKS or (acks == LEADER_ACK and partition.syncs_before_commit)


class Target(NamedTuple):
    """Where a batch will be appended, and where its result goes."""

    hosted: HostedTopic
    partition: Partition
    results: PartitionResults


class _Uncommitted(NamedTuple):
    """The place of a result that becomes an error unless its batch is committed."""

    results: PartitionResults
    position: int

    def fail(self, refusal: Refused) -> None:
        index = self.results[self.position].partition_index
        self.results[self.position] = PartitionProduceResponse(index, refusal.code, error_message=refusal.message)


class DelayedProduce:
    __slots__ = (
        "_acks",
        "_exchange",
        "_responded",
        "_results",
        "_services",
        "_started",
        "_timeout_ms",
        "_timer",
        "_uncommitted",
        "_unverified",
        "_unwritten",
    )

    def __init__(
        self, services: ProduceServices, exchange: Exchange, request: ProduceRequest, results: TopicResults
    ) -> None:
        self._services = services
        self._exchange = exchange
        self._acks = request.acks
        self._timeout_ms = request.timeout_ms
        self._results = results
        self._unwritten = 0
        self._unverified: list[Unverified] = []
        self._uncommitted: dict[object, _Uncommitted] = {}
        self._started = False
        self._responded = False
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> Outcome:
        """Take a place in the order of responses (acks=0 needs none), unless all results are known by now. That is
        possible because a later batch of the same request that takes the log directory down fails the batches that wait
        for a commit.
        """
        if self._unverified:
            batches, self._unverified = self._unverified, []
            self._services.unverified.add(batches)
        self._started = True
        exchange = self._exchange
        if self._acks == NO_ACKS:
            exchange.wait_unordered()
            self._maybe_respond()
            return exchange
        if not self.waits:
            return produce_response(exchange, self._results)
        exchange.wait()
        exchange.when_lost(self._lost)
        self._services.waiting.add(self)
        self._start_timer()
        return exchange

    @property
    def waits(self) -> int:
        return self._unwritten + len(self._uncommitted)

    def _start_timer(self) -> None:
        if self._uncommitted and self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(self._timeout_ms, 0) / 1000, self._timed_out)

    # -- batches that are not written yet ----------------------------------------------------------------------------

    def append_later(self, target: Target, batch: bytearray) -> None:
        """Append a batch whose checks take too long for the event loop."""
        self._services.appender.append_later(
            target.partition,
            batch,
            acks_all=self._acks == ALL_ACKS,
            done=self._when_written(target, batch),
            failed=self._on_bug,
        )

    def verify_later(self, target: Target, batch: bytearray, terms: TransactionTerms) -> None:
        """Verify a batch that may be the first of its transaction on the partition. All such batches of the request are
        verified together.
        """
        self._unverified.append(
            Unverified(
                target.partition,
                batch,
                base_sequence_of(batch),
                terms,
                self._acks == ALL_ACKS,
                self._when_written(target, batch),
                self._on_bug,
            )
        )

    def _when_written(self, target: Target, batch: bytearray) -> Done:
        self._unwritten += 1
        hosted, partition, results = target

        def done(outcome: Written | KasparError) -> None:
            self._unwritten -= 1
            if isinstance(outcome, KasparError):
                index = partition.topic_partition.partition
                results.append(self._services.refusals.refused(hosted.name, index, outcome, len(batch)))
                if self._acks == NO_ACKS:
                    self._exchange.connection.refuse(ACKS_0_FAILED)
            else:
                appended, prepared = outcome
                count_appended(hosted.metrics, prepared, len(batch))
                if prepared.buffer is not batch:
                    count_rebuilt(hosted.metrics, prepared)
                self.appended(partition, appended, results)
                self._start_timer()
            self._maybe_respond()

        return done

    def _on_bug(self, problem: Exception) -> None:
        self._exchange.fail(problem)

    # -- waiting for the commit --------------------------------------------------------------------------------------

    def appended(self, partition: Partition, appended: Appended, results: PartitionResults) -> None:
        """Note a batch that is in the log: its result is known now, or when the high watermark has passed it."""
        if partition.high_watermark <= appended.last_offset and waits_for_commit(self._acks, partition):
            self.wait_for_commit(partition, appended, results)
        else:
            results.append(success(partition.topic_partition.partition, appended))

    def wait_for_commit(self, partition: Partition, appended: Appended, results: PartitionResults) -> None:
        results.append(success(partition.topic_partition.partition, appended))
        key = object()
        self._uncommitted[key] = _Uncommitted(results, len(results) - 1)

        def committed() -> None:
            waiting = self._uncommitted.pop(key, None)
            if waiting is None:
                return  # it timed out
            if partition.high_watermark <= appended.last_offset:
                # Woken because this broker no longer leads the partition: its directory failed, it was deleted, or it
                # has another leader.
                waiting.fail(partition.why_not_leader())
            elif partition.state.min_insync_replicas > 1:
                try:
                    partition.state.check_in_sync_after_append()
                except Refused as refusal:
                    waiting.fail(refusal)
            self._maybe_respond()

        partition.when_committed(Offset(appended.last_offset + 1), committed)

    def _timed_out(self) -> None:
        message = f"the records were not committed within {self._timeout_ms} ms"
        self.give_up(Refused(ErrorCode.REQUEST_TIMED_OUT, message))

    def give_up(self, refusal: Refused) -> None:
        for uncommitted in self._uncommitted.values():
            uncommitted.fail(refusal)
        self._uncommitted.clear()
        self._maybe_respond()

    # -- the end -----------------------------------------------------------------------------------------------------

    def _lost(self) -> None:
        """The connection is closed, so no response is needed."""
        self._responded = True
        self._uncommitted.clear()
        self._leave()

    def _leave(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._services.waiting.discard(self)

    def _maybe_respond(self) -> None:
        if self._unwritten or self._uncommitted or not self._started or self._responded:
            return
        self._responded = True
        exchange = self._exchange
        if self._acks == NO_ACKS:
            if any(result.error_code for _, results in self._results for result in results):
                count_errors(exchange.metrics, self._results)
            exchange.finish()
        else:
            self._leave()
            exchange.fill(produce_response(exchange, self._results))
