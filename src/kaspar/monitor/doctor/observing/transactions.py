"""Long-running and hanging transactions.

The high watermark and the last stable offset of every partition are compared; only where they differ is a transaction
open. A cluster without __transaction_state has never had a transaction, so it is not queried.
"""

from collections.abc import Collection, Sequence
from typing import Final

from kaspar.base.errors import Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.offsets import OffsetSpec, list_offsets
from kaspar.client.admin.producers import describe_producers
from kaspar.client.admin.session import Admin
from kaspar.client.admin.transactions import TransactionDescription, describe_transactions, list_transactions
from kaspar.client.offsets import READ_COMMITTED
from kaspar.monitor.doctor.observation import HangingTransactionSeen, OpenTransactionSeen
from kaspar.tools.transactions.hanging import OpenTransaction, hanging

_MOST_PARTITIONS: Final = 500
"""The maximum number of partitions whose producers are requested. Further ones with open transactions are skipped."""
_AT_ONCE: Final = 1000
"""The maximum number of partitions in one request to each leader, which serves nothing else meanwhile."""
_OPEN: Final = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort"})


def look_at_open_transactions(admin: Admin, longer_than_ms: int) -> tuple[OpenTransactionSeen, ...]:
    listed = list_transactions(admin, duration_filter_ms=longer_than_ms)
    described = describe_transactions(admin, [each.transactional_id for each in listed if each.state in _OPEN])
    return tuple(
        OpenTransactionSeen(each.transactional_id, each.state, each.start_time_ms, each.timeout_ms, each.partitions)
        for each in described.values()
        if isinstance(each, TransactionDescription) and each.start_time_ms is not None
    )


def look_for_hanging(
    admin: Admin, partitions: Sequence[TopicPartition], silent_since_ms: int
) -> tuple[HangingTransactionSeen, ...]:
    """Find hanging transactions, by the rule of kafka-transactions find-hanging."""
    blocked: list[TopicPartition] = []
    for start in range(0, len(partitions), _AT_ONCE):
        blocked += _blocked(admin, partitions[start : start + _AT_ONCE])
    blocked = blocked[:_MOST_PARTITIONS]
    if not blocked:
        return ()
    candidates = [
        OpenTransaction(where, each)
        for where, producers in describe_producers(admin, blocked).items()
        if not isinstance(producers, Refused)
        for each in producers
        if each.transaction_start_offset is not None and each.last_timestamp < silent_since_ms
    ]
    if not candidates:
        return ()
    listed = list_transactions(admin, producer_ids={each.producer.producer_id for each in candidates})
    ids = {each.producer_id: each.transactional_id for each in listed}
    described = describe_transactions(admin, ids.values())
    expected = {
        producer_id: found.partitions
        for producer_id, transactional_id in ids.items()
        if isinstance(found := described[transactional_id], TransactionDescription)
    }
    return tuple(
        HangingTransactionSeen(each.partition, each.producer.producer_id, each.producer.last_timestamp)
        for each in hanging(candidates, expected)
    )


def _blocked(admin: Admin, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
    """The partitions whose last stable offset is below the high watermark. The last stable offset is read second, so
    that a transaction that ends in between is not reported as open."""
    wanted = dict.fromkeys(partitions, OffsetSpec.LATEST.value)
    ends = list_offsets(admin, wanted)
    stable = list_offsets(admin, wanted, isolation_level=READ_COMMITTED)
    found = []
    for where in partitions:
        end, stable_end = ends[where], stable[where]
        if not isinstance(end, Refused) and not isinstance(stable_end, Refused) and stable_end.offset < end.offset:
            found.append(where)
    return found
