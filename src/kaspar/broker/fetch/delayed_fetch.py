"""One Fetch request, delayed if there is too little to send: it reads, may wait, reads again what changed, and
responds.

If there is less than `min_bytes`, the request waits at its partitions, up to `max_wait_ms`, and reads only those again
that changed. For a read_committed consumer a partition changes when its last stable offset does: records of an open
transaction are not readable for it. For a follower it changes when something is appended.
"""

import asyncio
import time
from collections.abc import Collection

from kaspar.base.errors import Refused
from kaspar.broker.fetch import response
from kaspar.broker.fetch.reading import Reading
from kaspar.broker.fetch.services import FetchServices
from kaspar.broker.fetch.sessions import INITIAL_EPOCH, NO_SESSION, FetchedPartition, FetchSession, FetchSessions
from kaspar.network.exchange import Exchange, Outcome
from kaspar.network.large_requests import Steps, run_through
from kaspar.network.outgoing import Buffers
from kaspar.protocol.fetch import FetchRequest, PartitionData
from kaspar.protocol.shapes import Topic
from kaspar.replication.partition import FetchWaiter, Partition
from kaspar.replication.state import Role


class DelayedFetch:
    __slots__ = (
        "_changed",
        "_exchange",
        "_may_wait",
        "_reading",
        "_registered",
        "_request",
        "_response_is_needed",
        "_services",
        "_session",
        "_sessions",
        "_stable_offsets",
        "_timer",
    )

    def __init__(
        self,
        services: FetchServices,
        sessions: FetchSessions,
        exchange: Exchange,
        request: FetchRequest,
        session: FetchSession | None,
        wanted: tuple[FetchedPartition, ...],
        denied: Collection[Topic] = (),
    ) -> None:
        self._services = services
        self._exchange = exchange
        self._request = request
        self._session = session
        self._sessions = sessions
        self._reading = Reading(services, exchange, request, wanted, denied)
        self._may_wait = request.max_wait_ms > 0
        self._changed: set[Partition] = set()
        self._stable_offsets: dict[Partition, int] = {}
        self._registered: dict[Partition, int] = {}
        self._response_is_needed = True
        self._timer: asyncio.TimerHandle | None = None

    # -- the first read ----------------------------------------------------------------------------------------------

    @property
    def is_large(self) -> bool:
        return len(self._reading.wanted) > response.PARTITIONS_AT_ONCE

    def start(self) -> Steps[Outcome]:
        reading, exchange = self._reading, self._exchange
        at_once = response.PARTITIONS_AT_ONCE
        for position in range(len(reading.wanted)):
            reading.read(position)
            if position % at_once == at_once - 1:
                yield
        if self.is_large and exchange.connection.is_closing:
            return ()
        if not reading.cold and self._is_enough():
            buffers = yield from self._respond()
            return buffers
        exchange.wait(large=True)
        exchange.when_lost(self._lost)
        if reading.cold:
            self._services.tasks.spawn(self._finish_cold(), name="fetch of cold data")
        else:
            yield from self._wait()
        return exchange

    def _is_enough(self) -> bool:
        return not self._may_wait or self._reading.is_enough

    async def _finish_cold(self) -> None:
        try:
            await self._reading.read_cold(lambda: self._response_is_needed)
            if self._response_is_needed:
                await self._carry_out(self._send() if self._is_enough() else self._wait())
        except Exception as problem:  # the edge of the task: the client must not wait for ever
            self._exchange.fail(problem)

    async def _carry_out(self, steps: Steps[None]) -> None:
        if self.is_large:
            await self._services.large_requests.in_turns(steps)
        else:
            run_through(steps)

    # -- waiting -----------------------------------------------------------------------------------------------------

    def _wait(self) -> Steps[None]:
        """Wait at every partition for the rest of `max_wait_ms`."""
        at_once = response.PARTITIONS_AT_ONCE
        for position, wanted in enumerate(self._reading.wanted):
            if position % at_once == at_once - 1:
                yield
                if not self._response_is_needed:
                    return
            try:
                partition = self._services.find(wanted)
            except Refused:
                continue
            result = self._reading.results[position]
            assert result is not None, "a partition that is waited for was read"
            self._stable_offsets[partition] = result.last_stable_offset
            self._waiters(partition).add(self)
            self._registered[partition] = position
        self._services.waiting.add(self)
        left_s = self._request.max_wait_ms / 1000 - (time.perf_counter() - self._exchange.received)
        self._timer = asyncio.get_running_loop().call_later(max(0.0, left_s), self._wake)
        for partition, position in self._registered.items():
            result = self._reading.results[position]
            if result is not None and self._has_changed(partition, position, result):
                self.read_again(partition)  # it changed while others were read

    def _waiters(self, partition: Partition) -> set[FetchWaiter]:
        return partition.replica_waiters if self._reading.for_follower else partition.fetch_waiters

    @property
    def registered_count(self) -> int:
        return len(self._registered)

    def _has_changed(self, partition: Partition, position: int, result: PartitionData) -> bool:
        if self._reading.for_follower:
            is_more = partition.log.log_end_offset > self._reading.wanted[position].fetch_offset and not result.records
            return partition.state.role is not Role.LEADER or (is_more and not self._is_held_back(partition))
        if partition.state.role is Role.NONE:
            return True
        if self._reading.committed_only:
            return partition.last_stable_offset > result.last_stable_offset
        return partition.state.high_watermark > result.high_watermark

    def _is_held_back(self, partition: Partition) -> bool:
        """Whether a throttle keeps records from a follower, which is not woken for them."""
        return self._services.throttles.holds_back(partition, self._request.replica_id)

    def readable(self, partition: Partition, size: int) -> None:
        if self._reading.for_follower and self._is_held_back(partition):
            return
        if self._reading.committed_only:
            # Committed records are readable for this consumer once they are stable, with all records before them.
            seen, stable = self._stable_offsets[partition], partition.last_stable_offset
            if stable <= seen:
                return
            self._stable_offsets[partition] = stable
            size = partition.log.size_between(seen, stable)
            if size == 0:  # more than the log knows without reading
                self.read_again(partition)
                return
        self._changed.add(partition)
        self._reading.missing_bytes -= size
        if self._reading.missing_bytes <= 0:
            self._wake_soon()

    def read_again(self, partition: Partition) -> None:
        self._changed.add(partition)
        self._wake_soon()

    def _wake_soon(self) -> None:
        if self._timer is not None:
            # In the next turn of the loop: whatever else arrives in this one is part of the same response.
            self._timer.cancel()
            self._timer = None
            asyncio.get_running_loop().call_soon(self._wake)

    def release(self) -> None:
        if self._timer is not None:
            self._wake()

    def _lost(self) -> None:
        """The connection is closed."""
        self._response_is_needed = False
        self._leave()

    def _leave(self) -> None:
        """Stop waiting."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for partition in self._registered:
            self._waiters(partition).discard(self)
        self._services.waiting.discard(self)

    def _wake(self) -> None:
        """Enough has arrived, or the time is over: read again what changed, and respond."""
        self._leave()
        if not self._response_is_needed or self._exchange.connection.is_closing:
            return
        self._may_wait = False
        try:
            if self.is_large:
                self._services.tasks.spawn(self._finish_large(), name="fetch of many partitions")
                return
            run_through(self._read_changed())
            if self._reading.cold:
                self._services.tasks.spawn(self._finish_cold(), name="fetch of cold data")
            else:
                run_through(self._send())
        except Exception as problem:  # the edge of the timer's call: the client must not wait for ever
            self._exchange.fail(problem)

    async def _finish_large(self) -> None:
        try:
            await self._services.large_requests.in_turns(self._read_changed())
        except Exception as problem:  # the edge of the task: the client must not wait for ever
            self._exchange.fail(problem)
        else:
            await self._finish_cold()

    def _read_changed(self) -> Steps[None]:
        changed = [position for partition, position in self._registered.items() if partition in self._changed]
        self._reading.discard(changed)
        for count, position in enumerate(changed, 1):
            self._reading.read(position, again=True)
            if count % response.PARTITIONS_AT_ONCE == 0:
                yield

    # -- responding --------------------------------------------------------------------------------------------------

    def _send(self) -> Steps[None]:
        buffers = yield from self._respond()
        if self._response_is_needed:
            self._response_is_needed = False
            self._exchange.fill(buffers)

    def _respond(self) -> Steps[Buffers]:
        reading, exchange = self._reading, self._exchange
        if not reading.for_follower:
            throttle_time_ms = self._services.quota.fetched(
                exchange.principal, exchange.header.client_id, reading.record_bytes
            )
            if throttle_time_ms:
                exchange.throttle(throttle_time_ms)
                return self._respond_empty()
        buffers = yield from response.response_from_reading(
            reading, exchange, self._request, self._session, self._services.partitions
        )
        return buffers

    def _respond_empty(self) -> Buffers:
        """Respond without records, because the client is throttled and will fetch the same again. A session that would
        begin with this response is closed: the client learns a session's partitions only from a full response.
        """
        session = self._session
        if session is not None and self._request.session_epoch == INITIAL_EPOCH:
            self._sessions.close(session.session_id)
            session = None
        return response.fetch_response(
            self._exchange, (), session_id=NO_SESSION if session is None else session.session_id
        )
