"""Produce: appends record batches, and responds when they are as durable as `acks` requires.

Requests are processed batch by batch in broker/produce/request_append.py. A request with one plain batch for one
partition has a short form.
"""

from typing import Final

from kaspar.base.errors import ErrorCode, KasparError, Refused, TooManyElements
from kaspar.broker.produce import request_append
from kaspar.broker.produce.counts import count_appended
from kaspar.broker.produce.delayed_produce import ACKS_0_FAILED, ALL_ACKS, LEADER_ACK, NO_ACKS
from kaspar.broker.produce.results import count_errors, encode, produce_response, template_for
from kaspar.broker.produce.services import ProduceServices
from kaspar.broker.produce.transaction_terms import terms_of
from kaspar.network.api import Purgatory
from kaspar.network.exchange import Exchange, Outcome
from kaspar.network.large_requests import LargeRequests, Steps, run_through
from kaspar.network.outgoing import Buffers
from kaspar.network.request_metrics import RequestMetrics
from kaspar.protocol import produce as codec
from kaspar.protocol.produce import OneBatch, ProduceRequest

MAX_BATCHES: Final = 1 << 16
"""The limit for one request: more than a broker has partitions."""

_ACKS: Final = (ALL_ACKS, LEADER_ACK, NO_ACKS)


class ProduceHandler:
    def __init__(self, services: ProduceServices, metrics: RequestMetrics, large_requests: LargeRequests) -> None:
        self.metrics = metrics
        self._services = services
        self._large_requests = large_requests
        self._find_topic = services.partitions.find
        self._append_plain = services.appender.append_plain
        self._now_ms = services.clock.now_ms

    def handle(self, exchange: Exchange, frame: memoryview) -> Outcome:
        position = exchange.header.body_position
        try:
            request = codec.read_request(exchange.version, frame, position, request_append.BATCHES_AT_ONCE)
        except TooManyElements:
            return self._large_requests.take(exchange, frame, lambda kept: self._handle_large(exchange, kept))
        try:
            steps = self._append(exchange, frame, request)
        except Refused as refusal:
            return self._refuse(exchange, request, refusal)
        return run_through(steps)

    async def _handle_large(self, exchange: Exchange, frame: memoryview) -> Outcome:
        large = self._large_requests
        async with large.under_way:
            request = await large.in_thread(
                codec.read_request, exchange.version, frame, exchange.header.body_position, MAX_BATCHES
            )
            try:
                steps = self._append(exchange, frame, request)
            except Refused as refusal:
                return self._refuse(exchange, request, refusal)
            return await large.in_turns(steps)

    def _append(self, exchange: Exchange, frame: memoryview, request: ProduceRequest) -> Steps[Outcome]:
        """Append the batches. Raises Refused if the whole request is refused."""
        if request.acks not in _ACKS:
            raise Refused(ErrorCode.INVALID_REQUIRED_ACKS, f"acks must be 0, 1 or -1, not {request.acks}")
        access = self._services.access
        if access is None:
            terms = terms_of(request, frame, exchange.version)
            return request_append.RequestAppend(self._services, exchange, frame, request, terms).run()
        terms = terms_of(
            request, frame, exchange.version, lambda transactional_id: access.may_use(exchange, transactional_id)
        )
        denied = access.denied(exchange, {topic for topic, _ in request.topics})
        return request_append.RequestAppend(self._services, exchange, frame, request, terms, denied).run()

    @staticmethod
    def _refuse(exchange: Exchange, request: ProduceRequest, refusal: Refused) -> Buffers | None:
        response = produce_response(exchange, codec.refused(request, refusal.code, refusal.message))
        if request.acks == NO_ACKS:
            exchange.connection.refuse(ACKS_0_FAILED)
            return None
        return response

    def handle_one(self, buffer: bytearray, request: OneBatch) -> Buffers | None:
        """Short form of `handle` for one plain batch for one partition, whose response waits for nothing. None if the
        request turns out to be of another kind; then nothing has happened.
        """
        version, correlation_id, _, acks, topic, index, start, end = request
        hosted = self._find_topic(topic)
        if hosted is None or hosted.is_internal or (partition := hosted.partitions.get(index)) is None:
            return None
        if acks != LEADER_ACK and (acks != ALL_ACKS or not partition.state.commits_alone):
            return None
        try:
            written = self._append_plain(partition, buffer, start, end, acks == ALL_ACKS, self._now_ms())
        except KasparError as problem:
            results = [(topic, [self._services.refusals.refused(topic, index, problem, end - start)])]
            count_errors(self.metrics, results)
            return (encode(version, correlation_id, results),)
        if written is None:
            return None
        appended, batch = written
        count_appended(hosted.metrics, batch, end - start)
        self.metrics.errors[0] += 1
        template = hosted.produce_templates.get(version)
        if template is None:
            template = hosted.produce_templates[version] = template_for(version, topic)
        base_offset, _, log_append_time_ms, log_start_offset, _ = appended
        return (template.fill(correlation_id, index, base_offset, log_append_time_ms, log_start_offset),)

    # -- requests that wait ------------------------------------------------------------------------------------------

    def release_waiting(self) -> None:
        self._services.unverified.refuse_all()
        for delayed in tuple(self._services.waiting):
            delayed.give_up(
                Refused(ErrorCode.REQUEST_TIMED_OUT, "the broker is stopping before the records were committed")
            )

    def purgatory(self) -> Purgatory:
        waiting = tuple(self._services.waiting)
        return Purgatory("Produce", sum(delayed.waits for delayed in waiting), len(waiting))
