"""What a producer's batches wait for: the rules of order, retries and idempotence, without I/O or clock.

Each partition has a lane of batches in the order of their sequence numbers. Several may be under way at once, all on
one connection, one for the partition in each request. The rules:

- A batch keeps its sequence numbers and its bytes however often it is sent: the broker knows it again, and an answer
  that it is a duplicate counts as stored.
- After a failure nothing of the lane is sent before all that is under way has been answered; then it goes on in order.
  So a batch behind a failed one may come back out of sequence: that is a failure only where nothing is before it.
- What is too large is split in two, with the same sequence numbers, unless it is one record.
- A batch is given up when retries or time have run out, but never before it was tried again at least once.
"""

from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass, field

from kaspar.base.error_codes import RETRIABLE
from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.client.delivery_terms import DeliveryTerms
from kaspar.records.identity import batch_count, identify, split_batch

_SEQUENCES = 1 << 31
_MOST_BATCHES = 256  # of one request: a system call takes a limited number of buffers

# The leader is another one, or its broker does not answer: ask again who leads.
_LEADER_IS_ELSEWHERE = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NETWORK_EXCEPTION,
    }
)

_EXPLANATIONS = {
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "batches that this producer wrote before are missing: records may be lost",
    ErrorCode.UNKNOWN_PRODUCER_ID: "the broker no longer knows this producer",
    ErrorCode.INVALID_PRODUCER_EPOCH: "a newer producer has taken this one's place",
    ErrorCode.PRODUCER_FENCED: "a newer producer has taken this one's place",
    ErrorCode.NOT_ENOUGH_REPLICAS: "fewer replicas are in sync than min.insync.replicas asks for",
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: "fewer replicas are in sync than min.insync.replicas asks for",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such partition",
}


@dataclass(slots=True, eq=False)
class PendingBatch:
    partition: TopicPartition
    data: memoryview
    count: int
    base_sequence: int
    place: tuple[int, ...]
    """Its place in the lane; the two parts of a batch that was split have its place, and 0 or 1 behind it."""
    attempts: int = 0
    first_attempt_ms: int = -1

    def __lt__(self, other: "PendingBatch") -> bool:
        return self.place < other.place


@dataclass(slots=True, eq=False)
class _Lane:
    partition: TopicPartition
    leader: int | None = None
    waiting: list[PendingBatch] = field(default_factory=list)
    under_way: list[PendingBatch] = field(default_factory=list)
    under_way_at: int = -1
    next_sequence: int = 0
    next_place: int = 0
    is_held: bool = False
    not_before_ms: int = 0

    def may_send(self, now_ms: int) -> bool:
        if self.not_before_ms > now_ms:
            return False
        return not self.under_way or (not self.is_held and self.under_way_at == self.leader)


