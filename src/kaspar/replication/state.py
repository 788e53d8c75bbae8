"""The state of a partition on one broker, as a pure core: who leads, in which epoch, who is in sync, what is committed.

Rules:
- The high watermark is the smallest end offset among the maximal in-sync replicas (KIP-497) and those about to join
  them. It never goes back under one leader epoch, and does not advance while fewer than `min.insync.replicas` are in
  sync (KIP-966).
- The leader's own end counts only as far as its log is durable as its settings require (`flush.messages=1`: synced).
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
    """Those of the replicas that a reassignment adds (KIP-455)."""
    is_reassigning: bool = False


class FollowerFetch(NamedTuple):
    """A follower has everything before `offset`, and asks for more."""

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
    """Whether this broker leads and has the only replica: then everything that it has is committed."""
    leader_epoch_start_offset: Offset = NO_OFFSET
    """Where the log ended when this broker became leader; -1 if it does not lead."""
    pending: IsrProposal | None = None
    _local_end: Offset = START
    _followers: dict[BrokerId, Follower] = field(default_factory=dict)
    _now_ms: int = 0
    """When something last happened here. A replica about to join may hold the high watermark a little longer by it."""

    # -- what the controller decides ---------------------------------------------------------------------------------

    def decide_role(self, leadership: Leadership, *, log_end_offset: Offset, durable_end: Offset, now_ms: int) -> bool:
        """Apply what the controller decided; returns whether a leader epoch began here. An older decision changes
        nothing. With fewer in-sync replicas the high watermark may move: the caller checks.
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
        """Those in sync count as caught up when the epoch begins, as in Kafka's Replica.resetReplicaState."""
        leadership, known = self.leadership, self._followers
        self._followers = {
            replica: known.get(replica)
            or Follower(last_caught_up_ms=self._now_ms if replica in leadership.in_sync_replicas else None)
            for replica in leadership.replicas
            if replica != self.broker_id
        }

    def resign(self) -> None:
        """This broker no longer leads or follows the partition: it was deleted, its directory failed, or it may be
        fenced. The decision that made it leader or follower can be applied again.
        """
        self.role = Role.NONE
        self.commits_alone = False
        self.pending = None
        self.leader_epoch_start_offset = NO_OFFSET

    # -- the high watermark ------------------------------------------------------------------------------------------

    def local_end_moved(self, durable_end: Offset) -> bool:
        """The leader's own log is durable up to `durable_end`; returns whether the high watermark moved."""
        self._local_end = durable_end
        if self.commits_alone:
            if durable_end > self.high_watermark:
                self.high_watermark = durable_end
                return True
            return False
        return self._advance()

    def follow_high_watermark(self, leaders: Offset, log_end_offset: Offset) -> bool:
        """A follower has learned the leader's high watermark; returns whether its own moved. It never goes back: what
        an earlier leader had committed is committed.
        """
        known = min(leaders, log_end_offset)
        if self.role is not Role.FOLLOWER or known <= self.high_watermark:
            return False
        self.high_watermark = known
        return True

    def truncated(self, end: Offset, log_start_offset: Offset = START) -> None:
        """The log ends at `end`. If it starts anew further on, the leader had committed and deleted what was before."""
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
        """A follower that keeps up waits for the high watermark to stand still: so it stands still for it."""
        max_lag_ms = self.cluster.replica_lag_time_max_ms
        return follower.is_caught_up(self._local_end, self._now_ms, max_lag_ms) and follower.is_eligible(
            self.cluster.eligible_epoch(broker_id)
        )

    @property
    def is_high_watermark_behind(self) -> bool:
        """Whether a new leader does not know yet how far its log was committed when its epoch began (KIP-207)."""
        return self.high_watermark < self.leader_epoch_start_offset

    def low_watermark(self, log_start_offset: Offset) -> Offset:
        """Where the logs of the leader and of all followers that are up begin: Kafka's lowWatermarkIfLeader."""
        starts = (
            follower.log_start_offset
            for broker_id, follower in self._followers.items()
            if self.cluster.eligible_epoch(broker_id) is not None
        )
        return min((log_start_offset, *starts))

    # -- followers ---------------------------------------------------------------------------------------------------

    @property
    def followers(self) -> Mapping[BrokerId, Follower]:
        """Of a partition that this broker leads."""
        return self._followers

    def follower_fetched(self, fetch: FollowerFetch) -> bool:
        """Returns whether the high watermark moved. A fetch of a follower before its restart is refused: it may have
        had more than it has now (KIP-903). The caller has checked that the offset is in the leader's log.
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
        """All that may be in sync: committed, or asked for (KIP-497)."""
        in_sync = self.leadership.in_sync_replicas
        added = None if self.pending is None else self.pending.added
        return in_sync if added is None or added in in_sync else (*in_sync, added)

    @property
    def effective_min_isr(self) -> int:
        """A partition with fewer replicas than `min.insync.replicas` needs all of them in sync."""
        return min(self.min_insync_replicas, len(self.leadership.replicas))

    def maybe_expand(self, candidate: BrokerId) -> IsrProposal | None:
        """A proposal for a follower that has just fetched, if it is in sync and not counted as such. It is pending from
        now on, and the caller submits it.
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
        """As `maybe_expand`, without the followers that have fallen behind."""
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
        """The controller has refused a proposal. The high watermark may move: the caller calls `recheck`."""
        if self.pending is not proposal:
            return AfterRefusal.WAIT
        decided = after_refusal(code)
        if decided is AfterRefusal.REVERT:
            self.pending = None
        return decided

    def recheck(self) -> bool:
        """Whether the high watermark moves because of something else: another broker went down, settings changed."""
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
        """Before a read that a follower may serve too (KIP-392)."""
        if self.role is Role.NONE:
            raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this broker neither leads nor follows the partition")

    def check_follower(self, replica_id: int, *, knows_epoch: bool) -> None:
        """Before a fetch by a follower. One that knows our epoch may know of a newer assignment than we do."""
        if replica_id == self.broker_id or replica_id not in self.leadership.replicas:
            code = ErrorCode.UNKNOWN_LEADER_EPOCH if knows_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER
            raise Refused(code, f"broker {replica_id} does not follow this partition")

    def check_in_sync(self) -> None:
        """Before an acks=all append: are there enough in-sync replicas for `min.insync.replicas`?"""
        in_sync, wanted = len(self.leadership.in_sync_replicas), self.effective_min_isr
        if in_sync < wanted:
            raise Refused(
                ErrorCode.NOT_ENOUGH_REPLICAS, f"{in_sync} replicas are in sync, but min.insync.replicas is {wanted}"
            )

    def check_in_sync_after_append(self) -> None:
        """When an acks=all append is committed: are there still enough?"""
        in_sync, wanted = len(self.maximal_isr), self.effective_min_isr
        if in_sync < wanted:
            raise Refused(
                ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
                f"the records are written, but only {in_sync} replicas are in sync, and min.insync.replicas is "
                f"{wanted}",
            )
