"""What a Fetch request has read so far: a result for each of its partitions, within its limits.

A partition whose bytes are in the page cache is read at once. One that would have to wait for the disk is read in a
thread, so that a consumer of old data blocks nobody else.

A follower reads up to the log's end, only from the leader, and its fetch offset shows how far it is. A consumer reads
committed records, from the leader or, since version 11, from any replica; the leader may redirect it to a nearer one
(KIP-392).
"""

import functools
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, TypeAlias

from kaspar import storage
from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.base.ids import BrokerId
from kaspar.base.named_tuples import new_tuple
from kaspar.broker.fetch.preferred_replica import RACK_AWARE_SELECTOR, preferred_read_replica
from kaspar.broker.fetch.services import FetchServices
from kaspar.broker.fetch.sessions import FetchedPartition
from kaspar.broker.partitions import current_leader
from kaspar.network.exchange import Exchange
from kaspar.protocol.fetch import EpochEndOffset, FetchRequest, PartitionData
from kaspar.protocol.isolation_level import READ_COMMITTED
from kaspar.protocol.shapes import AbortedTransaction, Topic
from kaspar.replication.divergence import Diverging, diverging_epoch
from kaspar.replication.partition import Partition
from kaspar.replication.state import Role
from kaspar.storage import WOULD_BLOCK, CommittedRead, FileSlice, Log, aborted_in, try_slice

FIRST_WITH_RACK: Final = 11
FIRST_WITH_LEADER: Final = 16
MOVED: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
UNKNOWN_HERE: Final = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.TOPIC_AUTHORIZATION_FAILED}
)
"""Errors for partitions that were not looked at, because for this client they do not exist."""

# Clients read a whole response before they process it, so with larger ones client and broker wait for each other.
MAX_RESPONSE_BYTES: Final = 8 * 1024 * 1024
# The most that a nearby client gets of one partition at once. It processes this part, which is still in the CPU's
# cache, while the next one is on its way. For a distant client another round trip would cost more than that gains.
NEARBY_SLICE_BYTES: Final = 256 * 1024
# Records that are not sent directly from their file are copied twice on the event loop, which takes about a millisecond
# for this much. A client that wants more gets the rest with its next request, which costs it less than a longer block
# of the loop would cost others.
MAX_COPIED_BYTES: Final = 4 * 1024 * 1024

_REST_OF_SUCCESS: Final = PartitionData(0)[7:]  # no preferred replica and no other leader

_Records: TypeAlias = bytes | bytearray | FileSlice


_Read: TypeAlias = tuple[_Records, Sequence[AbortedTransaction] | None]
"""The records, and the aborted transactions in them for a read_committed consumer; None for others."""


