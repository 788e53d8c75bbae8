"""What the leader of a partition knows of each follower, from its fetches (Kafka's Replica and ReplicaState).

A follower that fetches from an offset has everything before it. It is caught up when it has fetched everything that the
leader had: when it fetches from the leader's end, or from what was the leader's end at its previous fetch.
"""

from dataclasses import dataclass
from typing import Protocol

from kaspar.base.ids import NO_OFFSET, BrokerId, Offset

NO_BROKER_EPOCH = -1


class ClusterView(Protocol):
    """What a leader needs to know about the other brokers."""

    @property
    def replica_lag_time_max_ms(self) -> int: ...

    def eligible_epoch(self, broker_id: BrokerId) -> int | None:
        """The epoch of a broker that may join the in-sync replicas. None if it is down, fenced or shutting down."""
        ...


class NoOtherBrokers:
    """The view of a broker that is the only one."""

    replica_lag_time_max_ms = 30_000

    def eligible_epoch(self, broker_id: BrokerId) -> int | None:
        return None


@dataclass(slots=True)
class Follower:
    """The state of one follower. All times are of the steady clock."""

    log_end_offset: Offset = NO_OFFSET
    log_start_offset: Offset = NO_OFFSET
    last_caught_up_ms: int | None = None
    """None if it has not caught up under this leader."""
    last_fetch_ms: int | None = None
    last_fetch_leader_end_offset: Offset = NO_OFFSET
    broker_epoch: int = NO_BROKER_EPOCH
    """The broker epoch of its last fetch (KIP-903)."""

    def fetched(
        self, offset: Offset, *, log_start_offset: Offset, leader_end_offset: Offset, broker_epoch: int, now_ms: int
    ) -> None:
        if offset >= leader_end_offset:
            self.last_caught_up_ms = now_ms
        elif self.last_fetch_ms is not None and offset >= self.last_fetch_leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms or self.last_fetch_ms, self.last_fetch_ms)
        self.log_end_offset = offset
        self.log_start_offset = log_start_offset
        self.last_fetch_leader_end_offset = max(leader_end_offset, self.last_fetch_leader_end_offset)
        self.last_fetch_ms = now_ms
        self.broker_epoch = broker_epoch

    def is_caught_up(self, leader_end_offset: Offset, now_ms: int, max_lag_ms: int) -> bool:
        return self.log_end_offset == leader_end_offset or (
            self.last_caught_up_ms is not None and now_ms - self.last_caught_up_ms <= max_lag_ms
        )

    def is_eligible(self, registered_epoch: int | None) -> bool:
        """Whether it may join the in-sync replicas: its last fetch must be from the broker process that is up now,
        since its log may have had more records before a restart (KIP-903).
        """
        return registered_epoch is not None and self.broker_epoch in (registered_epoch, NO_BROKER_EPOCH)
