"""Batches that a replica has just rejected with an error that makes their producer retry them.

An idempotent producer keeps up to five batches in flight. If the first one is rejected, because the disk is full, too
few replicas are in sync, or this replica is not the leader yet, the ones behind it arrive before its retry, and their
sequences do not follow. They get the same error, not OUT_OF_ORDER_SEQUENCE_NUMBER: librdkafka reacts to that with a new
epoch for all its partitions, in which it sends again what has not been acknowledged, including batches that are stored.

Kafka has this gap when replicas are missing and after an election. On a full disk it takes the directory offline, so
that the batches in flight get the same error as well.
"""

from kaspar.base.errors import ErrorCode, Refused
from kaspar.storage.producers.entry import LAST_SEQUENCE

RETRIED = frozenset({ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_LEADER_OR_FOLLOWER})
"""The errors after which a producer sends the same batch again."""

MOST_BEHIND = 4
"""An idempotent producer has at most five batches in flight (max.in.flight.requests.per.connection)."""

MAX_PRODUCERS = 1000
"""Of a partition. Producer ids are chosen by clients; beyond so many the oldest ones are dropped."""


def _follows(later: int, earlier: int) -> bool:
    return 0 < (later - earlier) & LAST_SEQUENCE <= LAST_SEQUENCE // 2  # sequences wrap around


class _RefusedBatches:
    """The sequences of the first and the last batch that was rejected, and how many batches behind may get the same
    error: a producer that does not retry the first one has to learn of the gap.
    """

    __slots__ = ("behind_left", "code", "epoch", "first", "last", "message")

    def __init__(self, epoch: int, sequence: int, reason: Refused) -> None:
        self.epoch = epoch
        self.first = self.last = sequence
        self.code, self.message = reason.code, reason.message  # without its traceback, which would keep the request
        self.behind_left = MOST_BEHIND


class Refusals:
    """The rejected batches of each producer, until they are accepted."""

    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        self._by_producer: dict[int, _RefusedBatches] = {}

    def __bool__(self) -> bool:
        return bool(self._by_producer)

    def add(self, producer_id: int, epoch: int, base_sequence: int, reason: Refused) -> None:
        refused = self._by_producer.get(producer_id)
        if refused is not None and refused.epoch == epoch and _follows(base_sequence, refused.first):
            if _follows(base_sequence, refused.last):
                refused.last = base_sequence
            return
        if refused is None and len(self._by_producer) == MAX_PRODUCERS:
            del self._by_producer[next(iter(self._by_producer))]
        self._by_producer[producer_id] = _RefusedBatches(epoch, base_sequence, reason)

    def reason_before(self, producer_id: int, epoch: int, base_sequence: int) -> Refused | None:
        """Why an earlier batch of this epoch was rejected, if one was and this batch may have been in flight then."""
        refused = self._by_producer.get(producer_id)
        if refused is None or refused.epoch != epoch or not _follows(base_sequence, refused.first):
            return None
        if refused.behind_left == 0:
            del self._by_producer[producer_id]
            return None
        refused.behind_left -= 1
        return Refused(refused.code, refused.message)

    def accepted(self, producer_id: int, epoch: int, last_sequence: int) -> None:
        refused = self._by_producer.get(producer_id)
        if refused is None:
            return
        if refused.epoch == epoch and _follows(refused.last, last_sequence):
            if not _follows(refused.first, last_sequence):
                refused.first = (last_sequence + 1) & LAST_SEQUENCE
        else:
            del self._by_producer[producer_id]

    def clear(self) -> None:
        self._by_producer.clear()
