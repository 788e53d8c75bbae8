"""The rules for sending a producer's batches: order, retries and idempotence, without I/O or clock.

Each partition has a queue of batches in the order of their sequence numbers. Several may be in flight at once, all on
one connection, with at most one batch of a partition in each request. The rules:

- A batch keeps its sequence numbers and its bytes however often it is sent, so that the broker recognizes it. If the
  response says that it is a duplicate, it is stored.
- After a failure nothing of the queue is sent until everything in flight has a response; then it continues in order. So
  a batch after a failed one may be refused as out of sequence: that is an error only if there is no earlier batch.
- Until the first batch of a partition is stored, no other is sent: a leader that does not know the producer accepts a
  batch with any sequence number, so a leader elected between the two batches would accept the second one.
- A batch that is too large is split in two, with the same sequence numbers, unless it has only one record.
- A batch fails when retries or time have run out, but never before it was retried at least once.
- The end offset of each partition is known from the responses, except for a duplicate whose offset the broker no longer
  knows.
"""

from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from kaspar.base.error_codes import RETRIABLE
from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import NO_OFFSET, ProducerIdAndEpoch, TopicPartition
from kaspar.client.delivery_terms import DeliveryTerms
from kaspar.records.identity import batch_count, identify, split_batch

OnStored = Callable[[TopicPartition, int], None]
"""Called with the partition and the number of records of each batch that is stored."""

_SEQUENCES = 1 << 31
_MAX_BATCHES = 256  # per request: a system call takes a limited number of buffers

# Another broker is the leader, or the leader does not respond: the metadata is refreshed.
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
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "earlier batches of this producer are missing: records may be lost",
    ErrorCode.UNKNOWN_PRODUCER_ID: "the broker no longer knows this producer",
    ErrorCode.INVALID_PRODUCER_EPOCH: "a newer producer has fenced this one",
    ErrorCode.PRODUCER_FENCED: "a newer producer has fenced this one",
    ErrorCode.NOT_ENOUGH_REPLICAS: "fewer replicas are in sync than min.insync.replicas requires",
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: "fewer replicas are in sync than min.insync.replicas requires",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "the partition does not exist",
}


@dataclass(slots=True, eq=False)
class PendingBatch:
    partition: TopicPartition
    data: memoryview
    count: int
    base_sequence: int
    place: tuple[int, ...]
    """The place in the queue. The two halves of a split batch have its place followed by 0 and 1."""
    attempts: int = 0
    first_attempt_ms: int = -1

    def __lt__(self, other: "PendingBatch") -> bool:
        return self.place < other.place


@dataclass(slots=True, eq=False)
class _Queue:
    partition: TopicPartition
    leader: int | None = None
    waiting: list[PendingBatch] = field(default_factory=list)
    in_flight: list[PendingBatch] = field(default_factory=list)
    in_flight_at: int = -1
    next_sequence: int = 0
    next_place: int = 0
    is_known: bool = False
    """Whether the leader knows the producer, or there are no sequence numbers: then batches may be sent in any order.
    """
    is_blocked: bool = False
    not_before_ms: int = 0

    def may_send(self, now_ms: int) -> bool:
        if self.not_before_ms > now_ms:
            return False
        return not self.in_flight or (self.is_known and not self.is_blocked and self.in_flight_at == self.leader)


@dataclass(slots=True, eq=False)
class _End:
    """The end offset of the records that were stored in a partition."""

    offset: int = NO_OFFSET
    known_to: tuple[int, ...] = ()
    """The last place in the queue whose batch has a known offset."""
    unknown_to: tuple[int, ...] = ()
    """The last place whose batch is stored at an unknown offset."""

    def add(self, batch: PendingBatch, base_offset: int) -> None:
        if base_offset < 0:
            self.unknown_to = max(self.unknown_to, batch.place)
        else:  # the maximum, because batches without sequence numbers may be stored in another order
            self.offset = max(self.offset, base_offset + batch.count)
            self.known_to = max(self.known_to, batch.place)


