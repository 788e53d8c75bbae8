"""Aborts transactions. The request identifies the transaction that the page showed, so that one that has started since
is not aborted by mistake."""

from dataclasses import dataclass

from kaspar.base.ids import TopicPartition
from kaspar.client.admin.producers import describe_producers
from kaspar.client.admin.session import Admin, accepted
from kaspar.client.admin.transactions import AbortTransactionSpec, abort_transaction, fence_producer
from kaspar.console.problems import Conflict
from kaspar.console.transactions.hanging import expected_markers
from kaspar.console.transactions.listing import Phase, describe


@dataclass(frozen=True, slots=True)
class SeenTransaction:
    transactional_id: str
    producer_id: int
    producer_epoch: int
    start_time_ms: int | None


@dataclass(frozen=True, slots=True)
class SeenOnPartition:
    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    start_offset: int


def terminate(admin: Admin, seen: SeenTransaction) -> int:
    """Abort the open transaction of a transactional id and fence its producer, as `kaspar txn abort` does. Returns the
    new epoch. Raises Refused, NotThere and Conflict."""
    now = describe(admin, seen.transactional_id)
    if now.phase is Phase.ENDED:
        raise Conflict(f"The transaction of {seen.transactional_id} has already ended: its state is {now.state}.")
    if (now.producer_id, now.producer_epoch, now.start_time_ms) != (
        seen.producer_id,
        seen.producer_epoch,
        seen.start_time_ms,
    ):
        raise Conflict(f"{seen.transactional_id} has started another transaction since: review that one first.")
    return fence_producer(admin, seen.transactional_id).producer_epoch


def abort_hanging(admin: Admin, seen: SeenOnPartition) -> None:
    """Write an abort marker to the partition, as `kafka-transactions abort` does. Raises Refused, and Conflict if the
    transaction is no longer open, or if its coordinator knows it after all."""
    where = TopicPartition(seen.topic, seen.partition)
    if where in expected_markers(admin, {seen.producer_id}).get(seen.producer_id, ()):
        raise Conflict(
            f"The coordinator of producer {seen.producer_id} knows this transaction: abort it by its transactional id."
        )
    for producer in accepted(describe_producers(admin, [where])[where]):
        if (producer.producer_id, producer.producer_epoch, producer.transaction_start_offset) == (
            seen.producer_id,
            seen.producer_epoch,
            seen.start_offset,
        ):
            abort_transaction(admin, AbortTransactionSpec.of(where, producer))
            return
    raise Conflict(f"Producer {seen.producer_id} no longer has this transaction open on {where}.")