class Delivery:
    def __init__(
        self, producer: ProducerIdAndEpoch | None, terms: DeliveryTerms, *, transactional: bool = False
    ) -> None:
        """Without a producer's id batches are not numbered, and may be stored twice where an answer is lost."""
        self.terms = terms
        self.held_bytes = 0
        """Of all batches that are not stored yet."""
        self._producer = producer
        self._transactional = transactional
        self._lanes: dict[TopicPartition, _Lane] = {}
        self._with_waiting: dict[TopicPartition, _Lane] = {}

    # --- in -----------------------------------------------------------------------------------------------------------

    def add(self, partition: TopicPartition, data: memoryview) -> bool:
        """Number and stamp a batch and put it at the end of its lane. True if it is the lane's first one."""
        lane = self._lanes.get(partition)
        is_first = lane is None
        if lane is None:
            lane = self._lanes[partition] = _Lane(partition)
        count = batch_count(data)
        batch = PendingBatch(partition, data, count, lane.next_sequence, (lane.next_place,))
        self._stamp(batch)
        lane.next_sequence = (lane.next_sequence + count) % _SEQUENCES
        lane.next_place += 1
        lane.waiting.append(batch)
        self._with_waiting[partition] = lane
        self.held_bytes += len(data)
        return is_first

    def _stamp(self, batch: PendingBatch) -> None:
        identify(
            batch.data,
            self._producer,
            batch.base_sequence if self._producer is not None else -1,
            transactional=self._transactional,
        )

    def set_leader(self, partition: TopicPartition, leader: int | None) -> None:
        if (lane := self._lanes.get(partition)) is not None:
            lane.leader = leader

    # --- out ----------------------------------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        return self.held_bytes == 0

    def without_leader(self) -> list[TopicPartition]:
        """Partitions for which something waits, and nobody knows where it goes."""
        return [partition for partition, lane in self._with_waiting.items() if lane.leader is None]

    def leaders_with_work(self, now_ms: int) -> set[int]:
        lanes = self._with_waiting.values()
        return {lane.leader for lane in lanes if lane.leader is not None and lane.may_send(now_ms)}

    def next_request(self, leader: int, now_ms: int) -> list[PendingBatch]:
        """What goes to that leader next, under way from now on: of each partition one batch, of all as much as fits."""
        chosen: list[PendingBatch] = []
        size = 0
        for lane in list(self._with_waiting.values()):
            if lane.leader != leader or not lane.may_send(now_ms):
                continue
            batch = lane.waiting[0]
            size += len(batch.data)
            if chosen and (size > self.terms.max_request_size or len(chosen) == _MOST_BATCHES):
                break
            del lane.waiting[0]
            if not lane.waiting:
                del self._with_waiting[lane.partition]
            else:  # the others' turn comes first
                self._with_waiting[lane.partition] = self._with_waiting.pop(lane.partition)
            lane.under_way.append(batch)
            lane.under_way_at = leader
            lane.is_held = False
            self._tried(batch, now_ms)
            chosen.append(batch)
        return chosen

    def next_event_ms(self) -> int | None:
        """When a lane that waits may go on, if any does."""
        return min(
            (lane.not_before_ms for lane in self._with_waiting.values() if lane.leader is not None), default=None
        )

    # --- answers ------------------------------------------------------------------------------------------------------

    def stored(self, batch: PendingBatch) -> None:
        self._lanes[batch.partition].under_way.remove(batch)
        self.held_bytes -= len(batch.data)

    def refused(self, batch: PendingBatch, code: ErrorCode, message: str | None, now_ms: int) -> None:
        """An answer that is not NONE. Raises Refused with a sentence where there is nothing left to try."""
        lane = self._lanes[batch.partition]
        if code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            self.stored(batch)
        elif code is ErrorCode.MESSAGE_TOO_LARGE and batch.count > 1:
            self._split(lane, batch)
        elif code in RETRIABLE or (
            code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and self._is_anything_before(lane, batch)
        ):
            if code in _LEADER_IS_ELSEWHERE:
                lane.leader = None
            self._put_back(lane, batch, code, now_ms)
        else:
            raise _refusal(batch, code, message)

    def lost(self, batches: Iterable[PendingBatch], now_ms: int) -> None:
        """The connection on which they were under way is no more: whether they are stored nobody knows."""
        for batch in batches:
            lane = self._lanes[batch.partition]
            lane.leader = None
            self._put_back(lane, batch, ErrorCode.NETWORK_EXCEPTION, now_ms)

    def unreachable(self, leader: int, now_ms: int) -> None:
        """No connection to that broker can be made."""
        for lane in self._with_waiting.values():
            if lane.leader == leader and lane.may_send(now_ms):
                lane.leader = None
                self._tried(lane.waiting[0], now_ms)
                self._check_patience(lane.waiting[0], ErrorCode.NETWORK_EXCEPTION, now_ms)
                lane.not_before_ms = now_ms + self.terms.backoff_ms(lane.waiting[0].attempts)

    def leaderless(self, partition: TopicPartition, code: ErrorCode, now_ms: int) -> None:
        """Nobody leads that partition now."""
        lane = self._lanes[partition]
        if lane.waiting:
            self._tried(lane.waiting[0], now_ms)
            self._check_patience(lane.waiting[0], code, now_ms)

    def _tried(self, batch: PendingBatch, now_ms: int) -> None:
        batch.attempts += 1
        if batch.first_attempt_ms < 0:
            batch.first_attempt_ms = now_ms

    def _put_back(self, lane: _Lane, batch: PendingBatch, code: ErrorCode, now_ms: int) -> None:
        self._check_patience(batch, code, now_ms)
        lane.under_way.remove(batch)
        insort(lane.waiting, batch)
        lane.is_held = True
        lane.not_before_ms = now_ms + self.terms.backoff_ms(batch.attempts)
        self._with_waiting[lane.partition] = lane

    def _check_patience(self, batch: PendingBatch, code: ErrorCode, now_ms: int) -> None:
        if batch.attempts > self.terms.retries:
            raise _refusal(batch, code, f"{batch.attempts} attempts failed, and retries is {self.terms.retries}")
        waited_ms = now_ms - batch.first_attempt_ms
        if batch.attempts > 1 and waited_ms > self.terms.delivery_timeout_ms:
            raise _refusal(batch, code, f"not stored within delivery.timeout.ms, {self.terms.delivery_timeout_ms} ms")

    def _split(self, lane: _Lane, batch: PendingBatch) -> None:
        lane.under_way.remove(batch)
        lane.is_held = True
        self.held_bytes -= len(batch.data)
        sequence = batch.base_sequence
        for index, part in enumerate(split_batch(batch.data)):
            half = PendingBatch(batch.partition, part, batch_count(part), sequence, (*batch.place, index))
            self._stamp(half)
            insort(lane.waiting, half)
            sequence = (sequence + half.count) % _SEQUENCES
            self.held_bytes += len(part)
        self._with_waiting[lane.partition] = lane

    @staticmethod
    def _is_anything_before(lane: _Lane, batch: PendingBatch) -> bool:
        return any(other < batch for other in (*lane.waiting, *lane.under_way))


def _refusal(batch: PendingBatch, code: ErrorCode, message: str | None) -> Refused:
    if code is ErrorCode.MESSAGE_TOO_LARGE:
        message = f"a record of {len(batch.data)} bytes is larger than the topic's max.message.bytes"
    reason = message or _EXPLANATIONS.get(code, "the broker gives no reason")
    return Refused(code, f"Writing to {batch.partition} failed: {reason} ({code.name})")
