"""The task that reads `_schemas` into the state, from its first record, for as long as the registry runs.

It has its own connection, because the broker holds each fetch until there is something to read. Records are applied in
whole batches, so that no request sees only a part of a write; other tasks run between batches. Only a write of several
batches can be seen in part: the deletion of thousands of versions.

A state is the replay of one log. When the log is replaced by another (position.py), all waiters fail, and a new state
is started.
"""

import asyncio
import heapq
import time
from contextlib import suppress
from itertools import count
from typing import Final, Protocol

from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.base.ids import ZERO_UUID, TopicPartition
from kaspar.base.log import get_log
from kaspar.client.async_client import AsyncClient
from kaspar.client.asynchronous import AsyncConnection
from kaspar.client.cluster_core import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, refuse
from kaspar.protocol.messages import list_offsets
from kaspar.protocol.messages.fetch import FetchResponse, PartitionData
from kaspar.records.reader import iter_records
from kaspar.registry.interfaces import LogRecord, Replayed
from kaspar.registry.log.position import FetchRefused, Finding, LogPosition, LogReplaced
from kaspar.registry.log.topic import find_topic

log = get_log(__name__)

_READ_COMMITTED: Final = 1
_LONG_POLL_MS: Final = 5_000
_RESPONSE_TIMEOUT_S: Final = 10.0
_MAX_BYTES: Final = 4 * 1024 * 1024
_BACKOFF_S: Final = 0.1
_TURN_S: Final = 0.005
_MAX_SUPERSEDING: Final = 100
_DELETED_AFTER_S: Final = 1.0
"""A topic counts as deleted once no broker has known it for this long."""


class Audience(Protocol):
    """Receives the log: kaspar.registry.serving.ServedLog."""

    def begin(self, replaced: LogReplaced | None) -> Replayed:
        """Create a new state, before the first record of a log. `replaced` says why the previous log is void."""

    def caught_up(self) -> None:
        """Called when everything has been replayed that the log contained when the replay began."""


