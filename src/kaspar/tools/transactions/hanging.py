"""Finds hanging transactions: open on a partition, although their coordinator will never write the end marker
(KIP-664).
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.producers import ProducerState, describe_producers
from kaspar.client.admin.session import Admin, accepted
from kaspar.client.admin.topics import describe_topics, list_topics
from kaspar.client.admin.transactions import describe_transactions, list_transactions
from kaspar.tools.command_line import CommandFailed
from kaspar.tools.kafka_errors import message_of

_AT_ONCE: Final = 500
"""How many topics or partitions one request contains, because a broker may have very many."""


class OpenTransaction(NamedTuple):
    partition: TopicPartition
    producer: ProducerState


def find_hanging(
    admin: Admin, *, topic: str | None, partition: int | None, broker_id: int | None, silent_since_ms: int
) -> list[OpenTransaction]:
    """The hanging transactions of this topic or partition, or of all partitions with a replica on this broker. A
    transaction with a record since `silent_since_ms` is left out, because it may still end by itself."""
    if topic is not None and partition is not None:
        partitions = [TopicPartition(topic, partition)]
    else:
        partitions = _partitions(admin, [topic] if topic is not None else _all_topics(admin), broker_id)
    candidates = [
        each
        for start in range(0, len(partitions), _AT_ONCE)
        for each in _open(admin, partitions[start : start + _AT_ONCE], broker_id)
        if each.producer.last_timestamp < silent_since_ms
    ]
    if not candidates:
        return []
    expected = _expected(admin, {each.producer.producer_id for each in candidates})
    return hanging(candidates, expected)


def hanging(
    candidates: Collection[OpenTransaction], expected: Mapping[int, Collection[TopicPartition]]
) -> list[OpenTransaction]:
    """The open transactions whose coordinator is not going to write an end marker to the partition. `expected` has the
    partitions to which it will, by producer id.
    """
    return [each for each in candidates if each.partition not in expected.get(each.producer.producer_id, ())]


def _all_topics(admin: Admin) -> list[str]:
    try:
        return list_topics(admin)
    except Refused as refused:
        raise failure("Failed to list topics", refused) from None


def _partitions(admin: Admin, topics: Sequence[str], broker_id: int | None) -> list[TopicPartition]:
    found: list[TopicPartition] = []
    for start in range(0, len(topics), _AT_ONCE):
        together = topics[start : start + _AT_ONCE]
        try:
            for name, topic in describe_topics(admin, together).items():
                found += [
                    TopicPartition(name, each.partition)
                    for each in accepted(topic).partitions
                    if broker_id is None or broker_id in each.replicas
                ]
        except Refused as refused:
            raise failure(f"Failed to describe {len(together)} topics", refused) from None
    return found


def _open(admin: Admin, partitions: Sequence[TopicPartition], broker_id: int | None) -> list[OpenTransaction]:
    found = []
    try:
        for where, producers in describe_producers(admin, partitions, broker_id=broker_id).items():
            open_ones = (each for each in accepted(producers) if each.transaction_start_offset is not None)
            found += [OpenTransaction(where, each) for each in open_ones]
    except Refused as refused:
        on = "Optional.empty" if broker_id is None else f"Optional[{broker_id}]"
        raise failure(
            f"Failed to describe producers for {len(partitions)} partitions on broker {on}", refused
        ) from None
    return found


def _expected(admin: Admin, producer_ids: Collection[int]) -> dict[int, tuple[TopicPartition, ...]]:
    """For each producer, the partitions to which its coordinator will still write an end marker."""
    try:
        listed = list_transactions(admin, producer_ids=producer_ids)
    except Refused as refused:
        raise failure(f"Failed to list transactions for {len(producer_ids)} producers", refused) from None
    ids = {each.producer_id: each.transactional_id for each in listed}
    described = describe_transactions(admin, ids.values())
    expected = {}
    for producer_id, transactional_id in ids.items():
        found = described[transactional_id]
        if not isinstance(found, Refused):
            expected[producer_id] = found.partitions
        elif found.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise failure(f"Failed to describe {len(ids)} transactions", found)
    return expected


def failure(what: str, refused: Refused) -> CommandFailed:
    """The error in the words of Kafka's command."""
    return CommandFailed(f"{what}: {message_of(refused)}. Enable debug logging for additional detail.")
