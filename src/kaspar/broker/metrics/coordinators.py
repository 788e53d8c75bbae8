"""The metrics of the group and transaction coordinators.

Kafka has these in two styles. Those of `kafka.coordinator.*` are named like all others. Those of its newer coordinators
have types like `group-coordinator-metrics`, whose names the JMX exporter only converts to snake case.
"""

from collections.abc import Callable, Iterable
from typing import Final

from kaspar.base.exposition import Family, Kind, Sample, labels, summary_samples
from kaspar.broker.metrics.families import BrokerFamily, Scrape, one, own
from kaspar.broker.metrics.view import CoordinatorView, GroupsView

_GROUP_METRICS: Final = "group-coordinator-metrics"
_TRANSACTION_METRICS: Final = "transaction-coordinator-metrics"
_CLASSIC_STATES: Final = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty")
_CONSUMER_STATES: Final = ("Empty", "Assigning", "Reconciling", "Stable", "Dead")


def _newer(
    of_type: str,
    attribute: str,
    text: str,
    samples: Callable[[Scrape], Iterable[Sample]],
    *,
    label: str = "",
    kind: Kind = Kind.GAUGE,
) -> BrokerFamily:
    name = f"kafka_server_{of_type}_{attribute}".replace("-", "_")
    mbean = f"kafka.server:type={of_type}{f',{label}=*' if label else ''} {attribute}"
    return Family(name, kind, text, samples, (label,) if label else (), mbean)


def _counted(attribute: str, text: str, read: Callable[[GroupsView], int]) -> BrokerFamily:
    return _newer(_GROUP_METRICS, attribute, text, lambda scrape: [("", read(scrape.groups))], kind=Kind.COUNTER)


def _classic_family(kafka_name: str, text: str, read: Callable[[GroupsView], int]) -> BrokerFamily:
    return one(
        f"kafka.coordinator.group:type=GroupMetadataManager,name={kafka_name}", text, lambda scrape: read(scrape.groups)
    )


def _in_state(state: str) -> Callable[[GroupsView], int]:
    return lambda groups: groups.classic_states.get(state, 0)


def _partitions(of_type: str, coordinator: Callable[[Scrape], CoordinatorView]) -> tuple[BrokerFamily, ...]:
    """The metrics that Kafka has for every coordinator; for the transaction coordinator it only has the load times."""
    return (
        _newer(
            of_type,
            "num-partitions",
            "Partitions of the coordinator's internal topic that this broker coordinates, or is loading.",
            lambda scrape: [
                (labels(state="loading"), coordinator(scrape).loading_count),
                (labels(state="active"), coordinator(scrape).active_count),
            ],
            label="state",
        ),
        _newer(
            of_type,
            "partition-load-time-max",
            "The maximum time to load one of those partitions in the last 30 seconds, in ms.",
            lambda scrape: [("", max(coordinator(scrape).load_times_ms, default=0.0))],
        ),
        _newer(
            of_type,
            "partition-load-time-avg",
            "The average time to load one of those partitions in the last 30 seconds, in ms.",
            lambda scrape: [("", _mean(coordinator(scrape).load_times_ms))],
        ),
    )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


