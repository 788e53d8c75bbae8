"""A partition on this broker: its log, its state, and the requests that wait for it.

Owned by the event loop's thread. It does not know how its waiters wait: it notifies a fetch of how many more bytes can
be read, and a produce that its offset is committed. Consumers wait for records to be committed, followers for records
to be appended.

While a thread truncates the log of a follower, no other thread may change the log, and the event loop must not read it.
"""

import heapq
import itertools
import uuid
from collections.abc import Callable
from typing import Protocol

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId, Offset, TopicPartition
from kaspar.config import LogConfig
from kaspar.records import EndTransactionMarker
from kaspar.replication.followers import ClusterView, NoOtherBrokers
from kaspar.replication.in_sync import AfterRefusal, IsrProposal
from kaspar.replication.state import START, FollowerFetch, Leadership, PartitionState, Role
from kaspar.storage import Appended, FetchedBatches, Log, PreparedBatch

_LEADER = Role.LEADER  # an enum member lookup takes as long as a call, and appending is the hot path


class FetchWaiter(Protocol):
    def readable(self, partition: "Partition", size: int) -> None:
        """`size` more bytes of a partition that this fetch requested can be read; some of them may be in a transaction
        that is still open.
        """
        ...

    def read_again(self, partition: "Partition") -> None:
        """Read the partition again, because something other than the number of readable bytes has changed."""
        ...


class ProposeIsr(Protocol):
    """Submits a proposal to the controller; a refusal is passed to `isr_refused`, and the image shows a change."""

    def __call__(self, partition: "Partition", proposal: IsrProposal) -> None: ...


def _nobody_to_ask(partition: "Partition", proposal: IsrProposal) -> None:
    partition.isr_refused(proposal, ErrorCode.OPERATION_NOT_ATTEMPTED)


