"""Fetch: bytes of partitions, as they are on disk, now or when there is enough of them.

What a request asks for, by itself or together with its session; how it is answered is in broker/fetching.py.
"""

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode, Refused, TooManyElements
from kaspar.broker.connection import Buffers, Connection, Slot
from kaspar.broker.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, FetchedPartition, FetchSession
from kaspar.broker.fetching import PARTITIONS_AT_ONCE, READ_COMMITTED, Fetch, count_errors, encode
from kaspar.broker.large_requests import run_through
from kaspar.broker.metrics import FETCH_CONSUMER, FETCH_FOLLOWER
from kaspar.broker.partitions import partition_of
from kaspar.broker.view import Purgatory
from kaspar.protocol import fetch as codec
from kaspar.protocol.fetch import FetchRequest
from kaspar.protocol.headers import RequestHeader
from kaspar.replication.partition import Partition

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

FIRST_WITH_TOPIC_ID: Final = 13
READ_UNCOMMITTED: Final = 0
MAX_PARTITIONS: Final = 1 << 16  # that a request names: more than a broker has


class FetchHandler:
    def __init__(self, broker: "Broker") -> None:
        self.broker = broker
        self.partitions = broker.partitions
        self.sessions = broker.fetch_sessions
        self.consumer_metrics = broker.metrics.requests.of(FETCH_CONSUMER)
        self.follower_metrics = broker.metrics.requests.of(FETCH_FOLLOWER)
        self.waiting: set[Fetch] = set()

    def handle(
        self, connection: Connection, frame: memoryview, header: RequestHeader, received: float
    ) -> Buffers | Slot:
        _, version, _, _, position = header
        try:
            request = codec.read_request(version, frame, position, PARTITIONS_AT_ONCE)
        except TooManyElements:
            return self.broker.large_requests.take(
                connection, frame, "Fetch", lambda kept: self._handle_large(connection, kept, header, received)
            )
        fetch = self._fetch_of(connection, request, _named(request), header, received, len(frame))
        if not isinstance(fetch, Fetch):
            return fetch
        if fetch.is_large:  # by what its session remembers
            return self.broker.large_requests.take(connection, frame, "Fetch", lambda _: self._start_in_turns(fetch))
        return run_through(fetch.start())

    async def _handle_large(
        self, connection: Connection, frame: memoryview, header: RequestHeader, received: float
    ) -> Buffers | Slot:
        large = self.broker.large_requests
        async with large.under_way:
            request, named = await large.in_thread(_read, frame, header)
            fetch = self._fetch_of(connection, request, named, header, received, len(frame))
            return await large.in_turns(fetch.start()) if isinstance(fetch, Fetch) else fetch

    async def _start_in_turns(self, fetch: Fetch) -> Buffers | Slot:
        large = self.broker.large_requests
        async with large.under_way:
            return await large.in_turns(fetch.start())

    def _fetch_of(
        self,
        connection: Connection,
        request: FetchRequest,
        named: list[FetchedPartition],
        header: RequestHeader,
        received: float,
        request_bytes: int,
    ) -> Fetch | Buffers:
        """What is to be fetched, or the response that refuses it."""
        _, version, correlation_id, _, _ = header
        metrics = self.follower_metrics if request.replica_id >= 0 else self.consumer_metrics
        try:
            if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
                raise Refused(ErrorCode.INVALID_REQUEST, f"there is no isolation level {request.isolation_level}")
            session, partitions = self._partitions_of(request, named, version, received)
        except Refused as refusal:  # or its session is not known, or is at another epoch
            code = refusal.code
            topics = codec.refused(request, version, code) if code is ErrorCode.INVALID_REQUEST else ()
            count_errors(metrics, topics, code)
            metrics.inline(version, time.perf_counter() - received, request_bytes)
            return encode(version, correlation_id, topics, error_code=code)
        return Fetch(
            self,
            connection,
            request,
            version,
            correlation_id,
            session,
            tuple(partitions),
            metrics,
            received,
            request_bytes,
        )

    def _partitions_of(
        self, request: FetchRequest, named: list[FetchedPartition], version: int, now: float
    ) -> tuple[FetchSession | None, Iterable[FetchedPartition]]:
        """What the request asks for, by itself or together with what its session remembers."""
        uses_topic_ids = version >= FIRST_WITH_TOPIC_ID
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if request.session_id != NO_SESSION:
                self.sessions.close(request.session_id)
            session = None
            if request.session_epoch == INITIAL_EPOCH:
                session = self.sessions.create(
                    named, privileged=request.replica_id >= 0, uses_topic_ids=uses_topic_ids, now=now
                )
            if session is None:  # a partition that is named twice is answered once, as it was named last
                return None, {asked.key: asked for asked in named}.values()
            return session, session.partitions.values()
        session = self.sessions.resume(
            request.session_id, request.session_epoch, uses_topic_ids=uses_topic_ids, now=now
        )
        session.update(named, ((topic, index) for topic, indexes in request.forgotten_topics_data for index in indexes))
        if not session.partitions:
            self.sessions.close(session.session_id)
            return None, ()
        session.next_epoch()
        return session, session.partitions.values()

    def release_waiting(self) -> None:
        for fetch in tuple(self.waiting):
            fetch.release()

    def purgatory(self) -> Purgatory:
        return Purgatory("Fetch", sum(len(fetch.registered) for fetch in tuple(self.waiting)), len(self.waiting))

    def find(self, wanted: FetchedPartition) -> Partition:
        return partition_of(self.partitions.find(wanted.topic), wanted.topic, wanted.partition)


def _read(frame: memoryview, header: RequestHeader) -> tuple[FetchRequest, list[FetchedPartition]]:
    request = codec.read_request(header.api_version, frame, header.body_position, MAX_PARTITIONS)
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
        )
        for topic, wanted_partitions in request.topics
        for wanted in wanted_partitions
    ]