class LogFollower:
    def __init__(self, client: AsyncClient, topic: str, audience: Audience) -> None:
        """`client` is used to look up leaders and offsets."""
        self._client = client
        self._partition = TopicPartition(topic, 0)
        self._audience = audience
        self._state: Replayed | None = None
        self._position: LogPosition | None = None
        self._catch_up_to: int | None = None
        self._waiting: list[tuple[int, bool, int, asyncio.Future[bool]]] = []
        """A heap of waiters: the position at which each is done, whether it waits for that position, a number, its
        future."""
        self._numbers = count()
        self._task: asyncio.Task[None] | None = None
        self._connection: AsyncConnection | None = None
        self._reported: str | None = None

    # --- Waiting ------------------------------------------------------------------------------------------------------

    @property
    def position(self) -> LogPosition | None:
        """None before the log is found, and after it was replaced until the new log is found."""
        return self._position

    def reached(self, offset: int) -> asyncio.Future[bool]:
        """A future that is done once everything before the offset has been replayed. Fails with LogReplaced."""
        return self._wait(offset, is_watch=False)

    def watch(self, offset: int) -> asyncio.Future[bool]:
        """The outcome of a record at an offset that has not been read yet: True once it is replayed, False if its
        transaction was aborted. Fails with LogReplaced."""
        return self._wait(offset, is_watch=True)

    def _wait(self, offset: int, *, is_watch: bool) -> asyncio.Future[bool]:
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if self._position is None:
            future.set_exception(LogReplaced(self.problem or "the log has not been read yet"))
        elif not is_watch and self._position.offset >= offset:
            future.set_result(True)
        else:
            heapq.heappush(self._waiting, (offset + is_watch, not is_watch, next(self._numbers), future))
        return future

    @property
    def problem(self) -> str | None:
        """Why the log cannot be read now; None if it can."""
        return self._reported

    async def superseding(self) -> list[LogRecord]:
        """The current record of each key whose last record in the log was aborted. Writing it again makes it the last
        record for every reader. Raises Refused, OSError and LogReplaced."""
        position = self._position
        if position is None:
            raise LogReplaced(self.problem or "the log has not been read yet")
        records: list[LogRecord] = []
        for key in sorted(position.overlaid)[:_MAX_SUPERSEDING]:
            offset = position.offset_of(key)
            records.append((key, None if offset is None else await self._value_at(offset)))
        return records

    async def _value_at(self, offset: int) -> bytes | None:
        found = await self._client.fetch(*self._partition, offset, max_bytes=_MAX_BYTES)
        for record in iter_records(found.records or b""):
            if record.offset == offset:
                return record.value
        raise Refused(ErrorCode.OFFSET_OUT_OF_RANGE, f"the record at offset {offset} is gone: it was compacted")

    async def committed_end(self) -> int:
        """The end offset of everything that was committed before this call. Raises Refused and OSError."""
        return await self._list_offset(LATEST_TIMESTAMP)

    # --- Start and stop -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name="registry log")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        self._fail_waiting(LogReplaced("the registry is shutting down"))
        if self._connection is not None:
            await self._connection.close()

    async def _run(self) -> None:
        replaced: LogReplaced | None = None
        while True:
            try:
                if self._position is None:
                    await self._begin(replaced)
                else:
                    await self._follow(self._position)
            except LogReplaced as reason:
                log.error("rereading the schemas from the start of the log", why=reason)
                self._reported = str(reason)
                self._position, replaced = None, reason
                self._fail_waiting(reason)
                self._state = self._audience.begin(reason)
            except (OSError, KasparError) as problem:
                self._report(problem)
                await asyncio.sleep(_BACKOFF_S)
            except Exception:
                log.exception("unexpected error while reading the schemas; continuing")
                await asyncio.sleep(_BACKOFF_S)

    async def _begin(self, replaced: LogReplaced | None) -> None:
        """Start at the first record, once the topic exists. A deleted topic is not recreated, because an operator may
        be about to restore it from a copy."""
        while (topic := await find_topic(self._client, self._partition.topic)) is None:  # noqa: ASYNC110
            await asyncio.sleep(_BACKOFF_S)
        start = await self._list_offset(EARLIEST_TIMESTAMP)
        self._catch_up_to = await self.committed_end()
        if self._state is None:
            self._state = self._audience.begin(replaced)
        self._position = LogPosition(self._partition.topic, topic.topic_id, start)
        self._moved(self._position)

    async def _list_offset(self, timestamp: int) -> int:
        asked = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = list_offsets.ListOffsetsRequest(
            replica_id=-1,
            isolation_level=_READ_COMMITTED,
            topics=(list_offsets.ListOffsetsTopic(name=self._partition.topic, partitions=(asked,)),),
        )
        response = await self._client.request_leader(
            self._partition,
            request,
            list_offsets.ListOffsetsResponse,
            code_of=lambda each: each.topics[0].partitions[0].error_code,
        )
        found = response.topics[0].partitions[0]
        refuse(found.error_code, f"listing offsets of {self._partition}")
        return found.offset

    # --- Reading ------------------------------------------------------------------------------------------------------

    async def _follow(self, position: LogPosition) -> None:
        """Fetch until the leader must be looked up again."""
        try:
            connection = await self._connect()
            while await self._fetch(connection, position):
                pass
        except FetchRefused as refused:
            self._report(refused)
        finally:
            self._client.core.forget_leader(self._partition)
        await asyncio.sleep(_BACKOFF_S)

    async def _connect(self) -> AsyncConnection:
        if self._connection is not None:
            self._connection.abort()
        leader = await self._client.leader_of(self._partition)
        self._connection = await AsyncConnection.connect(
            *self._client.core.address_of(leader),
            client_id=self._client.client_id,
            security=self._client.security,
            records_in_place=True,
        )
        return self._connection

    async def _fetch(self, connection: AsyncConnection, position: LogPosition) -> bool:
        """Fetch once. Returns False if the leader must be looked up again."""
        request = position.request(max_wait_ms=_LONG_POLL_MS, max_bytes=_MAX_BYTES)
        response = await connection.request(request, timeout_s=_RESPONSE_TIMEOUT_S)
        assert isinstance(response, FetchResponse)
        refuse(response.error_code, f"reading {self._partition}")
        if not response.responses:  # the broker throttles this client
            await asyncio.sleep(max(_BACKOFF_S, response.throttle_time_ms / 1000))
            return True
        found = response.responses[0].partitions[0]
        match position.judge(found):
            case None:
                await self._apply(found, position)
            case Finding.NOTHING_NEW:
                self._moved(position)
            case Finding.LEADER_MOVED:
                return False
            case Finding.TOPIC_UNKNOWN:
                await self._check_topic(position)
                return False
        self._reported = None
        return True

    async def _apply(self, found: PartitionData, position: LogPosition) -> None:
        state = self._state
        assert state is not None
        turn_ends_s = time.monotonic() + _TURN_S
        for records in position.batches(found):
            for record in records:
                state.replay(record.key, record.value, record.offset, record.timestamp)
                self._replayed(record.offset)
            if time.monotonic() > turn_ends_s:
                self._moved(position)
                await asyncio.sleep(0)
                turn_ends_s = time.monotonic() + _TURN_S
        self._moved(position)

    def _replayed(self, offset: int) -> None:
        """Called when the record at this offset is part of the state."""
        self._passed(offset)
        while self._waiting and self._waiting[0][:2] == (offset + 1, False):
            future = heapq.heappop(self._waiting)[-1]
            if not future.done():
                future.set_result(True)

    def _passed(self, position: int) -> None:
        """Called when no record before this position remains to be replayed: a watched record there is not visible."""
        while self._waiting and self._waiting[0][0] <= position:
            _, is_position, _, future = heapq.heappop(self._waiting)
            if not future.done():
                future.set_result(is_position)

    def _moved(self, position: LogPosition) -> None:
        """Called after each batch."""
        self._passed(position.offset)
        if self._catch_up_to is not None and position.offset >= self._catch_up_to:
            self._catch_up_to = None
            self._audience.caught_up()

    async def _check_topic(self, position: LogPosition) -> None:
        """Raises LogReplaced if the topic was deleted or recreated."""
        deadline_s = time.monotonic() + _DELETED_AFTER_S
        while (topic := await find_topic(self._client, position.topic)) is None:
            if time.monotonic() > deadline_s:
                raise LogReplaced(f"the topic {position.topic} was deleted")
            await asyncio.sleep(_BACKOFF_S)
        if ZERO_UUID not in (topic.topic_id, position.topic_id) and topic.topic_id != position.topic_id:
            raise LogReplaced(f"the topic {position.topic} was deleted and recreated")

    # --- Failures -----------------------------------------------------------------------------------------------------

    def _fail_waiting(self, reason: LogReplaced) -> None:
        for *_, future in self._waiting:
            if not future.done():
                future.set_exception(LogReplaced(str(reason)))
                future.exception()  # marks the exception as retrieved: the caller may have been cancelled
        self._waiting.clear()

    def _report(self, problem: Exception) -> None:
        """Log the problem, unless it is the same as before."""
        if str(problem) != self._reported:
            self._reported = str(problem)
            log.warning("the schemas cannot be read", topic=self._partition.topic, why=problem)
