"""A produce request that cannot be answered yet, and how the answers of Produce are written.

It waits for whatever keeps its batches: checks in a thread (broker/appends.py), a transaction's coordinator
(broker/unverified.py), the commit that `acks` asks for. The answer goes out when the last of them is known.
"""

import asyncio
import time
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.base.ids import Offset
from kaspar.broker.appends import Check, Done
from kaspar.broker.connection import Buffers, Connection, Slot
from kaspar.broker.partitions import HostedTopic
from kaspar.broker.produce_counts import count_appended, count_rebuilt
from kaspar.broker.transaction_terms import TransactionTerms, base_sequence_of
from kaspar.broker.unverified import Unverified
from kaspar.protocol import produce as codec
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.headers import set_frame_size, start_response
from kaspar.protocol.produce import PartitionProduceResponse, ProduceRequest
from kaspar.protocol.shapes import Topic
from kaspar.replication.partition import Partition
from kaspar.storage import Appended, PreparedBatch

if TYPE_CHECKING:
    from kaspar.broker.handlers.produce import ProduceHandler

NO_ACKS: Final = 0
LEADER_ACK: Final = 1
ALL_ACKS: Final = -1
ACKS_0_FAILED: Final = (
    "a produce request with acks=0 failed, and a closed connection is all that can tell its client so"
)

TopicResults = list[tuple[Topic, list[PartitionProduceResponse]]]

_new = tuple.__new__  # a named tuple's own constructor takes three times as long, and this is the hot path


def waits_for_commit(acks: int, partition: Partition) -> bool:
    """With acks=1 a record need not be committed, but where a sync comes before the commit it must be on the disk."""
    return acks == ALL_ACKS or (acks == LEADER_ACK and partition.syncs_before_commit)


def success(index: int, appended: Appended) -> PartitionProduceResponse:
    base_offset, _, log_append_time_ms, log_start_offset, _ = appended
    return _new(PartitionProduceResponse, (index, 0, base_offset, log_append_time_ms, log_start_offset, (), None, None))


def encode(version: int, correlation_id: int, results: TopicResults) -> bytearray:
    out = start_response(ApiKey.PRODUCE, version, correlation_id)
    codec.write_response(out, version, results)
    set_frame_size(out)
    return out


