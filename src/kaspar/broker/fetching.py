"""One fetch request on its way: read, perhaps wait, read again what moved, answer.

A partition whose bytes are in the page cache is read on the spot; one that would have to wait for the disk is read in
a thread, so that a reader of old data holds up nobody. If there is less than `min_bytes`, the request waits at its
partitions, up to `max_wait_ms`, and looks again only at those that moved. For a read_committed reader a partition
moves when its last stable offset does: what a transaction writes before it ends is nothing new to it.
"""

import asyncio
import functools
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from kaspar import storage
from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.broker.connection import Buffers, Connection, Slot
from kaspar.broker.fetch_sessions import INITIAL_EPOCH, NO_SESSION, FetchedPartition, FetchSession
from kaspar.broker.large_requests import Steps, run_through
from kaspar.broker.metrics import RequestMetrics
from kaspar.protocol import fetch as codec
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.fetch import EpochEndOffset, FetchRequest, LeaderIdAndEpoch, PartitionData
from kaspar.protocol.headers import set_frame_size, start_response
from kaspar.protocol.shapes import AbortedTransaction, Topic
from kaspar.replication.partition import Partition
from kaspar.replication.state import Role
from kaspar.storage import WOULD_BLOCK, CommittedRead, FileSlice, Log, aborted_in, try_slice

if TYPE_CHECKING:
    from kaspar.broker.handlers.fetch import FetchHandler

FIRST_WITH_LEADER: Final = 16
READ_COMMITTED: Final = 1
MOVED: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
NOT_A_FAILURE: Final = frozenset(
    {
        *MOVED,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_OUT_OF_RANGE,
    }
)
UNKNOWN_HERE: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})

PARTITIONS_AT_ONCE: Final = 250
"""What is read in a turn of the loop, in about two milliseconds. A fetch of more partitions takes several turns."""

# Clients take an answer in whole before they look into it: with larger ones they and the broker wait for each other.
MAX_ANSWER_BYTES: Final = 8 * 1024 * 1024
# What a client nearby gets of one partition at a time: it works on this part while the next one is on its way, and the
# part is still in the CPU's cache. For one far away another round trip would cost more than that gains.
NEARBY_SLICE_BYTES: Final = 256 * 1024
# What is not sent from its file is copied twice on its way out, on the loop: this much takes about a millisecond. A
# client that asks for more gets the rest with its next request, which costs it less than the others' waiting would cost
# them.
MAX_COPIED_BYTES: Final = 4 * 1024 * 1024

_Records: TypeAlias = bytes | bytearray | FileSlice
_Read: TypeAlias = tuple[_Records, Sequence[AbortedTransaction] | None]


def encode(
    version: int,
    correlation_id: int,
    topics: Sequence[tuple[Topic, Sequence[PartitionData]]],
    *,
    error_code: int = 0,
    session_id: int = NO_SESSION,
) -> Buffers:
    out = start_response(ApiKey.FETCH, version, correlation_id)
    buffers = codec.write_response(out, version, topics, error_code=error_code, session_id=session_id)
    set_frame_size(out, sum(map(len, buffers)))
    return cast(Buffers, buffers)


def count_errors(
    metrics: RequestMetrics, topics: Iterable[tuple[Topic, Sequence[PartitionData]]], error_code: int = 0
) -> None:
    """As `error_counter` does for responses that have a message: the code of all, and that of each partition."""
    errors = metrics.errors
    errors[error_code] += 1
    for _, partitions in topics:
        for partition in partitions:
            errors[partition.error_code] += 1


def _told(read: bytes | bytearray | CommittedRead) -> _Read:
    """What a reader is told of it: the records, and what to leave out of them."""
    if isinstance(read, CommittedRead):
        return read.records, _told_aborted(read.aborted)
    return read, None


def _told_aborted(aborted: Sequence[storage.AbortedTransaction]) -> list[AbortedTransaction]:
    return [AbortedTransaction(entry.producer_id, entry.first_offset) for entry in aborted]


def _read_and_tell(
    read: Callable[..., bytes | bytearray | CommittedRead], *where: int, whole_first_batch: bool
) -> _Read:
    """In a thread: there may be much to tell."""
    return _told(read(*where, whole_first_batch=whole_first_batch))