class Delivery:
    def __init__(
        self,
        producer: ProducerIdAndEpoch | None,
        terms: DeliveryTerms,
        *,
        transactional: bool = False,
        on_stored: OnStored | None = None,
    ) -> None:
        """Without `producer` batches have no sequence numbers, and may be stored twice if a response is lost."""
        self.terms = terms
        self.held_bytes = 0
        """The size of all batches that are not stored yet."""
        self._producer = producer
        self._transactional = transactional
        self._on_stored = on_stored
        self._queues: dict[TopicPartition, _Queue] = {}
        self._with_waiting: dict[TopicPartition, _Queue] = {}
        self._ends: dict[TopicPartition, _End] = {}

    # --- in -----------------------------------------------------------------------------------------------------------

    def add(self, partition: TopicPartition, data: memoryview) -> bool:
        """Append a batch to its queue, and set its sequence number. True if it is the first one for the partition."""
        queue = self._queues.get(partition)
        is_first = queue is None
        if queue is None:
            queue = self._queues[partition] = _Queue(partition, is_known=self._producer is None)
        count = batch_count(data)
        batch = PendingBatch(partition, data, count, queue.next_sequence, (queue.next_place,))
        self._stamp(batch)
        queue.next_sequence = (queue.next_sequence + count) % _SEQUENCES
        queue.next_place += 1
        queue.waiting.append(batch)
        self._with_waiting[partition] = queue
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
        if (queue := self._queues.get(partition)) is not None:
            queue.leader = leader

    # --- out ----------------------------------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        return self.held_bytes == 0

    def without_leader(self) -> list[TopicPartition]:
        """Partitions with waiting batches and no known leader."""
        return [partition for partition, queue in self._with_waiting.items() if queue.leader is None]

    def leaders_with_work(self, now_ms: int) -> set[int]:
        queues = self._with_waiting.values()
        return {queue.leader for queue in queues if queue.leader is not None and queue.may_send(now_ms)}

    def next_request(self, leader: int, now_ms: int) -> list[PendingBatch]:
        """The next batches for a leader, at most one per partition, as many as fit. They are in flight from now on."""
        chosen: list[PendingBatch] = []
        size = 0
        for queue in list(self._with_waiting.values()):
            if queue.leader != leader or not queue.may_send(now_ms):
                continue
            batch = queue.waiting[0]
            size += len(batch.data)
            if chosen and (size > self.terms.max_request_size or len(chosen) == _MAX_BATCHES):
                break
            del queue.waiting[0]
            if not queue.waiting:
                del self._with_waiting[queue.partition]
            else:  # moved to the end, so that other partitions come first next time
                self._with_waiting[queue.partition] = self._with_waiting.pop(queue.partition)
            queue.in_flight.append(batch)
            queue.in_flight_at = leader
            queue.is_blocked = False
            self._tried(batch, now_ms)
            chosen.append(batch)
        return chosen

    def next_event_ms(self) -> int | None:
        """The earliest time at which a waiting queue may continue, if there is one."""
        return min(
            (queue.not_before_ms for queue in self._with_waiting.values() if queue.leader is not None), default=None
        )

    # --- responses ----------------------------------------------------------------------------------------------------

    def stored(self, batch: PendingBatch, base_offset: int = NO_OFFSET) -> None:
        """Note that a batch was stored. `base_offset` is the offset of its first record, if the response has it."""
        queue = self._queues[batch.partition]
        queue.in_flight.remove(batch)
        queue.is_known = True
        self.held_bytes -= len(batch.data)
        end = self._ends.get(batch.partition)
        if end is None:
            end = self._ends[batch.partition] = _End()
        end.add(batch, base_offset)
        if self._on_stored is not None:
            self._on_stored(batch.partition, batch.count)

    def take_end_offsets(self) -> dict[TopicPartition, int]:
        """The offset after the last record that was stored in each partition since the last call; NO_OFFSET if the
        broker did not report it.
        """
        ends, self._ends = self._ends, {}
        return {
            partition: NO_OFFSET if end.unknown_to > end.known_to else end.offset for partition, end in ends.items()
        }

    def refused(
        self, batch: PendingBatch, code: ErrorCode, message: str | None, now_ms: int, *, base_offset: int = NO_OFFSET
    ) -> None:
        """Handle an error in the response. Raises Refused if it is final. A duplicate may have a `base_offset`."""
        queue = self._queues[batch.partition]
        if code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            self.stored(batch, base_offset)
        elif code is ErrorCode.MESSAGE_TOO_LARGE and batch.count > 1:
            self._split(queue, batch)
        elif code in RETRIABLE or (code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and self._has_earlier(queue, batch)):
            if code in _LEADER_IS_ELSEWHERE:
                queue.leader = None
            self._put_back(queue, batch, code, now_ms)
        else:
            raise _refusal(batch, code, message)

    def lost(self, batches: Iterable[PendingBatch], now_ms: int) -> None:
        """Handle the loss of a connection: it is unknown whether these batches are stored."""
        for batch in batches:
            queue = self._queues[batch.partition]
            queue.leader = None
            self._put_back(queue, batch, ErrorCode.NETWORK_EXCEPTION, now_ms)

    def unreachable(self, leader: int, now_ms: int) -> None:
        """Handle a failure to connect to a broker."""
        for queue in self._with_waiting.values():
            if queue.leader == leader and queue.may_send(now_ms):
                queue.leader = None
                self._tried(queue.waiting[0], now_ms)
                self._check_limits(queue.waiting[0], ErrorCode.NETWORK_EXCEPTION, now_ms)
                queue.not_before_ms = now_ms + self.terms.backoff_ms(queue.waiting[0].attempts)

    def leaderless(self, partition: TopicPartition, code: ErrorCode, now_ms: int) -> None:
        """Handle that a partition has no leader now."""
        queue = self._queues[partition]
        if queue.waiting:
            self._tried(queue.waiting[0], now_ms)
            self._check_limits(queue.waiting[0], code, now_ms)

    def _tried(self, batch: PendingBatch, now_ms: int) -> None:
        batch.attempts += 1
        if batch.first_attempt_ms < 0:
            batch.first_attempt_ms = now_ms

    def _put_back(self, queue: _Queue, batch: PendingBatch, code: ErrorCode, now_ms: int) -> None:
        self._check_limits(batch, code, now_ms)
        queue.in_flight.remove(batch)
        insort(queue.waiting, batch)
        queue.is_blocked = True
        queue.not_before_ms = now_ms + self.terms.backoff_ms(batch.attempts)
        self._with_waiting[queue.partition] = queue

    def _check_limits(self, batch: PendingBatch, code: ErrorCode, now_ms: int) -> None:
        if batch.attempts > self.terms.retries:
            raise _refusal(batch, code, f"{batch.attempts} attempts failed; retries is {self.terms.retries}")
        waited_ms = now_ms - batch.first_attempt_ms
        if batch.attempts > 1 and waited_ms > self.terms.delivery_timeout_ms:
            raise _refusal(batch, code, f"not stored within delivery.timeout.ms, {self.terms.delivery_timeout_ms} ms")

    def _split(self, queue: _Queue, batch: PendingBatch) -> None:
        queue.in_flight.remove(batch)
        queue.is_blocked = True
        self.held_bytes -= len(batch.data)
        sequence = batch.base_sequence
        for index, part in enumerate(split_batch(batch.data)):
            half = PendingBatch(batch.partition, part, batch_count(part), sequence, (*batch.place, index))
            self._stamp(half)
            insort(queue.waiting, half)
            sequence = (sequence + half.count) % _SEQUENCES
            self.held_bytes += len(part)
        self._with_waiting[queue.partition] = queue

    @staticmethod
    def _has_earlier(queue: _Queue, batch: PendingBatch) -> bool:
        return any(other < batch for other in (*queue.waiting, *queue.in_flight))


def _refusal(batch: PendingBatch, code: ErrorCode, message: str | None) -> Refused:
    if code is ErrorCode.MESSAGE_TOO_LARGE:
        message = f"a record of {len(batch.data)} bytes is larger than the topic's max.message.bytes"
    reason = message or _EXPLANATIONS.get(code, "the broker gave no reason")
    return Refused(code, f"Writing to {batch.partition} failed: {reason} ({code.name})")
