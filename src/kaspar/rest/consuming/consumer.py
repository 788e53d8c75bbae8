"""A librdkafka consumer that behaves like a Java consumer: which calls its state allows, and what its position is.

Records are taken from a buffer, and their offsets are stored once they are in a response (`advance`). So a commit never
covers records that no response contained, and records that were read for a client that disconnected are read again.

The methods block, and must be called one at a time.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final

from kaspar.base.ids import TopicPartition
from kaspar.rest.consuming.time_limit import TimeLimit
from kaspar.rest.errors import ILLEGAL_STATE, RestError, from_kafka_error

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message
    from confluent_kafka import TopicPartition as RdTopicPartition

    from kaspar.callers.clients import OnError

_AT_ONCE: Final = 500
_REQUEST_S: Final = 15.0
_SEEK_S: Final = 10.0
_SEEK_PAUSE_S: Final = 0.02
_COMMIT: Final = "successfully committing offsets"
_COMMITTED: Final = "the last committed offset could be determined"
_POSITIONS: Final = "the position could be determined"
_EXCLUSIVE: Final = "Subscription to topics, partitions and pattern are mutually exclusive"


class Mode(Enum):
    """How the consumer gets its partitions. It must unsubscribe before it changes the mode."""

    NONE = "none"
    TOPICS = "topics"
    PATTERN = "pattern"
    PARTITIONS = "partitions"


class BufferedConsumer:
    def __init__(self, open_consumer: "Callable[[OnError], Consumer]") -> None:
        import confluent_kafka

        self._kafka = confluent_kafka
        self._buffer: deque[Message] = deque()
        self._topics: list[str] = []
        self._calls = TimeLimit(_REQUEST_S)
        self.mode = Mode.NONE
        self.failure: RestError | None = None
        """An error that librdkafka reported outside of any call: authentication failed."""
        error = confluent_kafka.KafkaError
        self._passing = frozenset(
            {
                error._UNKNOWN_TOPIC,
                error._UNKNOWN_PARTITION,
                error.UNKNOWN_TOPIC_OR_PART,
                error._MAX_POLL_EXCEEDED,
                error._TRANSPORT,
                error._ALL_BROKERS_DOWN,
                error.COORDINATOR_LOAD_IN_PROGRESS,
                error.COORDINATOR_NOT_AVAILABLE,
                error.NOT_COORDINATOR,
            }
        )
        """Errors that a Java consumer only logs."""
        self._consumer = open_consumer(self._on_error)

    # --- Partitions ---------------------------------------------------------------------------------------------------

    def subscribe(self, topics: Sequence[str], mode: Mode) -> None:
        """Raises RestError."""
        self._enter(mode)
        self._topics = list(topics)
        if topics:
            self._consumer.subscribe(self._topics, on_revoke=self._on_revoke, on_lost=self._on_revoke)
        else:
            self._consumer.unsubscribe()

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Partitions that were assigned before keep their position. Raises RestError."""
        self._enter(Mode.PARTITIONS if partitions else self.mode)
        if not partitions:
            self.unsubscribe()
            return
        current = set(self.assignment())
        positions = self._positions([each for each in partitions if each in current])
        self._drop(lambda where: where not in partitions)
        self._consumer.assign([self._at(each, positions.get(each)) for each in partitions])

    def unsubscribe(self) -> None:
        if self.mode is Mode.PARTITIONS:
            self._consumer.unassign()
        elif self.mode is not Mode.NONE:
            self._consumer.unsubscribe()
        self.mode = Mode.NONE
        self._topics = []
        self._buffer.clear()

    def subscription(self) -> list[str]:
        return list(self._topics)

    def assignment(self) -> list[TopicPartition]:
        return [TopicPartition(each.topic, each.partition) for each in self._consumer.assignment()]

    def _enter(self, mode: Mode) -> None:
        if self.mode not in (Mode.NONE, mode):
            raise RestError(ILLEGAL_STATE, _EXCLUSIVE)
        self.mode = mode

    def _on_revoke(self, consumer: "Consumer", partitions: "list[RdTopicPartition]") -> None:
        del consumer
        revoked = {TopicPartition(each.topic, each.partition) for each in partitions}
        self._drop(lambda where: where in revoked)

    # --- Records ------------------------------------------------------------------------------------------------------

    def fill(self, wait_s: float) -> None:
        """Fetches records into the buffer, and waits for the first one. Raises RestError."""
        if self.failure is not None:
            raise self.failure
        if self.mode is Mode.NONE:
            raise RestError(ILLEGAL_STATE, "Consumer is not subscribed to any topics or assigned any partitions")
        first = self._consumer.poll(wait_s)
        if first is None:
            return
        problem = None
        for message in (first, *self._consumer.consume(_AT_ONCE, 0)):
            if (error := message.error()) is None:
                self._buffer.append(message)
            elif error.code() not in self._passing:
                problem = problem or error
        if problem is not None:
            raise from_kafka_error(problem)

    def peek(self) -> "Message | None":
        return self._buffer[0] if self._buffer else None

    def take(self) -> "Message":
        return self._buffer.popleft()

    def put_back(self, messages: "Sequence[Message]") -> None:
        """Put messages back in front of the buffered ones."""
        self._buffer.extendleft(reversed(messages))

    def advance(self, messages: "Iterable[Message]") -> None:
        """These messages are in a response now: later commits cover them."""
        ends: dict[TopicPartition, int] = {}
        for message in messages:
            ends[_partition_of(message)] = _offset_of(message) + 1
        self._store(ends)

    def _store(self, offsets: dict[TopicPartition, int]) -> None:
        for where, offset in offsets.items():
            try:
                self._consumer.store_offsets(offsets=[self._at(where, offset)])
            except self._kafka.KafkaException as problem:
                if problem.args[0].code() != self._kafka.KafkaError._STATE:
                    raise  # _STATE: the partition was revoked meanwhile

    # --- Offsets ------------------------------------------------------------------------------------------------------

    def seek(self, offsets: "Sequence[tuple[TopicPartition, int]]") -> None:
        """Raises RestError."""
        self._check_assigned([where for where, _ in offsets])
        for where, offset in offsets:
            self._seek(where, offset)
            self._drop(where.__eq__)
            self._store({where: offset})

    def seek_to_beginning(self, partitions: Sequence[TopicPartition]) -> None:
        """Raises RestError."""
        self._check_assigned(partitions)
        self.seek(self._looked_up(partitions, self._kafka.OFFSET_BEGINNING))

    def seek_to_end(self, partitions: Sequence[TopicPartition]) -> None:
        """Seek to the current end: records that are written later are read. Raises RestError."""
        self._check_assigned(partitions)
        self.seek(self._looked_up(partitions, self._kafka.OFFSET_END))

    def _check_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        assigned = set(self.assignment())
        for where in partitions:
            if where not in assigned:
                raise RestError(ILLEGAL_STATE, f"No current assignment for partition {where.topic}-{where.partition}")

    def _looked_up(self, partitions: Sequence[TopicPartition], logical: int) -> list[tuple[TopicPartition, int]]:
        if not partitions:
            return []
        try:
            wanted = [self._at(each, logical) for each in partitions]
            found = self._calls.run(_POSITIONS, lambda: self._consumer.offsets_for_times(wanted, _REQUEST_S))
        except self._kafka.KafkaException as problem:
            raise from_kafka_error(problem.args[0]) from None
        self._raise_first(found)
        return [(TopicPartition(each.topic, each.partition), each.offset) for each in found]

    def _seek(self, where: TopicPartition, offset: int) -> None:
        """Retries, because librdkafka rejects a seek in a newly assigned partition until it fetches from it."""
        deadline = time.monotonic() + _SEEK_S
        while True:
            try:
                self._consumer.seek(self._at(where, offset))
                return
            except self._kafka.KafkaException as problem:
                error = problem.args[0]
                if error.code() != self._kafka.KafkaError._STATE or time.monotonic() > deadline:
                    raise from_kafka_error(error) from None
            time.sleep(_SEEK_PAUSE_S)

    def commit(self, offsets: "Sequence[tuple[TopicPartition, int, str | None]] | None", *, wait: bool) -> None:
        """Commit these offsets, or else the positions: the end of what responses contained. Raises RestError."""
        try:
            if offsets is None and not wait:
                self._consumer.commit(asynchronous=True)
            elif offsets is None:
                self._raise_first(self._calls.run(_COMMIT, lambda: self._consumer.commit(asynchronous=False)))
            else:
                wanted = [
                    self._kafka.TopicPartition(where.topic, where.partition, offset, metadata or "")
                    for where, offset, metadata in offsets
                ]
                done = self._calls.run(_COMMIT, lambda: self._consumer.commit(offsets=wanted, asynchronous=False))
                self._raise_first(done)
        except self._kafka.KafkaException as problem:
            if problem.args[0].code() != self._kafka.KafkaError._NO_OFFSET:  # _NO_OFFSET: nothing has been read
                raise from_kafka_error(problem.args[0]) from None

    def committed(self, partitions: Sequence[TopicPartition]) -> list[tuple[TopicPartition, int, str]]:
        """The committed offsets and metadata, of those partitions that have some. Raises RestError."""
        try:
            wanted = [self._at(each, None) for each in partitions]
            found = self._calls.run(_COMMITTED, lambda: self._consumer.committed(wanted, timeout=_REQUEST_S))
        except self._kafka.KafkaException as problem:
            raise from_kafka_error(problem.args[0]) from None
        self._raise_first(found)
        return [
            (TopicPartition(each.topic, each.partition), each.offset, each.metadata or "")
            for each in found
            if each.offset >= 0
        ]

    def close(self) -> None:
        self._buffer.clear()
        self._calls.wait()  # a call in progress still uses the consumer
        self._consumer.close()

    def _on_error(self, error: "KafkaError") -> None:
        if error.code() in (self._kafka.KafkaError._AUTHENTICATION, self._kafka.KafkaError._SSL):
            self.failure = from_kafka_error(error)

    # --- Helpers ------------------------------------------------------------------------------------------------------

    def _drop(self, is_dropped: Callable[[TopicPartition], bool]) -> None:
        self._buffer = deque(each for each in self._buffer if not is_dropped(_partition_of(each)))

    def _positions(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset of the next record to return, for partitions where it is known."""
        reported = self._consumer.position([self._at(each, None) for each in partitions]) if partitions else ()
        positions = {TopicPartition(each.topic, each.partition): each.offset for each in reported if each.offset >= 0}
        for message in reversed(self._buffer):
            positions[_partition_of(message)] = _offset_of(message)
        return positions

    def _raise_first(self, partitions: "Sequence[RdTopicPartition] | None") -> None:
        for each in partitions or ():
            if each.error is not None and each.error.code() != self._kafka.KafkaError._NO_OFFSET:
                raise from_kafka_error(each.error)

    def _at(self, where: TopicPartition, offset: int | None) -> "RdTopicPartition":
        if offset is None:
            return self._kafka.TopicPartition(where.topic, where.partition)
        return self._kafka.TopicPartition(where.topic, where.partition, offset)


def _partition_of(message: "Message") -> TopicPartition:
    topic, partition = message.topic(), message.partition()
    assert topic is not None
    assert partition is not None
    return TopicPartition(topic, partition)


def _offset_of(message: "Message") -> int:
    offset = message.offset()
    assert offset is not None
    return offset
