"""Produce: append record batches, and answer when they are as safe as `acks` asks for.

The hot path: a batch that is quick to check is appended on the spot, straight from the receive buffer, and its answer
goes out with the same turn of the loop. What takes longer (see broker/appends.py), or must wait to be committed,
becomes a `PendingProduce`. One bad partition never fails its neighbours.
"""

import asyncio
import time
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode, KasparError, Refused, StorageFailure
from kaspar.base.ids import NO_OFFSET, Offset
from kaspar.broker.connection import Buffers, Connection, Slot
from kaspar.broker.frequent_answer import SAMPLE, OneWritten
from kaspar.broker.partitions import HostedTopic, unknown_partition
from kaspar.broker.view import Purgatory
from kaspar.config.kinds import MAX_LONG
from kaspar.protocol import produce as codec
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.headers import RequestHeader, set_frame_size, start_response
from kaspar.protocol.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    OneBatch,
    PartitionProduceResponse,
    ProduceRequest,
)
from kaspar.protocol.shapes import Topic
from kaspar.records import Codec, NotOneBatch
from kaspar.replication.partition import Partition
from kaspar.storage import Appended, PreparedBatch, RecordsRefused, prepare, prepare_plain, runs_inline

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

FIRST_WITH_ZSTD: Final = 7
NO_ACKS: Final = 0
LEADER_ACK: Final = 1
ALL_ACKS: Final = -1
ACKS_0_FAILED: Final = (
    "a produce request with acks=0 failed, and a closed connection is all that can tell its client so"
)

_new = tuple.__new__  # a named tuple's own constructor takes three times as long, and this is the hot path
ATTRIBUTES_LOW_BYTE: Final = 22
CODEC_MASK: Final = 0x07
TRANSACTIONAL: Final = 0x10

REFUSED_BY_THE_LOG: Final = frozenset(
    {
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
    }
)
"""With these a refusal tells where the log starts, as Kafka's does."""

TopicResults = list[tuple[Topic, list[PartitionProduceResponse]]]


class NoTransaction(Refused):
    """A transactional batch, and no transaction that it could belong to: this broker does not coordinate any yet."""

    def __init__(self, transactional_id: str | None) -> None:
        if transactional_id is None:
            super().__init__(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "the batch is transactional, the request is not"
            )
        else:  # Kafka's code while it cannot ask a transaction's coordinator
            super().__init__(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"no coordinator knows a transaction of {transactional_id} with this partition",
            )