class Fetch:
    __slots__ = (
        "_answers",
        "_cold",
        "_committed_only",
        "_connection",
        "_copy_room",
        "_correlation_id",
        "_handler",
        "_limit_bytes",
        "_local",
        "_metrics",
        "_min_bytes",
        "_missing_bytes",
        "_moved",
        "_received",
        "_request",
        "_request_bytes",
        "_room",
        "_session",
        "_slot",
        "_stable_offsets",
        "_timer",
        "_version",
        "_wanted",
        "registered",
    )

    def __init__(
        self,
        handler: "FetchHandler",
        connection: Connection,
        request: FetchRequest,
        version: int,
        correlation_id: int,
        session: FetchSession | None,
        wanted: tuple[FetchedPartition, ...],
        metrics: RequestMetrics,
        received: float,
        request_bytes: int,
    ) -> None:
        self._handler = handler
        self._connection = connection
        self._request = request
        self._request_bytes = request_bytes
        self._committed_only = request.replica_id < 0 and request.isolation_level == READ_COMMITTED
        self._local = 0.0
        self._metrics = metrics
        self._version = version
        self._correlation_id = correlation_id
        self._session = session
        self._wanted = wanted
        self._received = received
        self._answers: list[PartitionData | None] = [None] * len(wanted)
        self._cold: list[int] = []
        self._limit_bytes = min(request.max_bytes, handler.broker.config.fetch_max_bytes, MAX_ANSWER_BYTES)
        self._min_bytes = min(request.min_bytes, self._limit_bytes)  # an answer that is full need not wait for more
        self._room = self._limit_bytes
        self._copy_room = MAX_COPIED_BYTES
        self._missing_bytes = self._min_bytes
        self._moved: set[Partition] = set()
        self._stable_offsets: dict[Partition, int] = {}
        self.registered: dict[Partition, int] = {}
        self._slot: Slot | None = None
        self._timer: asyncio.TimerHandle | None = None

    # -- the first look ----------------------------------------------------------------------------------------------

    @property
    def is_large(self) -> bool:
        return len(self._wanted) > PARTITIONS_AT_ONCE

    def start(self) -> Steps[Buffers | Slot]:
        for position in range(len(self._wanted)):
            self._read(position)
            if position % PARTITIONS_AT_ONCE == PARTITIONS_AT_ONCE - 1:
                yield
        if self.is_large and self._connection.is_closing:
            return ()
        if not self._cold and self._is_enough():
            answer = yield from self._answer()
            self._metrics.inline(self._version, time.perf_counter() - self._received, self._request_bytes)
            return answer
        self._local = time.perf_counter() - self._received
        slot = self._slot = self._connection.take_slot(large=True)
        slot.when_lost(self._lost)
        if self._cold:
            self._handler.broker.spawn(self._finish_cold(slot), name="fetch of cold data")
        else:
            yield from self._wait()
        return slot

    def _is_enough(self) -> bool:
        return (
            self._missing_bytes <= 0
            or self._copy_room <= 0
            or self._request.max_wait_ms <= 0
            or not self._wanted
            or any(
                answer is not None and (answer.error_code or answer.diverging_epoch is not None)
                for answer in self._answers
            )
        )

    # -- reading -----------------------------------------------------------------------------------------------------

    def _read(self, position: int) -> None:
        """Read a partition from the page cache, or note that it is cold."""
        wanted = self._wanted[position]
        try:
            partition = self._handler.find(wanted)
            upper = self._check(partition, wanted)
            if wanted.last_fetched_epoch >= 0 and (diverging := self._diverging_epoch(partition, wanted)) is not None:
                self._diverged(position, partition, diverging)
                return
            offset = wanted.fetch_offset
            read = self._nothing
            if offset != upper or offset < partition.log.log_start_offset:
                found = self._read_now(partition.log, wanted, upper)
                if found is None:
                    self._cold.append(position)
                    return
                read = found
        except (Refused, StorageFailure) as problem:
            self._refused(position, problem)
            return
        self._found(position, partition, *read)

    def _read_now(self, log: Log, wanted: FetchedPartition, upper: int) -> _Read | None:
        """What can be had without waiting for the disk; None if nothing can. Large parts stay in their file."""
        offset = wanted.fetch_offset
        limit = min(wanted.max_bytes, self._room)
        first = self._nothing_read_yet
        if limit < 0:
            self._check_limits(wanted)
        if limit <= 0 and not first and log.log_start_offset <= offset < upper:
            return self._nothing
        read = self._slice_now(log, offset, limit, upper) or self._copy_now(log, offset, limit, upper)
        if read is not None and not read[0] and limit == self._room < self._limit_bytes // 2:
            # The next batch has no room any more. It is not worth a look whether a smaller one, elsewhere, has.
            self._room = 0
        return read

    def _slice_now(self, log: Log, offset: int, limit: int, upper: int) -> _Read | None:
        if self._request.replica_id >= 0:
            return None  # what is not committed yet may be cut off and written anew while it is on its way
        preferred = limit
        if limit > NEARBY_SLICE_BYTES and self._connection.is_nearby:
            preferred = NEARBY_SLICE_BYTES
        first = self._nothing_read_yet
        part = try_slice(log, offset, limit, upper, whole_first_batch=first, preferred_bytes=preferred)
        if part is None:
            return None
        if not self._committed_only:
            return part, None
        aborted = aborted_in(log, offset, part)
        return None if aborted is None else (part, _told_aborted(aborted))

    def _copy_now(self, log: Log, offset: int, limit: int, upper: int) -> _Read | None:
        try_read = log.try_read_committed if self._committed_only else log.try_read
        found = try_read(offset, min(limit, self._copy_room), upper, whole_first_batch=self._nothing_read_yet)
        return None if found is WOULD_BLOCK else _told(found)

    async def _finish_cold(self, slot: Slot) -> None:
        try:
            await self._read_cold()
            if self._slot is None:
                return  # the client is gone
            await self._carry_out(self._answer_into(slot) if self._is_enough() else self._wait())
        except Exception as problem:  # the edge of the task: the client must not wait for ever
            slot.fail(problem)

    async def _carry_out(self, steps: Steps[None]) -> None:
        if self.is_large:
            await self._handler.broker.large_requests.in_turns(steps)
        else:
            run_through(steps)

    async def _read_cold(self) -> None:
        """The partitions that have to wait for the disk, one after the other in a thread. Where there is no room left
        for records a partition is answered without: one that is missing in an answer makes clients drop all of it.
        """
        broker = self._handler.broker
        for position in self._cold:
            if self._slot is None:
                return
            wanted = self._wanted[position]
            try:
                partition = self._handler.find(wanted)
                upper = self._check(partition, wanted)
                read = self._nothing
                room = min(self._room, self._copy_room)
                if room > 0 or self._nothing_read_yet:
                    limit = min(wanted.max_bytes, room)
                    log = partition.log
                    reading = functools.partial(
                        _read_and_tell,
                        log.read_committed if self._committed_only else log.read,
                        whole_first_batch=self._nothing_read_yet,
                    )
                    read = await broker.run_blocking(reading, wanted.fetch_offset, limit, upper)
            except (Refused, StorageFailure) as problem:
                self._refused(position, problem)
                continue
            self._found(position, partition, *read)
        self._cold.clear()

    @property
    def _nothing_read_yet(self) -> bool:
        """The first batch of an answer is given whole even where it is larger than the limits, so that a reader gets
        on.
        """
        return self._missing_bytes == self._min_bytes

    def _check(self, partition: Partition, wanted: FetchedPartition) -> int:
        """May this be read, and up to which offset?"""
        if partition.offline:
            raise Refused(ErrorCode.KAFKA_STORAGE_ERROR, "the partition's log directory is offline")
        state = partition.state
        if wanted.current_leader_epoch >= 0:
            state.check_epoch(wanted.current_leader_epoch)
        state.check_leader()
        if self._request.replica_id >= 0:
            state.check_follower(self._request.replica_id, knows_epoch=wanted.current_leader_epoch >= 0)
            return partition.log.log_end_offset
        if self._committed_only:
            return partition.last_stable_offset
        return state.high_watermark

    def _check_limits(self, wanted: FetchedPartition) -> None:
        """There is no room: because it is used up, or because the client gave none."""
        if wanted.max_bytes < 0 or self._request.max_bytes < 0:
            raise Refused(ErrorCode.INVALID_REQUEST, "a limit on the answer's size is negative")

    @staticmethod
    def _diverging_epoch(partition: Partition, wanted: FetchedPartition) -> EpochEndOffset | None:
        """Where the reader's log and ours part, if what it read last is not what we have there."""
        epoch, offset = wanted.last_fetched_epoch, wanted.fetch_offset
        end = partition.log.end_offset_for_epoch(epoch)
        if end is None or offset < partition.log.log_start_offset:
            raise Refused(ErrorCode.OFFSET_OUT_OF_RANGE, f"it is not known whether epoch {epoch} ends after {offset}")
        if end.epoch < epoch or end.end_offset < offset:
            return EpochEndOffset(end.epoch, end.end_offset)
        return None

    def _diverged(self, position: int, partition: Partition, diverging: EpochEndOffset) -> None:
        self._answers[position] = PartitionData(
            partition.topic_partition.partition,
            high_watermark=partition.state.high_watermark,
            last_stable_offset=partition.last_stable_offset,
            log_start_offset=partition.log.log_start_offset,
            diverging_epoch=diverging,
        )

    @property
    def _nothing(self) -> _Read:
        return b"", () if self._committed_only else None

    def _found(
        self,
        position: int,
        partition: Partition,
        records: _Records,
        aborted: Sequence[AbortedTransaction] | None,
    ) -> None:
        size = len(records)
        self._missing_bytes -= size
        self._room -= size
        if isinstance(records, FileSlice):
            self._missing_bytes -= records.left_out  # who asked for at least so much need not wait for it
        else:
            self._copy_room -= size
        self._answers[position] = PartitionData(
            partition.topic_partition.partition,
            0,
            partition.state.high_watermark,
            partition.last_stable_offset,
            partition.log.log_start_offset,
            records,
            aborted,
        )

    def _refused(self, position: int, problem: Refused | StorageFailure) -> None:
        code, leader = ErrorCode.KAFKA_STORAGE_ERROR, None
        wanted = self._wanted[position]
        if isinstance(problem, StorageFailure):
            self._handler.broker.log_directory_failed(problem)
        else:
            code = problem.code
            if self._version >= FIRST_WITH_LEADER and code in MOVED:
                leader = LeaderIdAndEpoch(*self._handler.broker.current_leader(wanted.topic, wanted.partition))
        aborted = () if code in UNKNOWN_HERE else None
        self._answers[position] = PartitionData(
            wanted.partition, code, aborted_transactions=aborted, current_leader=leader
        )

    # -- waiting -----------------------------------------------------------------------------------------------------

    def _wait(self) -> Steps[None]:
        """At every partition, for what is left of the time."""
        for position, wanted in enumerate(self._wanted):
            if position % PARTITIONS_AT_ONCE == PARTITIONS_AT_ONCE - 1:
                yield
                if self._slot is None:
                    return  # the client is gone
            try:
                partition = self._handler.find(wanted)
            except Refused:
                continue
            answer = self._answers[position]
            assert answer is not None, "a partition that is waited for was read"
            self._stable_offsets[partition] = answer.last_stable_offset
            partition.fetch_waiters.add(self)
            self.registered[partition] = position
        self._handler.waiting.add(self)
        left_s = self._request.max_wait_ms / 1000 - (time.perf_counter() - self._received)
        self._timer = asyncio.get_running_loop().call_later(max(0.0, left_s), self._wake)
        for partition, position in self.registered.items():
            answer = self._answers[position]
            if answer is not None and self._has_moved(partition, answer):
                self.readable(partition, 0)  # while others were being read

    def _has_moved(self, partition: Partition, answer: PartitionData) -> bool:
        if partition.state.role is not Role.LEADER:
            return True
        if self._committed_only:
            return partition.last_stable_offset > answer.last_stable_offset
        return partition.state.high_watermark > answer.high_watermark

    def readable(self, partition: Partition, size: int) -> None:
        if size and self._committed_only:
            # What is committed is of use to this reader only when it is stable, and then with all that waited for it.
            seen, stable = self._stable_offsets[partition], partition.last_stable_offset
            if stable <= seen:
                return
            self._stable_offsets[partition] = stable
            size = partition.log.size_between(seen, stable)
        self._moved.add(partition)
        self._missing_bytes -= size
        if (self._missing_bytes <= 0 or size == 0) and self._timer is not None:
            # With the next turn of the loop: whatever else arrives in this one goes into the same answer.
            self._timer.cancel()
            self._timer = None
            asyncio.get_running_loop().call_soon(self._wake)

    def release(self) -> None:
        """Answer with what there is."""
        if self._timer is not None:
            self._wake()

    def _lost(self) -> None:
        """Nobody waits for the answer any longer."""
        self._slot = None
        self._leave()

    def _leave(self) -> None:
        """Wait no longer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for partition in self.registered:
            partition.fetch_waiters.discard(self)
        self._handler.waiting.discard(self)

    def _wake(self) -> None:
        """Enough has come, or the time is over: read what moved since the first look, and answer."""
        self._leave()
        slot = self._slot
        if slot is None or self._connection.is_closing:
            return
        try:
            self._request = self._request._replace(max_wait_ms=0)
            if self.is_large:
                self._handler.broker.spawn(self._finish_large(slot), name="fetch of many partitions")
                return
            run_through(self._read_moved())
            if self._cold:
                self._handler.broker.spawn(self._finish_cold(slot), name="fetch of cold data")
            else:
                run_through(self._answer_into(slot))
        except Exception as problem:  # the edge of the timer's call: the client must not wait for ever
            slot.fail(problem)

    async def _finish_large(self, slot: Slot) -> None:
        try:
            await self._handler.broker.large_requests.in_turns(self._read_moved())
        except Exception as problem:  # the edge of the task: the client must not wait for ever
            slot.fail(problem)
        else:
            await self._finish_cold(slot)

    def _read_moved(self) -> Steps[None]:
        """Read them again, in the room that what did not move leaves."""
        moved = [position for partition, position in self.registered.items() if partition in self._moved]
        for position in moved:
            self._answers[position] = None
        kept = [answer.records for answer in self._answers if answer is not None and answer.records is not None]
        kept_bytes = sum(map(len, kept))
        self._room = self._limit_bytes - kept_bytes
        self._copy_room = MAX_COPIED_BYTES - sum(len(records) for records in kept if not isinstance(records, FileSlice))
        self._missing_bytes = self._min_bytes - kept_bytes
        for count, position in enumerate(moved, 1):
            self._read(position)
            if count % PARTITIONS_AT_ONCE == 0:
                yield

    # -- answering ---------------------------------------------------------------------------------------------------

    def _answer_into(self, slot: Slot) -> Steps[None]:
        answer = yield from self._answer()
        if self._slot is None:
            return  # the client is gone
        self._slot = None  # which holds this fetch until its turn has come
        slot.fill(answer, sent=self._sent)

    def _sent(self) -> None:
        remote = time.perf_counter() - self._received - self._local
        self._metrics.delayed(self._version, self._local, remote, self._request_bytes)

    def _answer(self) -> Steps[Buffers]:
        """Everything for a full fetch; only the news for an incremental one. What is not here comes last, as in Kafka's
        answers.
        """
        session = self._session
        by_topic: dict[Topic, list[PartitionData]] = {}
        unknown: dict[Topic, list[PartitionData]] = {}
        served = []
        for position, (wanted, answer) in enumerate(zip(self._wanted, self._answers, strict=True)):
            if position % PARTITIONS_AT_ONCE == PARTITIONS_AT_ONCE - 1:
                yield
            assert answer is not None, "every partition that is asked for is answered"
            size = len(answer.records) if answer.records is not None else 0
            self._count(wanted, answer.error_code, size)
            if size:
                served.append(wanted.key)
            if session is not None:
                news = wanted.tell(answer, size)
                if not news and self._request.session_epoch > INITIAL_EPOCH:
                    continue
            kind = unknown if answer.error_code and answer.error_code in UNKNOWN_HERE else by_topic
            kind.setdefault(wanted.topic, []).append(answer)
        if session is not None:
            session.served(served)
        session_id = NO_SESSION if session is None else session.session_id
        topics = (*by_topic.items(), *unknown.items())
        count_errors(self._metrics, topics)
        return encode(self._version, self._correlation_id, topics, session_id=session_id)

    def _count(self, wanted: FetchedPartition, error_code: int, size: int) -> None:
        """Kafka counts a partition that it has, and as failed what points at a fault rather than at the client or at
        a change of leaders.
        """
        if error_code and error_code in UNKNOWN_HERE:
            return
        hosted = self._handler.partitions.find(wanted.topic)
        if hosted is None:
            return  # it was deleted meanwhile
        metrics = hosted.metrics
        metrics.total_fetch_requests += 1
        if error_code:
            metrics.failed_fetch_requests += error_code not in NOT_A_FAILURE
        elif self._request.replica_id < 0:
            metrics.bytes_out += size
