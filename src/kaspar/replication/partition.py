"""A partition on this broker: its log and its state together, and who waits for it.

Owned by the event loop's thread. It does not know how its waiters wait: a fetch is told how many more bytes can be
read, a produce that its offset is committed.
"""

import heapq
import itertools
import uuid
from collections.abc import Callable
from typing import Protocol

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId, Offset, TopicPartition
from kaspar.records import EndTransactionMarker
from kaspar.replication.state import Leadership, PartitionState, Role
from kaspar.storage import Appended, Log, PreparedBatch

_LEADER = Role.LEADER  # each look-up in an enumeration takes as long as a call, and appending is the hot path


class FetchWaiter(Protocol):
    def readable(self, partition: "Partition", size: int) -> None:
        """`size` more bytes of a partition this fetch asked for are committed; zero: look again, something else
        changed. Some of them may belong to a transaction that is still open.
        """
        ...


class Partition:
    __slots__ = (
        "_commit_order",
        "_commit_waiters",
        "_uncommitted_bytes",
        "fetch_waiters",
        "log",
        "state",
        "topic_id",
        "topic_partition",
    )

    def __init__(self, topic_partition: TopicPartition, topic_id: uuid.UUID, log: Log, broker_id: BrokerId) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self.state = PartitionState(broker_id)
        self.fetch_waiters: set[FetchWaiter] = set()
        self._commit_waiters: list[tuple[Offset, int, Callable[[], None]]] = []
        self._commit_order = itertools.count()
        self._uncommitted_bytes = 0

    @property
    def high_watermark(self) -> Offset:
        return self.state.high_watermark

    @property
    def last_stable_offset(self) -> Offset:
        """What a read_committed reader may see: committed, and before the first open transaction."""
        return self.log.last_stable_offset(self.state.high_watermark)

    @property
    def offline(self) -> bool:
        """Whether its log directory has failed."""
        return self.log.directory.offline is not None

    @property
    def syncs_before_commit(self) -> bool:
        """`flush.messages=1`: a record is committed only when it is on the disk, and one sync serves all that came
        before it.
        """
        return self.log.config.flush_messages == 1

    def lead_or_follow(self, leadership: Leadership) -> None:
        durable = self.log.recovery_point if self.syncs_before_commit else self.log.log_end_offset
        committed = self.state.high_watermark
        if self.state.decide_role(leadership, durable_end=Offset(durable)):
            if self.state.role is Role.LEADER:
                self.log.leader_epochs.assign(leadership.leader_epoch, self.log.log_end_offset)
            self.wake_all()
        if self.state.high_watermark > committed:
            self._committed()

    def append_as_leader(self, batch: PreparedBatch, *, acks_all: bool, now_ms: int) -> Appended:
        state = self.state
        if state.role is not _LEADER:
            raise self.why_not_leader()
        log = self.log
        config = log.config
        if acks_all and config.min_insync_replicas > 1:
            state.check_in_sync(min(config.min_insync_replicas, len(state.leadership.replicas)))
        appended = log.append_as_leader(batch, leader_epoch=state.leadership.leader_epoch, now_ms=now_ms)
        if not appended.duplicate:
            self._uncommitted_bytes += batch.end - batch.start
            if config.flush_messages != 1 and state.local_end_moved(Offset(log.log_end_offset)):
                self._committed()
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
        """End a producer's transaction here, as safely as acks=all would write it."""
        state, log = self.state, self.log
        if state.role is not _LEADER:
            raise self.why_not_leader()
        state.check_in_sync(min(log.config.min_insync_replicas, len(state.leadership.replicas)))
        appended = log.append_marker(
            marker,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transaction_version=transaction_version,
            leader_epoch=state.leadership.leader_epoch,
            now_ms=now_ms,
        )
        self._uncommitted_bytes += log.size_between(appended.base_offset, log.log_end_offset)
        if not self.syncs_before_commit and state.local_end_moved(Offset(log.log_end_offset)):
            self._committed()
        return appended

    def durable_up_to(self, offset: Offset) -> None:
        """The leader's log is as durable as its settings ask for, up to `offset`: commit, and wake whoever waited for
        that.
        """
        if self.state.local_end_moved(offset):
            self._committed()

    def _committed(self) -> None:
        # Before anyone is told: whoever is told may append at once, and readers hear of that by a call within this one.
        size, self._uncommitted_bytes = self._uncommitted_bytes, 0
        if self.log.producers.decided:
            self.log.producers.high_watermark_moved(self.state.high_watermark)
        if self._commit_waiters:
            self._tell_committed()
        if self.fetch_waiters:
            for waiter in tuple(self.fetch_waiters):
                waiter.readable(self, size)

    def _tell_committed(self) -> None:
        waiters = self._commit_waiters
        while waiters and waiters[0][0] <= self.state.high_watermark:
            heapq.heappop(waiters)[2]()

    def when_committed(self, end_offset: Offset, callback: Callable[[], None]) -> None:
        """Call back once everything before `end_offset` is committed. The caller keeps its own time limit."""
        heapq.heappush(self._commit_waiters, (end_offset, next(self._commit_order), callback))

    def wake_all(self) -> None:
        """Something other than new data changed (leadership, deletion): every waiter must look again."""
        for waiter in tuple(self.fetch_waiters):
            waiter.readable(self, 0)
        if self.state.role is not Role.LEADER:
            waiters = self._commit_waiters.copy()
            self._commit_waiters.clear()  # in place: a call of `_committed` may be at work on it further up the stack
            for _, _, callback in waiters:
                callback()

    def why_not_leader(self) -> Refused:
        """Why a record that waited for its commit will not get it here."""
        if self.offline:
            return Refused(ErrorCode.KAFKA_STORAGE_ERROR, "the partition's log directory went offline")
        return Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this broker no longer leads the partition")

    def retire(self) -> None:
        """The partition leaves this broker: nobody may wait for it any longer."""
        self.state.resign()
        self.wake_all()
