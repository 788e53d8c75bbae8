"""Fetch: records of partitions, as they are on disk, now or when there are enough of them.

This module finds out what a request fetches, by itself or together with its session. The fetch itself is in
broker/fetch/delayed_fetch.py.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from kaspar.base.errors import ErrorCode, Refused, TooManyElements
from kaspar.broker.fetch import response
from kaspar.broker.fetch.delayed_fetch import DelayedFetch
from kaspar.broker.fetch.services import FetchServices
from kaspar.broker.fetch.sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchedPartition,
    FetchSession,
    FetchSessions,
)
from kaspar.network.api import Purgatory
from kaspar.network.exchange import Exchange, Outcome
from kaspar.network.large_requests import run_through
from kaspar.network.outgoing import Buffers
from kaspar.network.request_metrics import FETCH_CONSUMER, FETCH_FOLLOWER, RequestMetricsByApi
from kaspar.protocol import fetch as codec
from kaspar.protocol.fetch import FetchRequest
from kaspar.protocol.isolation_level import ISOLATION_LEVELS

FIRST_WITH_TOPIC_ID: Final = 13
MAX_PARTITIONS: Final = 1 << 16  # in one request: more than a broker has


class _Wanted(NamedTuple):
    """What a request fetches, by itself or together with the partitions that its session remembers."""

    session: FetchSession | None
    partitions: Iterable[FetchedPartition]


class FetchHandler:
    def __init__(self, services: FetchServices, sessions: FetchSessions, metrics: RequestMetricsByApi) -> None:
        self.metrics = metrics.of(FETCH_CONSUMER)
        self._follower_metrics = metrics.of(FETCH_FOLLOWER)
        self._services = services
        self._large_requests = services.large_requests
        self._sessions = sessions

    def handle(self, exchange: Exchange, frame: memoryview) -> Outcome:
        position = exchange.header.body_position
        try:
            request = codec.read_request(exchange.version, frame, position, response.PARTITIONS_AT_ONCE)
        except TooManyElements:
            return self._large_requests.take(exchange, frame, lambda kept: self._handle_large(exchange, kept))
        fetch = self._fetch_of(exchange, request, _named(request))
        if not isinstance(fetch, DelayedFetch):
            return fetch
        if fetch.is_large:  # because its session has many partitions
            return self._large_requests.take(exchange, frame, lambda _: self._start_in_turns(fetch))
        return run_through(fetch.start())

    async def _handle_large(self, exchange: Exchange, frame: memoryview) -> Outcome:
        large = self._large_requests
        async with large.under_way:
            request, named = await large.in_thread(_read, exchange, frame)
            fetch = self._fetch_of(exchange, request, named)
            return await large.in_turns(fetch.start()) if isinstance(fetch, DelayedFetch) else fetch

    async def _start_in_turns(self, fetch: DelayedFetch) -> Outcome:
        async with self._large_requests.under_way:
            return await self._large_requests.in_turns(fetch.start())

    def _fetch_of(
        self, exchange: Exchange, request: FetchRequest, named: list[FetchedPartition]
    ) -> DelayedFetch | Buffers:
        """The fetch to carry out, or the response that refuses it."""
        version = exchange.version
        if request.replica_id >= 0:
            exchange.metrics = self._follower_metrics
        access = self._services.access
        is_follower = request.replica_id >= 0 and (access is None or access.may_follow(exchange))
        exchange.connection.is_follower = is_follower
        try:
            if request.isolation_level not in ISOLATION_LEVELS:
                raise Refused(ErrorCode.INVALID_REQUEST, f"unknown isolation level {request.isolation_level}")
            session, partitions = self._wanted(request, named, version, exchange.received)
        except Refused as refusal:  # the session may also be unknown, or at another epoch
            code = refusal.code
            topics = codec.refused(request, version, code) if code is ErrorCode.INVALID_REQUEST else ()
            return response.fetch_response(exchange, topics, error_code=code)
        wanted = tuple(partitions)
        if access is None or is_follower:
            return DelayedFetch(self._services, self._sessions, exchange, request, session, wanted)
        named_topics = {each.topic for each in wanted}
        denied = named_topics if request.replica_id >= 0 else access.denied(exchange, named_topics)
        return DelayedFetch(self._services, self._sessions, exchange, request, session, wanted, denied)

    def _wanted(self, request: FetchRequest, named: list[FetchedPartition], version: int, now: float) -> _Wanted:
        sessions = self._sessions
        uses_topic_ids = version >= FIRST_WITH_TOPIC_ID
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if request.session_id != NO_SESSION:
                sessions.close(request.session_id)
            session = None
            if request.session_epoch == INITIAL_EPOCH:
                session = sessions.create(
                    named, privileged=request.replica_id >= 0, uses_topic_ids=uses_topic_ids, now=now
                )
            if session is None:  # a partition that is named twice has one result, for the last time
                return _Wanted(None, {asked.key: asked for asked in named}.values())
            return _Wanted(session, session.partitions.values())
        session = sessions.resume(request.session_id, request.session_epoch, uses_topic_ids=uses_topic_ids, now=now)
        session.update(named, ((topic, index) for topic, indexes in request.forgotten_topics_data for index in indexes))
        if not session.partitions:
            sessions.close(session.session_id)
            return _Wanted(None, ())
        session.next_epoch()
        return _Wanted(session, session.partitions.values())

    # -- requests that wait ------------------------------------------------------------------------------------------

    def release_waiting(self) -> None:
        for fetch in tuple(self._services.waiting):
            fetch.release()

    def purgatory(self) -> Purgatory:
        waiting = tuple(self._services.waiting)
        return Purgatory("Fetch", sum(fetch.registered_count for fetch in waiting), len(waiting))


def _read(exchange: Exchange, frame: memoryview) -> tuple[FetchRequest, list[FetchedPartition]]:
    request = codec.read_request(exchange.version, frame, exchange.header.body_position, MAX_PARTITIONS)
    return request, _named(request)


def _named(request: FetchRequest) -> list[FetchedPartition]:
    return [
        FetchedPartition(
            topic,
            wanted.partition,
            wanted.fetch_offset,
            wanted.partition_max_bytes,
            wanted.current_leader_epoch,
            wanted.last_fetched_epoch,
            wanted.log_start_offset,
        )
        for topic, wanted_partitions in request.topics
        for wanted in wanted_partitions
    ]
