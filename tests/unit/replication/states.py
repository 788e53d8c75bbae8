"""Partition states of three replicas, and the brokers that they know."""

from kaspar.base.ids import BrokerId, LeaderEpoch, Offset
from kaspar.replication.state import FollowerFetch, Leadership, PartitionState

ME = BrokerId(1)
OTHER = BrokerId(2)
THIRD = BrokerId(3)
LAG_MS = 1000


class Cluster:
    """The brokers that are up, each in an epoch."""

    replica_lag_time_max_ms = LAG_MS

    def __init__(self) -> None:
        self.epochs: dict[BrokerId, int] = {ME: 1, OTHER: 1, THIRD: 1}

    def eligible_epoch(self, broker_id: BrokerId) -> int | None:
        return self.epochs.get(broker_id)


def leadership(
    *, leader: BrokerId = ME, epoch: int = 0, partition_epoch: int = 0, in_sync: tuple[BrokerId, ...] = (ME,)
) -> Leadership:
    return Leadership(leader, LeaderEpoch(epoch), partition_epoch, (ME, OTHER, THIRD), in_sync)


def decide(state: PartitionState, decided: Leadership, *, end: int = 0, now_ms: int = 0) -> bool:
    return state.decide_role(decided, log_end_offset=Offset(end), durable_end=Offset(end), now_ms=now_ms)


def leading(*in_sync: BrokerId, end: int = 0, epoch: int = 0, cluster: Cluster | None = None) -> PartitionState:
    state = PartitionState(ME, cluster or Cluster())
    decide(state, leadership(in_sync=in_sync, epoch=epoch), end=end)
    return state


def fetched(
    state: PartitionState,
    follower: BrokerId,
    offset: int,
    *,
    leader_end: int = 10,
    broker_epoch: int = 1,
    now_ms: int = 0,
) -> bool:
    """Whether the high watermark moved."""
    return state.follower_fetched(
        FollowerFetch(follower, broker_epoch, Offset(offset), Offset(0), Offset(leader_end), now_ms)
    )
