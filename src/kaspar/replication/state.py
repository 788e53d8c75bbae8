"""The state of a partition on one broker, as a pure core: who leads, in which epoch, who is in sync, what is committed.

Rules:
- The high watermark is the smallest end offset among the maximal in-sync replicas (KIP-497) and those about to join
  them. It never decreases within one leader epoch, and does not advance while fewer than `min.insync.replicas` are in
  sync (KIP-966).
- The leader's own end counts only as far as its log is as durable as its settings require (`flush.messages=1`: synced).
- Within one leader epoch there is one leader; an older epoch never replaces a newer one.
- A follower joins the in-sync replicas once it has everything that is committed and everything that the leader had when
  its epoch began. It leaves when it has not caught up for `replica.lag.time.max.ms`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import NO_EPOCH, NO_OFFSET, BrokerId, LeaderEpoch, Offset
from kaspar.replication.followers import NO_BROKER_EPOCH, ClusterView, Follower, NoOtherBrokers
from kaspar.replication.in_sync import AfterRefusal, IsrProposal, after_refusal


class Role(Enum):
    NONE = "none"
    LEADER = "leader"
    FOLLOWER = "follower"


@dataclass(frozen=True, slots=True)
class Leadership:
    """What the controller decided about a partition."""

    leader: BrokerId
    leader_epoch: LeaderEpoch
    partition_epoch: int
    replicas: tuple[BrokerId, ...]
    in_sync_replicas: tuple[BrokerId, ...]
    adding_replicas: tuple[BrokerId, ...] = ()
    """The replicas that a reassignment adds (KIP-455)."""
    is_reassigning: bool = False


class FollowerFetch(NamedTuple):
    """A fetch by a follower, which has everything before `offset`."""

    follower: BrokerId
    broker_epoch: int
    offset: Offset
    log_start_offset: Offset
    leader_end_offset: Offset
    now_ms: int


START = Offset(0)
NO_LEADERSHIP = Leadership(BrokerId(-1), LeaderEpoch(-1), -1, (), ())
_ALONE = NoOtherBrokers()


@dataclass(slots=True)
class PartitionState:
    broker_id: BrokerId
    cluster: ClusterView = _ALONE
    high_watermark: Offset = START
    min_insync_replicas: int = 1
    leadership: Leadership = NO_LEADERSHIP
    role: Role = Role.NONE
    commits_alone: bool = False
    """Whether this broker leads and has the only replica: then all its records are committed."""
    leader_epoch_start_offset: Offset = NO_OFFSET
    """The end of the log when this broker became leader; -1 if it does not lead."""
    pending: IsrProposal | None = None
    _local_end: Offset = START
    _followers: dict[BrokerId, Follower] = field(default_factory=dict)
    _now_ms: int = 0
    """Time of the last event. It may let a replica about to join hold back the high watermark a little longer."""

    # -- what the controller decides ---------------------------------------------------------------------------------

    def decide_role(self, leadership: Leadership, *, log_end_offset: Offset, durable_end: Offset, now_ms: int) -> bool:
        """Apply what the controller decided; returns whether a leader epoch began here. An older decision changes
        nothing. With fewer in-sync replicas the high watermark may move: the caller checks that.
        """
        current = self.leadership
        epochs = (leadership.leader_epoch, leadership.partition_epoch)
        known = (current.leader_epoch, current.partition_epoch)
        resumes = self.role is Role.NONE
        if epochs < known or (epochs == known and not resumes):
            return False
        begins = leadership.leader_epoch > current.leader_epoch or resumes
        self.leadership = leadership
        self.role = Role.LEADER if leadership.leader == self.broker_id else Role.FOLLOWER
        self.commits_alone = self.role is Role.LEADER and leadership.replicas == (self.broker_id,)
        self.pending = None
        if self.role is not Role.LEADER:
            self._followers = {}
            self.leader_epoch_start_offset = NO_OFFSET
            return begins
        self._now_ms = now_ms
        if begins:
            self._followers = {}
            self.leader_epoch_start_offset = log_end_offset
        self._know_followers()
        self._local_end = durable_end
        self._advance()
        return begins

    def _know_followers(self) -> None:
        """Update the followers. Those in sync count as caught up when the epoch begins, as in Kafka's
        Replica.resetReplicaState.
        """
        leadership, known = self.leadership, self._followers
        self._followers = {
            replica: known.get(replica)
            or Follower(last_caught_up_ms=self._now_ms if replica in leadership.in_sync_replicas else None)
            for replica in leadership.replicas
            if replica != self.broker_id
        }

    def resign(self) -> None:
        """Stop leading or following the partition: it was deleted, its directory failed, or this broker may be fenced.
        The decision that made it leader or follower can be applied again.
        """
        self.role = Role.NONE
        self.commits_alone = False
        self.pending = None
        self.leader_epoch_start_offset = NO_OFFSET

    # -- the high watermark ------------------------------------------------------------------------------------------

    def local_end_moved(self, durable_end: Offset) -> bool:
        """Apply that the leader's own log is durable up to `durable_end`; returns whether the high watermark moved."""
        self._local_end = durable_end
        if self.commits_alone:
            if durable_end > self.high_watermark:
                self.high_watermark = durable_end
                return True
            return False
        return self._advance()

    def follow_high_watermark(self, leaders: Offset, log_end_offset: Offset) -> bool:
        """Apply the leader's high watermark on a follower; returns whether its own moved. It never decreases, because
        records that an earlier leader had committed stay committed.
        """
        known = min(leaders, log_end_offset)
        if self.role is not Role.FOLLOWER or known <= self.high_watermark:
            return False
        self.high_watermark = known
        return True

    def truncated(self, end: Offset, log_start_offset: Offset = START) -> None:
        """Apply a truncation to `end`. If the log starts over above the high watermark, the leader had committed and
        deleted the records before.
        """
        self._local_end = min(self._local_end, end)
        self.high_watermark = max(min(self.high_watermark, end), log_start_offset)

    def _advance(self) -> bool:
        if self.role is not Role.LEADER or len(self.leadership.in_sync_replicas) < self.effective_min_isr:
            return False
        committed = self._local_end
        maximal = self.maximal_isr
        for broker_id, follower in self._followers.items():
            if follower.log_end_offset < committed and (
                broker_id in maximal or self._is_about_to_join(broker_id, follower)
            ):
                committed = follower.log_end_offset
        if committed <= self.high_watermark:
            return False
        self.high_watermark = committed
        return True

    def _is_about_to_join(self, broker_id: BrokerId, follower: Follower) -> bool:
        """Whether a follower that keeps up is about to join. The high watermark waits for it: otherwise the follower,
        always a little behind, might never reach it.
        """
        max_lag_ms = self.cluster.replica_lag_time_max_ms
        return follower.is_caught_up(self._local_end, self._now_ms, max_lag_ms) and follower.is_eligible(
            self.cluster.eligible_epoch(broker_id)
        )

    @property
    def is_high_watermark_behind(self) -> bool:
        """Whether a new leader does not know yet how far its log was committed when its epoch began (KIP-207)."""
        return self.high_watermark < self.leader_epoch_start_offset

    def low_watermark(self, log_start_offset: Offset) -> Offset:
        """The smallest log start offset of the leader and all followers that are up: Kafka's lowWatermarkIfLeader."""
        starts = (
            follower.log_start_offset
            for broker_id, follower in self._followers.items()
            if self.cluster.eligible_epoch(broker_id) is not None
        )
        return min((log_start_offset, *starts))

    # -- followers ---------------------------------------------------------------------------------------------------

    @property
    def followers(self) -> Mapping[BrokerId, Follower]:
        """The followers of a partition that this broker leads."""
        return self._followers

    def follower_fetched(self, fetch: FollowerFetch) -> bool:
        """Apply a fetch; returns whether the high watermark moved. Refuses a fetch that the follower sent before a
        restart, because its log may have had more records then (KIP-903). The caller has checked that the offset is in
        the log.
        """
        registered = self.cluster.eligible_epoch(fetch.follower)
        if fetch.broker_epoch != NO_BROKER_EPOCH and registered is not None and registered > fetch.broker_epoch:
            raise Refused(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"broker {fetch.follower} fetches in epoch {fetch.broker_epoch}, but is up in epoch {registered}",
            )
        follower = self._followers[fetch.follower]
        follower.fetched(
            fetch.offset,
            log_start_offset=fetch.log_start_offset,
            leader_end_offset=fetch.leader_end_offset,
            broker_epoch=fetch.broker_epoch,
            now_ms=fetch.now_ms,
        )
        self._now_ms = fetch.now_ms
        return self._advance()

    # -- in-sync replicas --------------------------------------------------------------------------------------------

    @property
    def maximal_isr(self) -> tuple[BrokerId, ...]:
        """All replicas that may be in sync: committed, or requested (KIP-497)."""
        in_sync = self.leadership.in_sync_replicas
        added = None if self.pending is None else self.pending.added
        return in_sync if added is None or added in in_sync else (*in_sync, added)

    @property
    def effective_min_isr(self) -> int:
        """The required number of in-sync replicas: `min.insync.replicas`, or all if there are fewer replicas."""
        return min(self.min_insync_replicas, len(self.leadership.replicas))

    def maybe_expand(self, candidate: BrokerId) -> IsrProposal | None:
        """Propose to add a follower that has just fetched, if it is in sync but not in the in-sync replicas. The
        proposal is pending from now on, and the caller submits it.
        """
        if self.role is not Role.LEADER or self.pending is not None or candidate in self.leadership.in_sync_replicas:
            return None
        follower = self._followers.get(candidate)
        if (
            follower is None
            or follower.log_end_offset < max(self.high_watermark, self.leader_epoch_start_offset)
            or not follower.is_eligible(self.cluster.eligible_epoch(candidate))
        ):
            return None
        return self._propose((*self.leadership.in_sync_replicas, candidate), candidate)

    def maybe_shrink(self, log_end_offset: Offset, now_ms: int) -> IsrProposal | None:
        """Propose to remove the followers that have fallen behind. Works like `maybe_expand`."""
        if self.role is not Role.LEADER:
            return None
        self._now_ms = now_ms
        if self.pending is not None:
            return None
        in_sync = self.leadership.in_sync_replicas
        max_lag_ms = self.cluster.replica_lag_time_max_ms
        left = tuple(
            replica
            for replica in in_sync
            if replica == self.broker_id or self._followers[replica].is_caught_up(log_end_offset, now_ms, max_lag_ms)
        )
        return None if left == in_sync else self._propose(left, None)

    def _propose(self, isr: tuple[BrokerId, ...], added: BrokerId | None) -> IsrProposal:
        leadership = self.leadership
        epochs = tuple(NO_BROKER_EPOCH if one == self.broker_id else self._followers[one].broker_epoch for one in isr)
        self.pending = IsrProposal(leadership.leader_epoch, leadership.partition_epoch, isr, epochs, added)
        return self.pending

    def isr_refused(self, proposal: IsrProposal, code: ErrorCode) -> AfterRefusal:
        """Handle a proposal that the controller refused. The high watermark may move: the caller calls `recheck`."""
        if self.pending is not proposal:
            return AfterRefusal.WAIT
        decided = after_refusal(code)
        if decided is AfterRefusal.REVERT:
            self.pending = None
        return decided

    def recheck(self) -> bool:
        """Recompute the high watermark after other brokers or settings changed; returns whether it moved."""
        return self._advance()

    # -- checks of requests ------------------------------------------------------------------------------------------

    def check_epoch(self, requested: int) -> None:
        """Compare the leader epoch in a request (-1: none) with the current one (KIP-320)."""
        if requested in (NO_EPOCH, self.leadership.leader_epoch):
            return
        if requested < self.leadership.leader_epoch:
            raise Refused(
                ErrorCode.FENCED_LEADER_EPOCH,
                f"the leader epoch {requested} in the request is older than the current {self.leadership.leader_epoch}",
            )
        raise Refused(
            ErrorCode.UNKNOWN_LEADER_EPOCH,
            f"the leader epoch {requested} in the request is newer than the current {self.leadership.leader_epoch}",
        )

    def check_leader(self) -> None:
        if self.role is not Role.LEADER:
            raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this broker does not lead the partition")

    def check_replica(self) -> None:
        """Check before a read that a follower may serve too (KIP-392)."""
        if self.role is Role.NONE:
            raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this broker neither leads nor follows the partition")

    def check_follower(self, replica_id: int, *, knows_epoch: bool) -> None:
        """Check a fetch by a follower. One that knows our epoch may know of a newer assignment than we do."""
        if replica_id == self.broker_id or replica_id not in self.leadership.replicas:
            code = ErrorCode.UNKNOWN_LEADER_EPOCH if knows_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER
            raise Refused(code, f"broker {replica_id} does not follow this partition")

    def check_in_sync(self) -> None:
        """Check before an acks=all append that there are enough in-sync replicas for `min.insync.replicas`."""
        in_sync, wanted = len(self.leadership.in_sync_replicas), self.effective_min_isr
        if in_sync < wanted:
            raise Refused(
                ErrorCode.NOT_ENOUGH_REPLICAS, f"{in_sync} replicas are in sync, but min.insync.replicas is {wanted}"
            )

    def check_in_sync_after_append(self) -> None:
        """Check, when an acks=all append is committed, that there are still enough in-sync replicas."""
        in_sync, wanted = len(self.maximal_isr), self.effective_min_isr
        if in_sync < wanted:
            raise Refused(
                ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
                f"the records are written, but only {in_sync} replicas are in sync, and min.insync.replicas is "
                f"{wanted}",
            )
