"""Appends the batches of one Produce request, in the order of the request.

A batch that is quick to check is appended at once, straight from the receive buffer. Batches that take longer, that
have to wait for their transaction, or that have to be committed first become part of a `DelayedProduce`. A refused
batch never affects other partitions.
"""

import time
from collections.abc import Collection
from typing import Final

from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.broker.partitions import HostedTopic, unknown_partition
from kaspar.broker.produce.counts import count_appended
from kaspar.broker.produce.delayed_produce import (
    ACKS_0_FAILED,
    ALL_ACKS,
    NO_ACKS,
    DelayedProduce,
    Target,
    waits_for_commit,
)
from kaspar.broker.produce.results import PartitionResults, TopicResults, count_errors, produce_response, success
from kaspar.broker.produce.services import ProduceServices
from kaspar.broker.produce.transaction_terms import TransactionTerms, is_transactional
from kaspar.network.exchange import Exchange, Outcome
from kaspar.network.large_requests import Steps
from kaspar.protocol.produce import PartitionProduceResponse, ProduceRequest
from kaspar.protocol.shapes import Topic
from kaspar.records import Codec, NotOneBatch
from kaspar.records.layout import CODEC_MASK, LOW_ATTRIBUTES_AT
from kaspar.replication.state import Role
from kaspar.storage import is_surely_quick

FIRST_WITH_ZSTD: Final = 7

INLINE_REQUEST_NS: Final = 2_000_000
"""After the batches of a request have taken this long, further ones are checked in a thread unless they are surely
quick.
"""

BATCHES_AT_ONCE: Final = 250
"""How many batches are appended in a turn of the event loop, in about two milliseconds. More take several turns."""


class RequestAppend:
    __slots__ = (
        "_acks",
        "_deadline_ns",
        "_delayed",
        "_denied",
        "_exchange",
        "_failed",
        "_frame",
        "_request",
        "_results",
        "_services",
        "_terms",
    )

    def __init__(
        self,
        services: ProduceServices,
        exchange: Exchange,
        frame: memoryview,
        request: ProduceRequest,
        terms: TransactionTerms | None,
        denied: Collection[Topic] = (),
    ) -> None:
        """`denied` are the topics that the client may not write to."""
        self._services = services
        self._exchange = exchange
        self._frame = frame
        self._request = request
        self._acks = request.acks
        self._terms = terms
        self._denied = denied
        self._deadline_ns = 0
        self._results: TopicResults = []
        self._delayed: DelayedProduce | None = None
        self._failed = False

    def run(self) -> Steps[Outcome]:
        # Most batches are plain and appended at once. Unusual batches are handled in separate methods.
        partitions, appender, clock = self._services.partitions, self._services.appender, self._services.clock
        frame, acks, in_transaction = self._frame, self._acks, self._terms is not None
        is_unusual = in_transaction or self._exchange.version < FIRST_WITH_ZSTD
        now_ms = clock.now_ms()
        in_this_turn = 0
        for topic, batches in self._request.topics:
            if not batches:
                continue
            results: PartitionResults = []
            self._results.append((topic, results))
            if self._denied and topic in self._denied:
                self._failed = True
                code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                results += [PartitionProduceResponse(index, code) for index, _, _ in batches]
                continue
            hosted = partitions.find(topic)
            for index, start, end in batches:
                in_this_turn += 1
                if in_this_turn > BATCHES_AT_ONCE:
                    in_this_turn = 1
                    yield
                    self._deadline_ns, now_ms = 0, clock.now_ms()
                    hosted = partitions.find(topic)  # it may be deleted by now
                try:
                    if hosted is None or (partition := hosted.partitions.get(index)) is None:
                        raise unknown_partition(hosted, topic, index)
                    if is_unusual or start < 0 or hosted.is_internal:
                        self._check_form(hosted, start, end)
                        if self._verify_later(Target(hosted, partition, results), start, end):
                            continue
                    written = None
                    if is_surely_quick(frame, start, end) or self._has_time():
                        if not in_transaction:
                            written = appender.append_plain(partition, frame, start, end, acks == ALL_ACKS, now_ms)
                        if written is None:
                            written = appender.append_now(partition, frame, start, end, acks == ALL_ACKS, now_ms)
                    if written is None:
                        self._append_later(Target(hosted, partition, results), start, end)
                        continue
                except KasparError as problem:
                    self._failed = True
                    results.append(self._services.refusals.refused(topic, index, problem, end - start))
                    continue
                appended, batch = written
                count_appended(hosted.metrics, batch, end - start)
                if partition.state.high_watermark <= appended.last_offset and waits_for_commit(acks, partition):
                    self._later().wait_for_commit(partition, appended, results)
                else:
                    results.append(success(index, appended))
        return self._finish()

    def _check_form(self, hosted: HostedTopic, start: int, end: int) -> None:
        """Check what depends on the request rather than on the batch alone. Raises KasparError."""
        if hosted.is_internal:
            raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, "only the broker writes to internal topics")
        if start < 0:
            raise NotOneBatch("a Produce request must have a record batch for each partition")
        if (
            self._exchange.version < FIRST_WITH_ZSTD
            and end - start > LOW_ATTRIBUTES_AT
            and self._frame[start + LOW_ATTRIBUTES_AT] & CODEC_MASK == Codec.ZSTD
        ):
            raise Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd requires Produce version 7 or newer")

    def _verify_later(self, target: Target, start: int, end: int) -> bool:
        """Have a batch verified if it may be the first of its transaction here, or if it comes after one that may be.
        Returns whether that is so.
        """
        frame, terms, partition = self._frame, self._terms, target.partition
        if (
            terms is None
            or not is_transactional(frame, start, end)
            or partition.state.role is not Role.LEADER
            or not self._services.unverified.must_wait(partition, terms)
        ):
            return False
        self._later().verify_later(target, bytearray(frame[start:end]), terms)
        return True

    def _append_later(self, target: Target, start: int, end: int) -> None:
        self._later().append_later(target, bytearray(self._frame[start:end]))

    def _has_time(self) -> bool:
        """Whether there is time left for a batch that may take long to check."""
        time_ns = time.thread_time_ns()
        self._deadline_ns = self._deadline_ns or time_ns + INLINE_REQUEST_NS
        return time_ns < self._deadline_ns

    def _later(self) -> DelayedProduce:
        if self._delayed is None:
            self._delayed = DelayedProduce(self._services, self._exchange, self._request, self._results)
        return self._delayed

    def _finish(self) -> Outcome:
        if self._failed and self._acks == NO_ACKS:
            self._exchange.connection.refuse(ACKS_0_FAILED)
        if self._delayed is not None:
            return self._delayed.start()
        if self._acks == NO_ACKS:
            if self._failed:
                count_errors(self._exchange.metrics, self._results)
            return None
        return produce_response(self._exchange, self._results)