class PendingProduce:
    __slots__ = (
        "_acks",
        "_connection",
        "_correlation_id",
        "_handler",
        "_local",
        "_received",
        "_request_bytes",
        "_results",
        "_slot",
        "_started",
        "_timeout_ms",
        "_timer",
        "_uncommitted",
        "_unverified",
        "_unwritten",
        "_version",
    )

    def __init__(
        self,
        handler: "ProduceHandler",
        connection: Connection,
        request: ProduceRequest,
        version: int,
        correlation_id: int,
        results: TopicResults,
        received: float,
    ) -> None:
        self._handler = handler
        self._connection = connection
        self._acks = request.acks
        self._timeout_ms = request.timeout_ms
        self._version = version
        self._correlation_id = correlation_id
        self._results = results
        self._received = received
        self._local = 0.0
        self._request_bytes = 0
        self._unwritten = 0
        self._unverified: list[Unverified] = []
        self._uncommitted: dict[object, tuple[list[PartitionProduceResponse], int]] = {}
        self._slot: Slot | None = None
        self._started = False
        self._timer: asyncio.TimerHandle | None = None

    def start(self, request_bytes: int) -> Buffers | Slot | None:
        """Take a place in the order of responses (with acks=0 there is none to take), unless all is known by now: what
        waited for a commit is failed at once where a later batch of the same request takes the log directory down.
        """
        self._request_bytes = request_bytes
        self._local = time.perf_counter() - self._received
        if self._unverified:
            batches, self._unverified = self._unverified, []
            self._handler.unverified.add(batches)
        self._started = True
        if self._acks == NO_ACKS:
            self._maybe_answer()
            return None
        if not self.waits:
            self._handler.metrics.inline(self._version, self._local, request_bytes)
            return (self._handler.response(self._version, self._correlation_id, self._results),)
        slot = self._slot = self._connection.take_slot()
        slot.when_lost(self._lost)
        self._handler.waiting.add(self)
        self._start_timer()
        return slot

    @property
    def waits(self) -> int:
        return self._unwritten + len(self._uncommitted)

    def _start_timer(self) -> None:
        if self._uncommitted and self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(self._timeout_ms, 0) / 1000, self._timed_out)

    # -- batches that are not written yet ----------------------------------------------------------------------------

    def check_later(
        self,
        hosted: HostedTopic,
        partition: Partition,
        batch: bytearray,
        answers: list[PartitionProduceResponse],
        index: int,
        check: Check | None,
    ) -> None:
        """Its checks take too long for the event loop. `check` comes behind them."""
        self._handler.appends.add(
            partition,
            batch,
            acks_all=self._acks == ALL_ACKS,
            done=self._when_written(hosted, partition, batch, answers, index),
            failed=self._met_a_bug,
            check=check,
        )

    def verify_later(
        self,
        hosted: HostedTopic,
        partition: Partition,
        batch: bytearray,
        terms: TransactionTerms,
        answers: list[PartitionProduceResponse],
        index: int,
    ) -> None:
        """It may be the first of its transaction here. All such batches of the request are asked about together."""
        self._unverified.append(
            Unverified(
                partition,
                batch,
                base_sequence_of(batch),
                terms,
                self._acks == ALL_ACKS,
                self._when_written(hosted, partition, batch, answers, index),
                self._met_a_bug,
            )
        )

    def _when_written(
        self,
        hosted: HostedTopic,
        partition: Partition,
        batch: bytearray,
        answers: list[PartitionProduceResponse],
        index: int,
    ) -> Done:
        self._unwritten += 1
        sent_bytes = len(batch)

        def done(outcome: Appended | KasparError, prepared: PreparedBatch | None) -> None:
            self._unwritten -= 1
            if isinstance(outcome, KasparError):
                answers.append(self._handler.refused(hosted.name, index, outcome, sent_bytes))
                if self._acks == NO_ACKS:
                    self._connection.refuse(ACKS_0_FAILED)
            else:
                assert prepared is not None
                count_appended(hosted.metrics, prepared, sent_bytes)
                if prepared.buffer is not batch:
                    count_rebuilt(hosted.metrics, prepared)
                self._handler.maybe_sync(partition)
                self.appended(partition, index, outcome, answers)
                self._start_timer()
            self._maybe_answer()

        return done

    def _met_a_bug(self, problem: Exception) -> None:
        self._connection.owner.request_failed(self._connection, problem)

    # -- waiting for the commit --------------------------------------------------------------------------------------

    def appended(
        self, partition: Partition, index: int, appended: Appended, answers: list[PartitionProduceResponse]
    ) -> None:
        """The batch is in the log: answer it now, or when the high watermark has passed it."""
        answers.append(success(index, appended))
        if partition.high_watermark <= appended.last_offset and waits_for_commit(self._acks, partition):
            self._wait_for_commit(partition, appended, answers)

    def _wait_for_commit(
        self, partition: Partition, appended: Appended, answers: list[PartitionProduceResponse]
    ) -> None:
        key = object()
        self._uncommitted[key] = (answers, len(answers) - 1)

        def committed() -> None:
            waiting = self._uncommitted.pop(key, None)
            if waiting is None:
                return  # it was answered when its time ran out
            if partition.high_watermark <= appended.last_offset:
                # Woken because the partition is no longer ours to commit: its folder failed, or it was deleted.
                self._fail(*waiting, partition.why_not_leader())
            self._maybe_answer()

        partition.when_committed(Offset(appended.last_offset + 1), committed)

    def _fail(self, answers: list[PartitionProduceResponse], position: int, refusal: Refused) -> None:
        answers[position] = PartitionProduceResponse(
            answers[position].partition_index, refusal.code, error_message=refusal.message
        )

    def _timed_out(self) -> None:
        message = f"the records were not committed within {self._timeout_ms} ms"
        self.give_up(Refused(ErrorCode.REQUEST_TIMED_OUT, message))

    def give_up(self, refusal: Refused) -> None:
        """Wait for no commit any longer."""
        for answers, position in self._uncommitted.values():
            self._fail(answers, position, refusal)
        self._uncommitted.clear()
        self._maybe_answer()

    def _lost(self) -> None:
        """Nobody waits for the answer any longer."""
        self._slot = None
        self._uncommitted.clear()
        self._leave()

    def _leave(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._handler.waiting.discard(self)

    def _maybe_answer(self) -> None:
        if self._unwritten or self._uncommitted or not self._started:
            return
        if self._acks == NO_ACKS:
            if any(answer.error_code for _, answers in self._results for answer in answers):
                self._handler.count_errors(self._results)
            self._sent()
        elif self._slot is not None:
            self._leave()
            slot, self._slot = self._slot, None
            slot.fill((self._handler.response(self._version, self._correlation_id, self._results),), sent=self._sent)

    def _sent(self) -> None:
        total = time.perf_counter() - self._received
        self._handler.metrics.delayed(self._version, self._local, total - self._local, self._request_bytes)
