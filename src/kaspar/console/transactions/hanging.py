"""Searches for hanging transactions by the rules of `kafka-transactions find-hanging` (KIP-664).

The search requests the producers of every partition from its leader, so it runs only on request. Topics whose records
the caller may not read are skipped and counted.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.producers import describe_producers
from kaspar.client.admin.session import Admin
from kaspar.client.admin.topics import describe_topics_by_metadata
from kaspar.client.admin.transactions import describe_transactions, list_transactions
from kaspar.console.problems import NotThere
from kaspar.tools.transactions.hanging import OpenTransaction, hanging

_AT_ONCE: Final = 500
"""The maximum number of partitions in one request."""


@dataclass(frozen=True, slots=True)
class HangingTransaction:
    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None
    """None if no transaction of the producer has ended on this partition."""
    start_offset: int
    """The offset at which read_committed readers wait."""
    last_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class HangingReport:
    found: tuple[HangingTransaction, ...]
    partitions: int
    """The number of partitions that were searched."""
    left_out: int
    """The number of partitions that were not searched, because the caller may not or because they have no leader."""


def search(admin: Admin, *, topic: str | None, silent_since_ms: int) -> HangingReport:
    """Find hanging transactions. One with a record since then may still end by itself. Raises Refused and NotThere."""
    partitions, without_leader = _partitions(admin, topic)
    candidates: list[OpenTransaction] = []
    left_out = without_leader
    for start in range(0, len(partitions), _AT_ONCE):
        open_ones, refused = _open(admin, partitions[start : start + _AT_ONCE])
        candidates += [each for each in open_ones if each.producer.last_timestamp < silent_since_ms]
        left_out += refused
    expected = expected_markers(admin, {each.producer.producer_id for each in candidates}) if candidates else {}
    found = tuple(map(_view, sorted(hanging(candidates, expected), key=lambda each: each.partition)))
    return HangingReport(found, len(partitions) - left_out + without_leader, left_out)


def _partitions(admin: Admin, topic: str | None) -> tuple[list[TopicPartition], int]:
    """The partitions with a leader, and the number of those without."""
    described = describe_topics_by_metadata(admin, None if topic is None else [topic])
    found: list[TopicPartition] = []
    without_leader = 0
    for name, each in described.items():
        if isinstance(each, Refused):
            if topic is not None:
                raise NotThere(f"There is no topic {topic}, or you may not see it.")
            continue
        found += [TopicPartition(name, partition.partition) for partition in each.partitions if partition.leader >= 0]
        without_leader += sum(partition.leader < 0 for partition in each.partitions)
    return found, without_leader


def _open(admin: Admin, partitions: Sequence[TopicPartition]) -> tuple[list[OpenTransaction], int]:
    """The open transactions of these partitions, and the number of partitions that were refused."""
    found: list[OpenTransaction] = []
    refused = 0
    for where, producers in describe_producers(admin, partitions).items():
        if isinstance(producers, Refused):
            refused += 1
        else:
            found += [OpenTransaction(where, each) for each in producers if each.transaction_start_offset is not None]
    return found, refused


def expected_markers(admin: Admin, producer_ids: Collection[int]) -> dict[int, tuple[TopicPartition, ...]]:
    """The partitions to which coordinators still have to write markers, by producer id."""
    ids = {each.producer_id: each.transactional_id for each in list_transactions(admin, producer_ids=producer_ids)}
    described = describe_transactions(admin, ids.values())
    expected: dict[int, tuple[TopicPartition, ...]] = {}
    for producer_id, transactional_id in ids.items():
        found = described[transactional_id]
        if not isinstance(found, Refused):
            expected[producer_id] = found.partitions
        elif found.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise found  # otherwise its transaction would count as hanging
    return expected


def _view(each: OpenTransaction) -> HangingTransaction:
    producer = each.producer
    assert producer.transaction_start_offset is not None
    return HangingTransaction(
        each.partition.topic,
        each.partition.partition,
        producer.producer_id,
        producer.producer_epoch,
        producer.coordinator_epoch,
        producer.transaction_start_offset,
        producer.last_timestamp,
    )
