"""The coordinators as the metrics page sees them: numbers that another thread reads in one step.

They are zero if a coordinator has not been created.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from kaspar.broker.coordination.coordinators import Coordinators

CLASSIC = "classic"


@dataclass(frozen=True, slots=True)
class GroupNumbers:
    """Implements `metrics.view.GroupsView`."""

    active_count: int = 0
    loading_count: int = 0
    waiting_count: int = 0
    load_times_ms: list[float] = field(default_factory=list)
    classic_states: Mapping[str, int] = field(default_factory=dict)
    consumer_states: Mapping[str, int] = field(default_factory=dict)
    offset_count: int = 0
    offset_commits: int = 0
    offset_expirations: int = 0
    offset_deletions: int = 0
    classic_rebalances: int = 0
    consumer_rebalances: int = 0

    @classmethod
    def of(cls, coordinators: Coordinators) -> "GroupNumbers":
        groups = coordinators.made_groups
        if groups is None:
            return cls()
        shards = groups.runtime.active_shards().values()
        classic: Counter[str] = Counter()
        consumer: Counter[str] = Counter()
        for shard in shards:
            for group in tuple(shard.groups.values()):
                (classic if group.kind.value == CLASSIC else consumer)[group.state_name] += 1
        counts = groups.counts
        return cls(
            active_count=len(shards),
            loading_count=groups.runtime.loading_count,
            waiting_count=groups.runtime.waiting_count,
            load_times_ms=groups.runtime.load_times.recent_ms(),
            classic_states=classic,
            consumer_states=consumer,
            offset_count=sum(shard.offsets.count for shard in shards),
            offset_commits=counts.offset_commits,
            offset_expirations=counts.offset_expirations,
            offset_deletions=counts.offset_deletions,
            classic_rebalances=counts.classic_rebalances,
            consumer_rebalances=counts.consumer_rebalances,
        )


@dataclass(frozen=True, slots=True)
class TransactionNumbers:
    """Implements `metrics.view.TransactionsView`."""

    active_count: int = 0
    loading_count: int = 0
    load_times_ms: list[float] = field(default_factory=list)
    states: Mapping[str, int] = field(default_factory=dict)
    prepared_count: int = 0
    oldest_prepared_ms: int = 0
    waiting_markers: int = 0

    @classmethod
    def of(cls, coordinators: Coordinators) -> "TransactionNumbers":
        transactions = coordinators.made_transactions
        if transactions is None:
            return cls()
        shards = transactions.runtime.active_shards().values()
        prepared_count, oldest_prepared_ms = transactions.prepared()
        return cls(
            active_count=len(shards),
            loading_count=transactions.runtime.loading_count,
            load_times_ms=transactions.runtime.load_times.recent_ms(),
            states=Counter(
                transaction.state.value for shard in shards for transaction in tuple(shard.transactions.values())
            ),
            prepared_count=prepared_count,
            oldest_prepared_ms=oldest_prepared_ms,
            waiting_markers=transactions.markers.waiting_count,
        )
