"""Produce: append record batches, and answer when they are as safe as `acks` asks for.

The hot path: a batch that is quick to check is appended on the spot, straight from the receive buffer, and its answer
goes out with the same turn of the loop. What takes longer (see broker/appends.py), or must wait to be committed,
becomes a `PendingProduce`; so does the first batch of a transaction (see broker/unverified.py). One bad partition never
fails its neighbours.
"""

import time
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode, KasparError, Refused, StorageFailure, TooManyElements
from kaspar.base.ids import NO_OFFSET
from kaspar.broker.connection import Buffers, Connection, Slot
from kaspar.broker.frequent_answer import SAMPLE, OneWritten
from kaspar.broker.large_requests import Steps, run_through
from kaspar.broker.partitions import HostedTopic, unknown_partition
from kaspar.broker.pending_produce import (
    ACKS_0_FAILED,
    ALL_ACKS,
    LEADER_ACK,
    NO_ACKS,
    PendingProduce,
    TopicResults,
    encode,
    success,
    waits_for_commit,
)
from kaspar.broker.produce_counts import count_appended, count_refused
from kaspar.broker.transaction_terms import ATTRIBUTES_LOW_BYTE, TransactionTerms, is_transactional, terms_of
from kaspar.broker.unverified import NotVerified, UnverifiedBatches
from kaspar.broker.view import Purgatory
from kaspar.config.kinds import MAX_LONG
from kaspar.protocol import produce as codec
from kaspar.protocol.headers import RequestHeader
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
from kaspar.replication.state import Role
from kaspar.storage import Appended, RecordsRefused, is_surely_quick, prepare_inline, prepare_plain

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

FIRST_WITH_ZSTD: Final = 7
CODEC_MASK: Final = 0x07
INLINE_REQUEST_NS: Final = 2_000_000
"""Once the batches of a request have taken so long, those that are not surely quick are checked in a thread."""

BATCHES_AT_ONCE: Final = 250
"""What is appended in a turn of the loop, in about two milliseconds. A request of more takes several turns."""

MAX_BATCHES: Final = 1 << 16
"""Of a request: more than a broker has partitions."""

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


