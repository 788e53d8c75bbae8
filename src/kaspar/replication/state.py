"""The state of one partition on one broker, as a pure core: who leads, in which epoch, what is committed.

Rules:
- The high watermark is the smallest end offset among the in-sync replicas, and never goes back under one leader epoch.
- The leader's own end counts only as far as its log is durable in the sense its settings ask for (`flush.messages=1`:
  synced).
- Within one leader epoch there is one leader; an older epoch never replaces a newer one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import NO_EPOCH, BrokerId, LeaderEpoch, Offset


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


START = Offset(0)
NO_LEADERSHIP = Leadership(BrokerId(-1), LeaderEpoch(-1), -1, (), ())


@dataclass(slots=True)
class PartitionState:
    broker_id: BrokerId
    leadership: Leadership = NO_LEADERSHIP
    role: Role = Role.NONE
    high_watermark: Offset = START
    commits_alone: bool = False
    """Whether this broker leads and is the only replica in sync: then what it has is committed."""
    _local_end: Offset = START
    _follower_ends: dict[BrokerId, Offset] = field(default_factory=dict)

    def decide_role(self, leadership: Leadership, *, durable_end: Offset) -> bool:
        """Take over what the controller decided; says whether the leader epoch moved. An older decision changes
        nothing. With fewer replicas in sync the high watermark may move: the caller looks.
        """
        current = self.leadership
        if (leadership.leader_epoch, leadership.partition_epoch) <= (current.leader_epoch, current.partition_epoch):
            return False
        new_epoch = leadership.leader_epoch > current.leader_epoch
        self.leadership = leadership
        self.role = Role.LEADER if leadership.leader == self.broker_id else Role.FOLLOWER
        self.commits_alone = self.role is Role.LEADER and leadership.in_sync_replicas == (self.broker_id,)
        if new_epoch:
            self._follower_ends = {}
        if self.role is Role.LEADER:
            self._local_end = durable_end
            self._advance()
        return new_epoch

    def resign(self) -> None:
        """The partition is no longer ours to lead or follow: it was deleted, or its directory failed."""
        self.role = Role.NONE
        self.commits_alone = False

    def local_end_moved(self, durable_end: Offset) -> bool:
        """The leader's own log is durable up to here; says whether the high watermark moved."""
        self._local_end = durable_end
        if self.commits_alone and durable_end > self.high_watermark:
            self.high_watermark = durable_end
            return True
        return self._advance()

    def follower_fetched(self, follower: BrokerId, end: Offset) -> bool:
        """A follower asked for `end`, so it has everything before it; says whether the high watermark moved."""
        self._follower_ends[follower] = end
        return self._advance()

    def truncated(self, end: Offset) -> None:
        self._local_end = min(self._local_end, end)
        self.high_watermark = min(self.high_watermark, end)

    def _advance(self) -> bool:
        if self.role is not Role.LEADER:
            return False
        ends = [
            self._local_end if replica == self.broker_id else self._follower_ends.get(replica, Offset(-1))
            for replica in self.leadership.in_sync_replicas
        ]
        committed = min(ends, default=self._local_end)
        if committed <= self.high_watermark:
            return False
        self.high_watermark = committed
        return True

    @property
    def follower_ends(self) -> Mapping[BrokerId, Offset]:
        return self._follower_ends

    def check_epoch(self, requested: int) -> None:
        """A client says which leader epoch it knows (-1: none); Kafka's answers when it differs from ours."""
        if requested in (NO_EPOCH, self.leadership.leader_epoch):
            return
        if requested < self.leadership.leader_epoch:
            raise Refused(
                ErrorCode.FENCED_LEADER_EPOCH,
                f"the request knows leader epoch {requested}, which is older than {self.leadership.leader_epoch}",
            )
        raise Refused(
            ErrorCode.UNKNOWN_LEADER_EPOCH,
            f"the request knows leader epoch {requested}, which is newer than {self.leadership.leader_epoch}",
        )

    def check_leader(self) -> None:
        if self.role is not Role.LEADER:
            raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this broker does not lead the partition")

    def check_follower(self, replica_id: int, *, knows_epoch: bool) -> None:
        """Before a fetch in a replica's name. One that knows our epoch may have heard of a newer assignment than we."""
        if replica_id == self.broker_id or replica_id not in self.leadership.replicas:
            code = ErrorCode.UNKNOWN_LEADER_EPOCH if knows_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER
            raise Refused(code, f"broker {replica_id} does not follow this partition")

    def check_in_sync(self, min_insync_replicas: int) -> None:
        """Before an acks=all append: are there enough in-sync replicas to promise what the topic asks for?"""
        in_sync = len(self.leadership.in_sync_replicas)
        if in_sync < min_insync_replicas:
            raise Refused(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{in_sync} replicas are in sync, the topic asks for {min_insync_replicas}",
            )