class Reading:
    __slots__ = (
        "_any_replica",
        "_copy_room",
        "_denied",
        "_exchange",
        "_limit_bytes",
        "_min_bytes",
        "_rack_id",
        "_request",
        "_room",
        "_services",
        "cold",
        "committed_only",
        "for_follower",
        "missing_bytes",
        "results",
        "wanted",
    )

    def __init__(
        self,
        services: FetchServices,
        exchange: Exchange,
        request: FetchRequest,
        wanted: tuple[FetchedPartition, ...],
        denied: Collection[Topic] = (),
    ) -> None:
        """`denied` are the topics that the client may not read."""
        self._services = services
        self._exchange = exchange
        self._request = request
        self._denied = denied
        self.wanted = wanted
        self.results: list[PartitionData | None] = [None] * len(wanted)
        self.cold: list[int] = []
        """The positions of partitions that have to wait for the disk."""
        config = services.settings.config
        self.for_follower = request.replica_id >= 0
        self.committed_only = not self.for_follower and request.isolation_level == READ_COMMITTED
        self._any_replica = not self.for_follower and exchange.version >= FIRST_WITH_RACK
        self._rack_id = request.rack_id if config.replica_selector_class == RACK_AWARE_SELECTOR else ""
        self._limit_bytes = min(request.max_bytes, config.fetch_max_bytes, MAX_RESPONSE_BYTES)
        if not self.for_follower:
            quota_bytes = services.quota.max_fetch_bytes(exchange.principal, exchange.header.client_id)
            self._limit_bytes = min(self._limit_bytes, quota_bytes)
        self._min_bytes = min(request.min_bytes, self._limit_bytes)  # a full response need not wait for more
        self._room = self._limit_bytes
        self._copy_room = MAX_COPIED_BYTES
        self.missing_bytes = self._min_bytes

    @property
    def is_enough(self) -> bool:
        """Whether to respond now: there is as much as the client asked for, or an error, which it should learn of at
        once.
        """
        return (
            self.missing_bytes <= 0
            or self._copy_room <= 0
            or not self.wanted
            or any(
                result is not None
                and (result.error_code or result.diverging_epoch is not None or result.preferred_read_replica >= 0)
                for result in self.results
            )
        )

    @property
    def record_bytes(self) -> int:
        return sum(len(result.records) for result in self.results if result is not None and result.records is not None)

    def discard(self, positions: Iterable[int]) -> None:
        """Drop results that will be read again, in the room that the others leave."""
        for position in positions:
            self.results[position] = None
        kept = [result.records for result in self.results if result is not None and result.records is not None]
        kept_bytes = sum(map(len, kept))
        self._room = self._limit_bytes - kept_bytes
        self._copy_room = MAX_COPIED_BYTES - sum(len(records) for records in kept if not isinstance(records, FileSlice))
        self.missing_bytes = self._min_bytes - kept_bytes

    # -- from the page cache -----------------------------------------------------------------------------------------

    def read(self, position: int, *, again: bool = False) -> None:
        """Read a partition from the page cache, or note that it is cold. `again`: after a wait, when the request says
        nothing new about a follower.
        """
        wanted = self.wanted[position]
        try:
            if self._denied and wanted.topic in self._denied:
                raise Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "the client may not read the topic")
            partition = self._services.find(wanted)
            upper = self._check(partition, wanted)
            offset = wanted.fetch_offset
            if wanted.last_fetched_epoch >= 0:
                diverging = diverging_epoch(partition.log, wanted.last_fetched_epoch, offset)
                if diverging is not None:
                    self._diverged(position, partition, diverging)
                    return
            if self.for_follower:
                upper = self._note_follower(partition, wanted, again=again)
            elif self._rack_id and partition.state.role is Role.LEADER:
                preferred = self._preferred(partition, offset)
                if preferred >= 0:
                    self._elsewhere(position, partition, preferred)
                    return
            if offset != upper or offset < partition.log.log_start_offset:
                read = self._read_now(partition, wanted, upper)
            else:
                read = self._nothing
        except (Refused, StorageFailure) as problem:
            self._refused(position, problem)
            return
        if read is None:
            self.cold.append(position)
        else:
            self._found(position, partition, read)

    def _note_follower(self, partition: Partition, wanted: FetchedPartition, *, again: bool) -> int:
        """Note the follower's state from its fetch. Returns the offset up to which it may read now."""
        request = self._request
        if not again:
            partition.follower_fetched(
                BrokerId(request.replica_id), request.replica_epoch, wanted.fetch_offset, wanted.log_start_offset
            )
        if self._services.throttles.holds_back(partition, request.replica_id):
            return wanted.fetch_offset
        return partition.log.log_end_offset

    def _preferred(self, partition: Partition, offset: int) -> int:
        return preferred_read_replica(
            partition,
            self._services.images.current,
            rack_id=self._rack_id,
            listener=self._exchange.connection.owner.name,
            fetch_offset=offset,
        )

    def _read_now(self, partition: Partition, wanted: FetchedPartition, upper: int) -> _Read | None:
        """Read what does not have to wait for the disk; None if that is nothing. Large parts are sent from their file,
        unless the file may be truncated and rewritten meanwhile: uncommitted records, or a follower's own log.
        """
        log = partition.log
        offset = wanted.fetch_offset
        limit = min(wanted.max_bytes, self._room)
        if limit < 0:
            self._check_limits(wanted)
        if limit <= 0 and not self._nothing_read_yet and log.log_start_offset <= offset < upper:
            return self._nothing
        read = None
        if not self.for_follower and partition.state.role is Role.LEADER:
            read = self._slice_now(log, offset, limit, upper)
        read = read or self._copy_now(log, offset, limit, upper)
        if read is not None and not read[0] and limit == self._room < self._limit_bytes // 2:
            # There is no room for the next batch. It does not pay off to look for a smaller one in other partitions.
            self._room = 0
        return read

    def _slice_now(self, log: Log, offset: int, limit: int, upper: int) -> _Read | None:
        preferred = limit
        if limit > NEARBY_SLICE_BYTES and self._exchange.connection.is_nearby:
            preferred = NEARBY_SLICE_BYTES
        first = self._nothing_read_yet
        part = try_slice(log, offset, limit, upper, whole_first_batch=first, preferred_bytes=preferred)
        if part is None:
            return None
        if not self.committed_only:
            return part, None
        aborted = aborted_in(log, offset, part)
        return None if aborted is None else (part, _aborted_to_wire(aborted))

    def _copy_now(self, log: Log, offset: int, limit: int, upper: int) -> _Read | None:
        try_read = log.try_read_committed if self.committed_only else log.try_read
        found = try_read(offset, min(limit, self._copy_room), upper, whole_first_batch=self._nothing_read_yet)
        return None if found is WOULD_BLOCK else _to_wire(found)

    # -- from the disk -----------------------------------------------------------------------------------------------

    async def read_cold(self, is_needed: Callable[[], bool]) -> None:
        """Read the cold partitions, one after the other in a thread. If no room is left, a result has no records:
        clients drop a whole response in which a partition is missing.
        """
        for position in self.cold:
            if not is_needed():
                return
            wanted = self.wanted[position]
            try:
                partition = self._services.find(wanted)
                upper = self._check(partition, wanted)
                read = self._nothing
                room = min(self._room, self._copy_room)
                if room > 0 or self._nothing_read_yet:
                    log = partition.log
                    reading = functools.partial(
                        _read_to_wire,
                        log.read_committed if self.committed_only else log.read,
                        whole_first_batch=self._nothing_read_yet,
                    )
                    limit = min(wanted.max_bytes, room)
                    read = await self._services.run_blocking(reading, wanted.fetch_offset, limit, upper)
                    # Another broker may lead by now. The high watermark that this one then knows says nothing about the
                    # log of a follower that has not learned of it.
                    self._check(partition, wanted)
            except (Refused, StorageFailure) as problem:
                self._refused(position, problem)
                continue
            self._found(position, partition, read)
        self.cold.clear()

    # -- checks ------------------------------------------------------------------------------------------------------

    @property
    def _nothing_read_yet(self) -> bool:
        """Whether the response is still empty. Its first batch is returned whole even if it is larger than the limits,
        so that clients make progress (KIP-74).
        """
        return self.missing_bytes == self._min_bytes

    def _check(self, partition: Partition, wanted: FetchedPartition) -> int:
        """Check that the partition may be read. Returns the offset up to which it may be."""
        if partition.offline:
            raise Refused(ErrorCode.KAFKA_STORAGE_ERROR, "the partition's log directory is offline")
        state = partition.state
        if wanted.current_leader_epoch >= 0:
            state.check_epoch(wanted.current_leader_epoch)
        if not self._any_replica:
            state.check_leader()
        elif state.role is not Role.LEADER:
            state.check_replica()
        if partition.log.truncating:  # can be true for a leader that was elected before a full disk let it finish
            raise Refused(ErrorCode.OFFSET_NOT_AVAILABLE, "this replica is still truncating its log")
        if self.for_follower:
            state.check_follower(self._request.replica_id, knows_epoch=wanted.current_leader_epoch >= 0)
            return partition.log.log_end_offset
        if self.committed_only:
            return partition.last_stable_offset
        return state.high_watermark

    def _check_limits(self, wanted: FetchedPartition) -> None:
        """Called when there is no room. Raises Refused if that is because the client sent a negative limit."""
        if wanted.max_bytes < 0 or self._request.max_bytes < 0:
            raise Refused(ErrorCode.INVALID_REQUEST, "a limit on the response's size is negative")

    # -- results -----------------------------------------------------------------------------------------------------

    @property
    def _nothing(self) -> _Read:
        return _NOTHING_COMMITTED if self.committed_only else _NOTHING

    def _found(self, position: int, partition: Partition, read: _Read) -> None:
        records, aborted = read
        size = len(records)
        self.missing_bytes -= size
        self._room -= size
        if isinstance(records, FileSlice):
            self.missing_bytes -= records.left_out  # bytes that are there, so the client need not wait for them
        else:
            self._copy_room -= size
        if self.for_follower and size:
            self._services.throttles.sent(partition, self._request.replica_id, size)
        log, high_watermark = partition.log, partition.state.high_watermark
        self.results[position] = new_tuple(
            PartitionData,
            (
                partition.topic_partition.partition,
                0,
                high_watermark,
                log.last_stable_offset(high_watermark),
                log.log_start_offset,
                records,
                aborted,
                *_REST_OF_SUCCESS,
            ),
        )

    def _elsewhere(self, position: int, partition: Partition, preferred: int) -> None:
        """Redirect a consumer to a replica in its own rack."""
        self.results[position] = PartitionData(
            partition.topic_partition.partition,
            high_watermark=partition.state.high_watermark,
            last_stable_offset=partition.last_stable_offset,
            log_start_offset=partition.log.log_start_offset,
            aborted_transactions=() if self.committed_only else None,
            preferred_read_replica=preferred,
        )

    def _diverged(self, position: int, partition: Partition, diverging: Diverging) -> None:
        self.results[position] = PartitionData(
            partition.topic_partition.partition,
            high_watermark=partition.state.high_watermark,
            last_stable_offset=partition.last_stable_offset,
            log_start_offset=partition.log.log_start_offset,
            diverging_epoch=EpochEndOffset(*diverging),
        )

    def _refused(self, position: int, problem: Refused | StorageFailure) -> None:
        code, leader = ErrorCode.KAFKA_STORAGE_ERROR, None
        wanted = self.wanted[position]
        if isinstance(problem, StorageFailure):
            self._services.failures.log_directory_failed(problem)
        else:
            code = problem.code
            if self._exchange.version >= FIRST_WITH_LEADER and code in MOVED:
                leader = current_leader(self._services.images.current, wanted.topic, wanted.partition)
        aborted = () if code in UNKNOWN_HERE else None
        self.results[position] = PartitionData(
            wanted.partition, code, aborted_transactions=aborted, current_leader=leader
        )


_NOTHING: Final[_Read] = (b"", None)
_NOTHING_COMMITTED: Final[_Read] = (b"", ())


def _to_wire(read: bytes | bytearray | CommittedRead) -> _Read:
    if isinstance(read, CommittedRead):
        return read.records, _aborted_to_wire(read.aborted)
    return read, None


def _aborted_to_wire(aborted: Sequence[storage.AbortedTransaction]) -> list[AbortedTransaction]:
    return [AbortedTransaction(entry.producer_id, entry.first_offset) for entry in aborted]


def _read_to_wire(
    read: Callable[..., bytes | bytearray | CommittedRead], *where: int, whole_first_batch: bool
) -> _Read:
    """Runs in a thread, because there may be many aborted transactions."""
    return _to_wire(read(*where, whole_first_batch=whole_first_batch))