class ProduceHandler:
    def __init__(self, broker: "Broker") -> None:
        self.appends = broker.appends
        self.unverified = UnverifiedBatches(broker)
        self.metrics = broker.metrics.requests.of("Produce")
        self._broker = broker
        self._partitions = broker.partitions
        self._syncing = broker.syncing
        self._now_ms = broker.clock.now_ms
        self.waiting: set[PendingProduce] = set()

    def handle(
        self, connection: Connection, frame: memoryview, header: RequestHeader, received: float
    ) -> Buffers | Slot | None:
        _, version, _, _, position = header
        try:
            request = codec.read_request(version, frame, position, BATCHES_AT_ONCE)
        except TooManyElements:
            return self._broker.large_requests.take(
                connection, frame, "Produce", lambda kept: self._handle_large(connection, kept, header, received)
            )
        return run_through(self._handle(connection, frame, request, header, received))

    async def _handle_large(
        self, connection: Connection, frame: memoryview, header: RequestHeader, received: float
    ) -> Buffers | Slot | None:
        large = self._broker.large_requests
        async with large.under_way:
            request = await large.in_thread(
                codec.read_request, header.api_version, frame, header.body_position, MAX_BATCHES
            )
            return await large.in_turns(self._handle(connection, frame, request, header, received))

    def _handle(
        self,
        connection: Connection,
        frame: memoryview,
        request: ProduceRequest,
        header: RequestHeader,
        received: float,
    ) -> Steps[Buffers | Slot | None]:
        _, version, correlation_id, _, _ = header
        acks = request.acks
        if acks not in (ALL_ACKS, LEADER_ACK, NO_ACKS):
            refused = codec.refused(request, ErrorCode.INVALID_REQUIRED_ACKS, f"acks must be 0, 1 or -1, not {acks}")
            response = self.response(version, correlation_id, refused)
            self.metrics.inline(version, time.perf_counter() - received, len(frame))
            return (response,)
        try:
            terms = terms_of(request, frame, version)
        except Refused as refusal:
            return self._refuse_all(connection, request, header, refusal, received, len(frame))
        check = None if terms is None else self.unverified.check_of(terms)
        now_ms = self._now_ms()
        appends = self.appends
        results: TopicResults = []
        pending: PendingProduce | None = None
        failed = False
        deadline_ns = 0
        in_this_step = 0
        for topic, batches in request.topics:
            if not batches:
                continue
            answers: list[PartitionProduceResponse] = []
            results.append((topic, answers))
            hosted = self._partitions.find(topic)
            for index, start, end in batches:
                in_this_step += 1
                if in_this_step > BATCHES_AT_ONCE:
                    in_this_step = 1
                    yield
                    deadline_ns, now_ms = 0, self._now_ms()
                    hosted = self._partitions.find(topic)  # it may be deleted by now
                try:
                    if hosted is None or (partition := hosted.partitions.get(index)) is None:
                        raise unknown_partition(hosted, topic, index)
                    if start < 0 or hosted.is_internal or version < FIRST_WITH_ZSTD:
                        self._check_form(hosted, frame, start, end, version)
                    if terms is not None and self._must_be_verified(terms, partition, frame, start, end):
                        if pending is None:
                            pending = PendingProduce(
                                self, connection, request, version, correlation_id, results, received
                            )
                        pending.verify_later(hosted, partition, bytearray(frame[start:end]), terms, answers, index)
                        continue
                    config = partition.log.config
                    batch = None
                    checks_now = partition not in appends.queues and not partition.log.cold
                    if checks_now and not is_surely_quick(frame, start, end):
                        time_ns = time.thread_time_ns()
                        deadline_ns = deadline_ns or time_ns + INLINE_REQUEST_NS
                        checks_now = time_ns < deadline_ns
                    if checks_now:
                        plain_terms = partition.log.plain_terms
                        if plain_terms is not None:
                            batch = prepare_plain(frame, start, end, plain_terms, now_ms)
                        if batch is None:
                            batch = prepare_inline(frame, start, end, config, now_ms)
                    if batch is None:
                        if pending is None:
                            pending = PendingProduce(
                                self, connection, request, version, correlation_id, results, received
                            )
                        pending.check_later(hosted, partition, bytearray(frame[start:end]), answers, index, check)
                        continue
                    if check is not None:
                        check()
                    appended = partition.append_as_leader(batch, acks_all=acks == ALL_ACKS, now_ms=now_ms)
                except KasparError as problem:
                    failed = True
                    answers.append(self.refused(topic, index, problem, end - start))
                    continue
                count_appended(hosted.metrics, batch, end - start)
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
            if failed:
                self.count_errors(results)
            self.metrics.inline(version, time.perf_counter() - received, len(frame))
            return None
        response = self.response(version, correlation_id, results)
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
        if terms is None or partition in self.appends.queues or partition.log.cold:
            return None
        now_ms = self._now_ms()
        batch = prepare_plain(buffer, start, end, terms, now_ms)
        if batch is None:
            return None
        response: bytes | bytearray
        try:
            appended = partition.append_as_leader(batch, acks_all=acks == ALL_ACKS, now_ms=now_ms)
        except KasparError as problem:
            refused = self.refused(topic, index, problem, end - start)
            response = self.response(version, correlation_id, [(topic, [refused])])
        else:
            count_appended(hosted.metrics, batch, end - start)
            self.metrics.errors[0] += 1
            response = encode_one(version, correlation_id, topic, hosted, index, appended)
        connection.client_id = client_id
        self.metrics.inline(version, time.perf_counter() - received, request_bytes)
        return (response,)

    def _refuse_all(
        self,
        connection: Connection,
        request: ProduceRequest,
        header: RequestHeader,
        refusal: Refused,
        received: float,
        request_bytes: int,
    ) -> Buffers | None:
        results = codec.refused(request, refusal.code, refusal.message)
        response = self.response(header.api_version, header.correlation_id, results)
        self.metrics.inline(header.api_version, time.perf_counter() - received, request_bytes)
        if request.acks == NO_ACKS:
            connection.refuse(ACKS_0_FAILED)
            return None
        return (response,)

    def response(self, version: int, correlation_id: int, results: TopicResults) -> bytearray:
        self.count_errors(results)
        return encode(version, correlation_id, results)

    def count_errors(self, results: TopicResults) -> None:
        """As `error_counter` does for responses that have a message. A failure of acks=0 counts too."""
        errors = self.metrics.errors
        for _, answers in results:
            for answer in answers:
                errors[answer.error_code] += 1

    def _must_be_verified(
        self, terms: TransactionTerms, partition: Partition, frame: memoryview, start: int, end: int
    ) -> bool:
        """Whether a batch may be the first of its transaction here, or comes behind one that may be."""
        return (
            is_transactional(frame, start, end)
            and partition.state.role is Role.LEADER
            and self.unverified.must_wait(partition, terms)
        )

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

    def maybe_sync(self, partition: Partition) -> None:
        """`flush.messages` appends have come since the last sync: have the next one done."""
        if partition.log.unflushed_messages >= partition.log.config.flush_messages:
            self._syncing.ask(partition)

    def release_waiting(self) -> None:
        self.unverified.refuse_all()
        for pending in tuple(self.waiting):
            pending.give_up(Refused(ErrorCode.REQUEST_TIMED_OUT, "the broker stops before the records were committed"))

    def purgatory(self) -> Purgatory:
        return Purgatory("Produce", sum(pending.waits for pending in tuple(self.waiting)), len(self.waiting))

    def refused(self, topic: Topic, index: int, problem: KasparError, sent_bytes: int) -> PartitionProduceResponse:
        """What a partition is answered that did not take the `sent_bytes` it was sent."""
        hosted = self._partitions.find(topic)
        if hosted is not None:
            count_refused(hosted.metrics, problem, sent_bytes)
        if isinstance(problem, StorageFailure):
            self._broker.log_directory_failed(problem)
            return PartitionProduceResponse(index, ErrorCode.KAFKA_STORAGE_ERROR, error_message=str(problem))
        if not isinstance(problem, Refused):
            raise problem
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
    if refusal.code not in REFUSED_BY_THE_LOG or isinstance(refusal, NotOneBatch | NotVerified):
        return NO_OFFSET
    partition = hosted.partitions.get(index) if hosted is not None else None
    return NO_OFFSET if partition is None else partition.log.log_start_offset


def encode_one(
    version: int, correlation_id: int, topic: Topic, hosted: HostedTopic, index: int, appended: Appended
) -> bytes:
    """The same as `encode` for one batch that was appended."""
    form = hosted.one_written.get(version)
    if form is None:
        form = hosted.one_written[version] = OneWritten(version, bytes(encode(version, 0, [(topic, [SAMPLE])])))
    base_offset, _, log_append_time_ms, log_start_offset, _ = appended
    return form.fill(correlation_id, index, base_offset, log_append_time_ms, log_start_offset)