class ProduceHandler:
    def __init__(self, broker: "Broker") -> None:
        self.appends = broker.appends
        self.metrics = broker.metrics.requests.of("Produce")
        self._broker = broker
        self._partitions = broker.partitions
        self._syncing = broker.syncing
        self._now_ms = broker.clock.now_ms
        self.waiting: set[PendingProduce] = set()

    def handle(
        self, connection: Connection, frame: memoryview, header: RequestHeader, received: float
    ) -> Buffers | Slot | None:
        _, version, correlation_id, _, position = header
        request = codec.read_request(version, frame, position)
        acks = request.acks
        if acks not in (ALL_ACKS, LEADER_ACK, NO_ACKS):
            refused = codec.refused(request, ErrorCode.INVALID_REQUIRED_ACKS, f"acks must be 0, 1 or -1, not {acks}")
            return (encode(version, correlation_id, refused),)
        now_ms = self._now_ms()
        appends = self.appends
        results: TopicResults = []
        pending: PendingProduce | None = None
        failed = False
        for topic, batches in request.topics:
            if not batches:
                continue
            answers: list[PartitionProduceResponse] = []
            results.append((topic, answers))
            hosted = self._partitions.find(topic)
            for index, start, end in batches:
                try:
                    if hosted is None or (partition := hosted.partitions.get(index)) is None:
                        raise unknown_partition(hosted, topic, index)
                    if start < 0 or hosted.is_internal or version < FIRST_WITH_ZSTD:
                        self._check_form(hosted, frame, start, end, version)
                    config = partition.log.config
                    if partition in appends.queues or not runs_inline(frame, start, end, config):
                        if end - start > ATTRIBUTES_LOW_BYTE and frame[start + ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL:
                            raise NoTransaction(request.transactional_id)
                        if pending is None:
                            pending = PendingProduce(
                                self, connection, request, version, correlation_id, results, received
                            )
                        pending.check_later(hosted, partition, bytearray(frame[start:end]), answers, index)
                        continue
                    batch = prepare(frame, start, end, config, now_ms)
                    if batch.is_transactional:
                        raise NoTransaction(request.transactional_id)
                    appended = partition.append_as_leader(batch, acks_all=acks == ALL_ACKS, now_ms=now_ms)
                except KasparError as problem:
                    failed = True
                    answers.append(self.refused(topic, index, problem))
                    continue
                self.count(hosted, batch, appended)
                if config.flush_messages < MAX_LONG:
                    self.maybe_sync(partition)
                if partition.state.high_watermark <= appended.last_offset and waits_for_commit(acks, partition):
                    if pending is None:
                        pending = PendingProduce(self, connection, request, version, correlation_id, results, received)
                    pending.appended(partition, index, appended, answers)
                else:
                    answers.append(success(index, appended))
        if failed and acks == NO_ACKS:
            connection.refuse(ACKS_0_FAILED)
        if pending is not None:
            return pending.start(len(frame))
        if acks == NO_ACKS:
            self.metrics.inline(version, time.perf_counter() - received, len(frame))
            return None
        response = encode(version, correlation_id, results)
        self.metrics.inline(version, time.perf_counter() - received, len(frame))
        return (response,)

    def handle_one(
        self, connection: Connection, buffer: bytearray, request: OneBatch, request_bytes: int, received: float
    ) -> Buffers | None:
        """The same as `handle` for the request that comes most often: one plain batch for one partition, whose answer
        waits for nothing. None if it is not such a one after all, and then nothing has been done.
        """
        version, correlation_id, client_id, acks, topic, index, start, end = request
        hosted = self._partitions.find(topic)
        if hosted is None or hosted.is_internal or (partition := hosted.partitions.get(index)) is None:
            return None
        if acks != LEADER_ACK and (acks != ALL_ACKS or not partition.state.commits_alone):
            return None
        terms = partition.log.plain_terms
        if terms is None or partition in self.appends.queues:
            return None
        now_ms = self._now_ms()
        batch = prepare_plain(buffer, start, end, terms, now_ms)
        if batch is None:
            return None
        response: bytes | bytearray
        try:
            appended = partition.append_as_leader(batch, acks_all=acks == ALL_ACKS, now_ms=now_ms)
        except KasparError as problem:
            response = encode(version, correlation_id, [(topic, [self.refused(topic, index, problem)])])
        else:
            self.count(hosted, batch, appended)
            response = encode_one(version, correlation_id, topic, hosted, index, appended)
        connection.client_id = client_id
        self.metrics.inline(version, time.perf_counter() - received, request_bytes)
        return (response,)

    @staticmethod
    def _check_form(hosted: HostedTopic, frame: memoryview, start: int, end: int, version: int) -> None:
        """What depends on the request rather than on the batch alone."""
        if hosted.is_internal:
            raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, "an internal topic is written by the broker alone")
        if start < 0:
            raise NotOneBatch("a produce request must have a record batch for each partition")
        if (
            version < FIRST_WITH_ZSTD
            and end - start > ATTRIBUTES_LOW_BYTE
            and frame[start + ATTRIBUTES_LOW_BYTE] & CODEC_MASK == Codec.ZSTD
        ):
            raise Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd came with version 7 of Produce")

    @staticmethod
    def count(hosted: HostedTopic, batch: PreparedBatch, appended: Appended) -> None:
        metrics = hosted.metrics
        metrics.total_produce_requests += 1
        if not appended.duplicate:
            metrics.bytes_in += batch.end - batch.start
            metrics.messages_in += batch.last_offset_delta + 1

    def maybe_sync(self, partition: Partition) -> None:
        """`flush.messages` appends have come since the last sync: have the next one done."""
        if partition.log.unflushed_messages >= partition.log.config.flush_messages:
            self._syncing.ask(partition)

    def release_waiting(self) -> None:
        for pending in tuple(self.waiting):
            pending.give_up(Refused(ErrorCode.REQUEST_TIMED_OUT, "the broker stops before the records were committed"))

    def purgatory(self) -> Purgatory:
        return Purgatory("Produce", sum(pending.waits for pending in tuple(self.waiting)), len(self.waiting))

    def refused(self, topic: Topic, index: int, problem: KasparError) -> PartitionProduceResponse:
        hosted = self._partitions.find(topic)
        metrics = hosted.metrics if hosted is not None else self._broker.metrics.topics.no_topic
        metrics.total_produce_requests += 1
        metrics.failed_produce_requests += 1
        if isinstance(problem, StorageFailure):
            self._broker.log_directory_failed(problem)
            return PartitionProduceResponse(index, ErrorCode.KAFKA_STORAGE_ERROR, error_message=str(problem))
        if not isinstance(problem, Refused):
            raise problem
        self.metrics.error(problem.code)
        record_errors: tuple[BatchIndexAndErrorMessage, ...] = ()
        if isinstance(problem, RecordsRefused):
            record_errors = tuple(BatchIndexAndErrorMessage(*error) for error in problem.record_errors)
        leader = None
        if problem.code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            leader = LeaderIdAndEpoch(*self._broker.current_leader(topic, index))
        return PartitionProduceResponse(
            index,
            problem.code,
            log_start_offset=log_start_with(problem, hosted, index),
            record_errors=record_errors,
            error_message=problem.message,
            current_leader=leader,
        )