GROUPS: Final[tuple[BrokerFamily, ...]] = (
    _classic_family("NumGroups", "Groups of the classic protocol.", lambda groups: sum(groups.classic_states.values())),
    *(
        _classic_family(
            f"NumGroups{state}",
            f"Groups of the classic protocol in the state {state}."
            + (" Always 0: a group is gone when it is dead." if state == "Dead" else ""),
            _in_state(state),
        )
        for state in _CLASSIC_STATES
    ),
    _classic_family("NumOffsets", "Committed offsets, of all groups.", lambda groups: groups.offset_count),
    _newer(
        _GROUP_METRICS,
        "group-count",
        "Groups, by the protocol that they use.",
        lambda scrape: [
            (labels(protocol="classic"), sum(scrape.groups.classic_states.values())),
            (labels(protocol="consumer"), sum(scrape.groups.consumer_states.values())),
        ],
        label="protocol",
    ),
    _newer(
        _GROUP_METRICS,
        "consumer-group-count",
        "Groups of the new protocol, by their state.",
        lambda scrape: [
            (labels(state=state.lower()), scrape.groups.consumer_states.get(state, 0)) for state in _CONSUMER_STATES
        ],
        label="state",
    ),
    _counted("offset-commit-count", "Offsets that were committed.", lambda groups: groups.offset_commits),
    _counted("offset-expiration-count", "Committed offsets that expired.", lambda groups: groups.offset_expirations),
    _counted(
        "offset-deletion-count",
        "Committed offsets that were deleted by request, also with their group.",
        lambda groups: groups.offset_deletions,
    ),
    _counted(
        "group-completed-rebalance-count",
        "Rebalances of classic groups that were completed.",
        lambda groups: groups.classic_rebalances,
    ),
    _counted(
        "consumer-group-rebalance-count",
        "Rebalances of groups of the new protocol: the number of epochs started.",
        lambda groups: groups.consumer_rebalances,
    ),
    *_partitions(_GROUP_METRICS, lambda scrape: scrape.groups),
    _newer(
        _GROUP_METRICS,
        "thread-idle-ratio-avg",
        "The fraction of the last minute, 0 to 1, in which the event loop's thread used no CPU. It is the "
        "coordinator's thread.",
        lambda scrape: [("", scrape.metrics.stalls.idle_fraction())],
    ),
    own(
        "kaspar_group_requests_waiting",
        Kind.GAUGE,
        "Requests that wait in the group coordinator, mostly of members that wait for others to join.",
        lambda scrape: scrape.groups.waiting_count,
    ),
    own(
        "kaspar_coordinator_timers",
        Kind.GAUGE,
        "Timers that coordinators have set, of groups and of transactions.",
        lambda scrape: scrape.broker.timer_count(),
    ),
)

TRANSACTIONS: Final[tuple[BrokerFamily, ...]] = (
    Family(
        "kaspar_transactional_ids",
        Kind.GAUGE,
        "Transactional ids that this broker coordinates, by the state of their transaction.",
        lambda scrape: [(labels(state=state), count) for state, count in sorted(scrape.transactions.states.items())],
        ("state",),
    ),
    own(
        "kaspar_prepared_transactions",
        Kind.GAUGE,
        "Open transactions without a timeout, which wait for their owner's decision.",
        lambda scrape: scrape.transactions.prepared_count,
    ),
    own(
        "kaspar_prepared_transaction_oldest_age_seconds",
        Kind.GAUGE,
        "How long ago the oldest of them began. Until it is decided, no read_committed reader gets past it.",
        lambda scrape: scrape.transactions.oldest_prepared_ms / 1000,
    ),
    one(
        "kafka.coordinator.transaction:type=TransactionMarkerChannelManager,name=UnknownDestinationQueueSize",
        "Markers of decided transactions that could not be written to a partition yet and will be retried.",
        lambda scrape: scrape.transactions.waiting_markers,
    ),
    one(
        "kafka.server:type=ReplicaManager,name=PartitionsWithLateTransactionsCount",
        "Partitions with a hanging transaction: one that has been open for five minutes longer than "
        "transaction.max.timeout.ms. kafka-transactions finds and aborts it.",
        lambda scrape: sum(partition.has_late_transaction for _, partition in scrape.partitions),
    ),
    *_partitions(_TRANSACTION_METRICS, lambda scrape: scrape.transactions),
    Family(
        "kafka_server_addpartitionstotxnmanager_verificationtimems",
        Kind.SUMMARY,
        "How long a leader waited for confirmation that a partition belongs to a transaction, in ms. "
        "Quantiles are of the last one to two minutes.",
        lambda scrape: summary_samples(scrape.metrics.verification_time.distribution(), factor=1000),
        kafka_name="kafka.server:type=AddPartitionsToTxnManager,name=VerificationTimeMs",
    ),
    Family(
        "kafka_server_addpartitionstotxnmanager_verificationfailurerate_count",
        Kind.COUNTER,
        "Partitions that do not belong to the transaction, or could not be verified.",
        lambda scrape: [("", scrape.metrics.verification_failures.value)],
        kafka_name="kafka.server:type=AddPartitionsToTxnManager,name=VerificationFailureRate",
    ),
)