class Partition:
    __slots__ = (
        "_commit_order",
        "_commit_waiters",
        "_propose",
        "_steady_ms",
        "_uncommitted_bytes",
        "fetch_waiters",
        "log",
        "low_watermark_waiters",
        "replica_waiters",
        "state",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: uuid.UUID,
        log: Log,
        broker_id: BrokerId,
        *,
        cluster: ClusterView | None = None,
        propose: ProposeIsr = _nobody_to_ask,
        high_watermark: int = START,
    ) -> None:
        """`high_watermark` is the last known one, which a leader with followers starts from."""
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        known = Offset(max(log.log_start_offset, min(high_watermark, log.log_end_offset)))
        log.producers.high_watermark_moved(known)  # forgets transactions with a committed marker
        self.state = PartitionState(broker_id, cluster or NoOtherBrokers(), known, log.config.min_insync_replicas)
        self.fetch_waiters: set[FetchWaiter] = set()
        """Waiting fetches of consumers."""
        self.replica_waiters: set[FetchWaiter] = set()
        """Waiting fetches of followers."""
        self.low_watermark_waiters: set[Callable[[], None]] = set()
        """DeleteRecords requests, which wait until the logs of all live replicas begin where the leader's does."""
        self._propose = propose
        self._steady_ms = log.directory.steady_ms
        self._commit_waiters: list[tuple[Offset, int, Callable[[], None]]] = []
        self._commit_order = itertools.count()
        self._uncommitted_bytes = 0

    @property
    def high_watermark(self) -> Offset:
        return self.state.high_watermark

    @property
    def low_watermark(self) -> Offset:
        """The smallest log start offset of all live replicas, for a partition that this broker leads."""
        return self.state.low_watermark(Offset(self.log.log_start_offset))

    @property
    def last_stable_offset(self) -> Offset:
        """The offset below which a read_committed reader may read: committed, and before the first open transaction."""
        return self.log.last_stable_offset(self.state.high_watermark)

    @property
    def offline(self) -> bool:
        """Whether the log directory has failed."""
        return self.log.directory.offline is not None

    @property
    def is_changeable(self) -> bool:
        """Whether the event loop may change the log now: it is still hosted here, and no thread truncates it."""
        return self.state.role is not Role.NONE and not self.log.truncating

    def may_change(self, log: Log) -> bool:
        """Whether the event loop may change a log that was this partition's earlier. It may have been deleted or
        truncated since, or moved to another directory while a thread renames its folder.
        """
        return log is self.log and self.is_changeable

    @property
    def syncs_before_commit(self) -> bool:
        """`flush.messages=1`: a record is committed only after it is synced. One sync covers all records before it."""
        return self.log.config.flush_messages == 1

    def reconfigure(self, config: LogConfig) -> None:
        self.log.reconfigure(config)
        self.state.min_insync_replicas = config.min_insync_replicas
        self.recheck()

    def log_moved(self, log: Log) -> None:
        """Use a log with the same records in another directory, which has replaced this partition's log."""
        self.log = log
        self._steady_ms = log.directory.steady_ms

    def lead_or_follow(self, leadership: Leadership) -> None:
        """Apply what the controller decided. For a newer leader epoch the caller has stopped fetching into the log."""
        if self.offline:
            return
        log = self.log
        end = Offset(log.log_end_offset)
        durable = Offset(log.recovery_point) if self.syncs_before_commit else end
        committed = self.state.high_watermark
        if self.state.decide_role(leadership, log_end_offset=end, durable_end=durable, now_ms=self._steady_ms()):
            if self.state.role is Role.LEADER:
                log.leader_epochs.assign(leadership.leader_epoch, end)
            self.wake_all()
        if self.state.high_watermark > committed:
            self._committed()

    # -- appends -----------------------------------------------------------------------------------------------------

    def append_as_leader(self, batch: PreparedBatch, *, acks_all: bool, now_ms: int) -> Appended:
        state, log = self.state, self.log
        try:
            if state.role is not _LEADER:
                raise self.why_not_leader()
            if acks_all and state.min_insync_replicas > 1:
                state.check_in_sync()
            appended = log.append_as_leader(batch, leader_epoch=state.leadership.leader_epoch, now_ms=now_ms)
        except Refused as reason:
            log.producers.refused(batch.producer_id, batch.producer_epoch, batch.base_sequence, reason)
            raise
        if not appended.duplicate:
            size = batch.end - batch.start
            self._uncommitted_bytes += size
            if log.config.flush_messages != 1 and state.local_end_moved(Offset(appended.last_offset + 1)):
                self._committed()
            if self.replica_waiters:
                self._appended(size)
        return appended

    def append_marker(
        self,
        marker: EndTransactionMarker,
        *,
        producer_id: int,
        producer_epoch: int,
        transaction_version: int,
        now_ms: int,
    ) -> Appended:
        """Write the marker that ends a producer's transaction here, with the guarantees of acks=all."""
        state, log = self.state, self.log
        if state.role is not _LEADER:
            raise self.why_not_leader()
        state.check_in_sync()
        appended = log.append_marker(
            marker,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transaction_version=transaction_version,
            leader_epoch=state.leadership.leader_epoch,
            now_ms=now_ms,
        )
        self._own_batch_appended(appended)
        return appended

    def append_fence(
        self, *, producer_id: int, producer_epoch: int, coordinator_epoch: int, now_ms: int
    ) -> Appended | None:
        """Fence the older epochs of a producer within its transaction, with the guarantees of acks=all. None if the log
        already has the fence.
        """
        state, log = self.state, self.log
        if state.role is not _LEADER:
            raise self.why_not_leader()
        state.check_in_sync()
        appended = log.append_fence(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=coordinator_epoch,
            leader_epoch=state.leadership.leader_epoch,
            now_ms=now_ms,
        )
        if appended is not None:
            self._own_batch_appended(appended)
        return appended

    def _own_batch_appended(self, appended: Appended) -> None:
        log = self.log
        size = log.size_between(appended.base_offset, log.log_end_offset)
        self._uncommitted_bytes += size
        if not self.syncs_before_commit and self.state.local_end_moved(Offset(log.log_end_offset)):
            self._committed()
        if self.replica_waiters:
            self._appended(size)

    def append_as_follower(self, fetched: FetchedBatches, *, now_ms: int) -> None:
        """Append batches that the leader sent, after `Log.check_fetched`."""
        if fetched.batches:
            self.log.append_fetched(fetched, now_ms=now_ms)
            self._uncommitted_bytes += fetched.size

    def follow_leader(self, high_watermark: int, log_start_offset: int) -> None:
        """Apply the high watermark and the log start offset from the leader's response."""
        if self.state.follow_high_watermark(Offset(high_watermark), Offset(self.log.log_end_offset)):
            self._committed()
        # Segments below the log start offset are deleted by the next check of retention.
        self.log.move_log_start_offset(min(log_start_offset, self.state.high_watermark))

    def truncated(self) -> None:
        """Update the state after the log of this follower was truncated."""
        self._uncommitted_bytes = 0
        self.state.truncated(Offset(self.log.log_end_offset), Offset(self.log.log_start_offset))

    def durable_up_to(self, offset: Offset) -> None:
        """Commit records and notify the waiters: the leader's log is as durable as required, up to `offset`."""
        if self.state.role is Role.LEADER and self.state.local_end_moved(offset):
            self._committed()

    # -- followers and in-sync replicas ------------------------------------------------------------------------------

    def follower_fetched(self, follower: BrokerId, broker_epoch: int, offset: int, log_start_offset: int) -> None:
        """Handle a follower's fetch of records from `offset` on. Raises Refused if the offset is not in the log, or if
        the broker has restarted since it sent the fetch.
        """
        log, state = self.log, self.state
        end = log.log_end_offset
        if not log.log_start_offset <= offset <= end:
            raise Refused(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is not between {log.log_start_offset} and {end}"
            )
        fetch = FollowerFetch(
            follower, broker_epoch, Offset(offset), Offset(log_start_offset), Offset(end), self._steady_ms()
        )
        moved = state.follower_fetched(fetch)
        proposal = state.maybe_expand(follower)
        if moved:
            self._committed()
        if proposal is not None:
            self._propose(self, proposal)
        self._notify_low_watermark()

    def maybe_shrink_isr(self) -> None:
        """Propose to remove followers that have fallen behind from the in-sync replicas. Called periodically."""
        proposal = self.state.maybe_shrink(Offset(self.log.log_end_offset), self._steady_ms())
        if proposal is not None:
            self._propose(self, proposal)
        self.recheck()

    def isr_refused(self, proposal: IsrProposal, code: ErrorCode) -> AfterRefusal:
        decided = self.state.isr_refused(proposal, code)
        self.recheck()
        return decided

    def recheck(self) -> None:
        """Update the high watermark after a change of other brokers or of settings."""
        if self.state.recheck():
            self._committed()
        self._notify_low_watermark()

    # -- waiters -----------------------------------------------------------------------------------------------------

    def _appended(self, size: int) -> None:
        for waiter in tuple(self.replica_waiters):
            waiter.readable(self, size)

    def _committed(self) -> None:
        # Reset before the waiters are notified: they may append at once, which notifies readers within this call.
        size, self._uncommitted_bytes = self._uncommitted_bytes, 0
        if self.log.producers.decided:
            self.log.producers.high_watermark_moved(self.state.high_watermark)
        if self._commit_waiters:
            self._notify_committed()
        if self.fetch_waiters:
            for waiter in tuple(self.fetch_waiters):
                if size:
                    waiter.readable(self, size)
                else:  # the committed records were not appended by this leader
                    waiter.read_again(self)

    def _notify_committed(self) -> None:
        waiters = self._commit_waiters
        while waiters and waiters[0][0] <= self.state.high_watermark:
            heapq.heappop(waiters)[2]()

    def _notify_low_watermark(self) -> None:
        for look_again in tuple(self.low_watermark_waiters):
            look_again()

    def when_committed(self, end_offset: Offset, callback: Callable[[], None]) -> None:
        """Call `callback` once everything before `end_offset` is committed. The caller handles its own timeout."""
        heapq.heappush(self._commit_waiters, (end_offset, next(self._commit_order), callback))

    def wake_all(self) -> None:
        """Have every waiter check again, because something other than new data has changed (leadership, deletion)."""
        for waiter in (*self.fetch_waiters, *self.replica_waiters):
            waiter.read_again(self)
        self._notify_low_watermark()
        if self.state.role is not Role.LEADER:
            waiters = self._commit_waiters.copy()
            self._commit_waiters.clear()  # in place: `_committed` may be iterating over it further up the stack
            for _, _, callback in waiters:
                callback()

    def why_not_leader(self) -> Refused:
        """The reason why a record that waits to be committed will not be."""
        if self.offline:
            return Refused(ErrorCode.KAFKA_STORAGE_ERROR, "the partition's log directory went offline")
        return Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this broker no longer leads the partition")

    def retire(self) -> None:
        """Release all waiters: the partition leaves this broker, or this broker may be fenced."""
        self.state.resign()
        self.wake_all()