def log_start_with(refusal: Refused, hosted: HostedTopic | None, index: int) -> int:
    """Where the log starts, if it is the log that refused."""
    if refusal.code not in REFUSED_BY_THE_LOG or isinstance(refusal, NotOneBatch | NoTransaction):
        return NO_OFFSET
    partition = hosted.partitions.get(index) if hosted is not None else None
    return NO_OFFSET if partition is None else partition.log.log_start_offset


def waits_for_commit(acks: int, partition: Partition) -> bool:
    """With acks=1 a record need not be committed, but where a sync comes before the commit it must be on the disk."""
    return acks == ALL_ACKS or (acks == LEADER_ACK and partition.syncs_before_commit)


def success(index: int, appended: Appended) -> PartitionProduceResponse:
    base_offset, _, log_append_time_ms, log_start_offset, _ = appended
    return _new(PartitionProduceResponse, (index, 0, base_offset, log_append_time_ms, log_start_offset, (), None, None))


def encode_one(
    version: int, correlation_id: int, topic: Topic, hosted: HostedTopic, index: int, appended: Appended
) -> bytes:
    """The same as `encode` for one batch that was appended."""
    form = hosted.one_written.get(version)
    if form is None:
        form = hosted.one_written[version] = OneWritten(version, bytes(encode(version, 0, [(topic, [SAMPLE])])))
    base_offset, _, log_append_time_ms, log_start_offset, _ = appended
    return form.fill(correlation_id, index, base_offset, log_append_time_ms, log_start_offset)


def encode(version: int, correlation_id: int, results: TopicResults) -> bytearray:
    out = start_response(ApiKey.PRODUCE, version, correlation_id)
    codec.write_response(out, version, results)
    set_frame_size(out)
    return out


class PendingProduce:
    """A produce request that cannot be answered yet: batches are still being checked, or are not committed."""

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
        "_timeout_ms",
        "_timer",
        "_unchecked",
        "_uncommitted",
        "_version",
    )

    def __init__(
        self,
        handler: ProduceHandler,
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
        self._unchecked = 0
        self._uncommitted: dict[object, tuple[list[PartitionProduceResponse], int]] = {}
        self._slot: Slot | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self, request_bytes: int) -> Buffers | Slot | None:
        """Take a place in the order of responses (with acks=0 there is none to take), unless all is known by now: what
        waited for a commit is failed at once where a later batch of the same request takes the log directory down.
        """
        self._request_bytes = request_bytes
        self._local = time.perf_counter() - self._received
        if self._acks == NO_ACKS:
            return None
        if not self.waits:
            self._handler.metrics.inline(self._version, self._local, request_bytes)
            return (encode(self._version, self._correlation_id, self._results),)
        slot = self._slot = self._connection.take_slot()
        slot.when_lost(self._lost)
        self._handler.waiting.add(self)
        self._start_timer()
        return slot

    @property
    def waits(self) -> int:
        return self._unchecked + len(self._uncommitted)

    def _start_timer(self) -> None:
        if self._uncommitted and self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(self._timeout_ms, 0) / 1000, self._timed_out)

    # -- checks in a thread ------------------------------------------------------------------------------------------

    def check_later(
        self,
        hosted: HostedTopic,
        partition: Partition,
        batch: bytearray,
        answers: list[PartitionProduceResponse],
        index: int,
    ) -> None:
        self._unchecked += 1

        def done(outcome: Appended | KasparError, prepared: PreparedBatch | None) -> None:
            self._unchecked -= 1
            if isinstance(outcome, KasparError):
                answers.append(self._handler.refused(hosted.name, index, outcome))
                if self._acks == NO_ACKS:
                    self._connection.refuse(ACKS_0_FAILED)
            else:
                assert prepared is not None
                self._handler.count(hosted, prepared, outcome)
                self._handler.maybe_sync(partition)
                self.appended(partition, index, outcome, answers)
                self._start_timer()
            self._maybe_answer()

        self._handler.appends.add(partition, batch, acks_all=self._acks == ALL_ACKS, done=done, failed=self._met_a_bug)

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
        if self._unchecked or self._uncommitted or self._slot is None:
            return
        self._leave()
        slot, self._slot = self._slot, None
        slot.fill((encode(self._version, self._correlation_id, self._results),), sent=self._sent)

    def _sent(self) -> None:
        total = time.perf_counter() - self._received
        self._handler.metrics.delayed(
            self._version, 0.0, self._local, total - self._local, 0.0, 0.0, 0.0, self._request_bytes
        )
