"""Batches that a leader has just refused with an error that makes their producer retry them.

A producer has up to five batches in flight. If the first is refused, because the disk is full or too few replicas are
in sync, the others arrive before its retry, and their sequences are out of order. They get the same error, not
OUT_OF_ORDER_SEQUENCE_NUMBER: on that error librdkafka starts a new epoch for all its partitions, in which it repeats
the batches that are not acknowledged yet, including those that are stored. Kafka takes the directory offline in the
first case, so that the batches in flight get the same error as well; in the second case it has this gap.
"""

from typing import NamedTuple

from kaspar.base.errors import ErrorCode, Refused
from kaspar.storage.producers.entry import LAST_SEQUENCE

RETRIED_HERE = frozenset({ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_ENOUGH_REPLICAS})
"""The errors after which a producer sends the same batch to the same leader again."""


class _RefusedBatch(NamedTuple):
    epoch: int
    base_sequence: int
    reason: Refused

    def is_before(self, epoch: int, base_sequence: int) -> bool:
        distance = (base_sequence - self.base_sequence) & LAST_SEQUENCE  # sequences wrap around
        return epoch == self.epoch and 0 < distance <= LAST_SEQUENCE // 2


class Refusals:
    """The first refused batch of each producer, until a batch of that producer is accepted."""

    __slots__ = ("_first",)

    def __init__(self) -> None:
        self._first: dict[int, _RefusedBatch] = {}

    def __bool__(self) -> bool:
        return bool(self._first)

    def add(self, producer_id: int, epoch: int, base_sequence: int, reason: Refused) -> None:
        first = self._first.get(producer_id)
        if first is None or not first.is_before(epoch, base_sequence):
            self._first[producer_id] = _RefusedBatch(epoch, base_sequence, reason)

    def reason_before(self, producer_id: int, epoch: int, base_sequence: int) -> Refused | None:
        """The error with which an earlier batch of this epoch was refused, if it has not been retried."""
        first = self._first.get(producer_id)
        if first is None or not first.is_before(epoch, base_sequence):
            return None
        return Refused(first.reason.code, first.reason.message)

    def accepted(self, producer_id: int) -> None:
        self._first.pop(producer_id, None)

    def clear(self) -> None:
        self._first.clear()
