"""Fetches a range of a partition's offsets, with the next request on its way before an answer is handed out.

So the broker sends while the caller works on what it has. The connection is the fetch's own. Moved leaders and lost
connections are looked after within the client's time limit, which starts anew with every answer that brings something.

With a rack the leader may name a replica that is nearer (KIP-392), which is read then. That is done once: whatever goes
wrong there, and a replica that is behind the end of the range, brings the fetch back to the leader for good.

A range ends where its last offset is passed, whether or not a record has it: the last offsets may be markers of
transactions, belong to aborted ones, or be compacted away. What ends it for good otherwise is told apart: offsets that
the log no longer has (OffsetGone), another topic of the same name (TopicMadeAnew), an end that does not come
(EndOutOfReach), and bytes that are no batches (MalformedBytes).
"""

import time
from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

from kaspar.base.error_codes import RETRIABLE
from kaspar.base.errors import ErrorCode, KasparError, MalformedBytes, Refused
from kaspar.base.ids import ZERO_UUID, TopicPartition, uuid_to_text
from kaspar.client.blocking import Connection
from kaspar.client.cluster import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, Client
from kaspar.protocol.messages import fetch as messages
from kaspar.records.column_reading import offset_behind

READ_UNCOMMITTED = 0
READ_COMMITTED = 1

MAX_BYTES = 2 * 1024 * 1024
"""Of an answer. It has to be whole before anybody can look into it, and larger ones fall out of a core's caches."""

_BACKOFF_S = 0.05
_EMPTY_ANSWERS = 2  # so many in a row, of logs that have all offsets of the range: no records are left below its end
_NO_SUCH_TOPIC = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
_NO_SUCH_TOPIC_S = 3.0  # for brokers that have not heard of it yet; a topic that was deleted does not come back
_FIRST_BYTES = 128 * 1024
_FIRST_BYTES_PER_OFFSET = 1024  # until it is known how large the records are


class Fetched(NamedTuple):
    """An answer. `records` are whole batches, the first with the offset that was asked for, and maybe a part of one."""

    records: memoryview
    aborted: tuple[tuple[int, int], ...]
    """The producer and first offset of each aborted transaction among the records: of read_committed alone."""
    next_offset: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int


class OffsetGone(KasparError):
    """The log does not have the offset: it starts later or ends sooner."""

    def __init__(self, partition: TopicPartition, asked: int, log_start: int, log_end: int) -> None:
        super().__init__(f"{partition} has no offset {asked}: its log goes from {log_start} to {log_end}")
        self.partition = partition
        self.asked = asked
        self.log_start = log_start
        self.log_end = log_end


class TopicMadeAnew(KasparError):
    """The topic was deleted, and another has its name now."""

    def __init__(self, partition: TopicPartition, expected: UUID, found: UUID) -> None:
        super().__init__(
            f"topic {partition.topic} was deleted and made anew: its id was {uuid_to_text(expected)} and is now "
            f"{uuid_to_text(found)}"
        )
        self.partition = partition
        self.expected = expected
        self.found = found


class EndOutOfReach(KasparError):
    """The log did not come to the end of the range within the client's time limit."""

    def __init__(self, partition: TopicPartition, position: int, until: int, readable: int, timeout_s: float) -> None:
        super().__init__(
            f"{partition} was to be read up to offset {until}, and for {timeout_s:g} s nothing came from offset "
            f"{position} on: it can be read up to {readable}"
        )
        self.partition = partition
        self.position = position
        self.until = until
        self.readable = readable
        """The high watermark; under read_committed the last stable offset."""


def fetch_ahead(
    client: Client,
    partition: TopicPartition,
    start: int,
    *,
    until: int,
    topic_id: UUID = ZERO_UUID,
    isolation_level: int = READ_UNCOMMITTED,
    max_bytes: int = MAX_BYTES,
    min_bytes: int = 1,
    max_wait_ms: int = 500,
    rack: str = "",
) -> Iterator[Fetched]:
    """Answers with all batches that have an offset from `start` on and below `until`, in order, none twice.

    A `topic_id` other than zero says which topic is meant, should another of its name take its place. `rack` is where
    the caller is, as the consumer's client.rack.
    """
    with _Fetch(
        client, partition, start, until, topic_id, isolation_level, max_bytes, min_bytes, max_wait_ms, rack
    ) as fetch:
        while (fetched := fetch.next()) is not None:
            yield fetched


class _Fetch:
    def __init__(
        self,
        client: Client,
        partition: TopicPartition,
        start: int,
        until: int,
        topic_id: UUID,
        isolation_level: int,
        max_bytes: int,
        min_bytes: int,
        max_wait_ms: int,
        rack: str,
    ) -> None:
        self._client = client
        self._partition = partition
        self._position = start
        self._until = until
        self._topic_id = topic_id
        self._isolation_level = isolation_level
        self._max_bytes = max_bytes
        self._min_bytes = min_bytes
        self._max_wait_ms = max_wait_ms
        self._rack = rack
        self._replica_id: int | None = None  # the follower that the leader has named, while it is read
        self._fetched_bytes = 0
        self._fetched_offsets = 0
        self._connection: Connection | None = None  # if there is one, a request is under way
        self._no_such_topic_since: float | None = None  # every answer since then has said so

    def next(self) -> Fetched | None:
        """The next answer that brings something; None at the end of the range."""
        deadline = time.monotonic() + self._client.timeout_s
        empty_answers = 0
        while self._position < self._until:
            try:
                found = self._receive()
            except (Refused, OSError) as failure:
                self._hang_up()
                if self._replica_id is not None:
                    self._stay_with_leader()
                    continue
                self._judge(failure, deadline)
                self._client.forget_leader(self._partition)
                time.sleep(_BACKOFF_S)
                continue
            self._no_such_topic_since = None
            if self._rack and found is not None and found.preferred_read_replica >= 0:
                self._turn_to(found.preferred_read_replica)
                continue
            fetched = self._fetched(found)
            if fetched.next_offset > self._position:
                self._go_on(fetched)
                return fetched
            readable = fetched.last_stable_offset if self._isolation_level else fetched.high_watermark
            if self._replica_id is not None and found is not None and readable < self._until:
                self._stay_with_leader()
                continue
            empty_answers = empty_answers + 1 if readable >= self._until else 0
            if empty_answers == _EMPTY_ANSWERS:
                self._position = self._until
            elif time.monotonic() > deadline:
                raise EndOutOfReach(self._partition, self._position, self._until, readable, self._client.timeout_s)
            else:
                self._send_ahead()
        return None

    # --- requests -----------------------------------------------------------------------------------------------------

    def _send(self, connection: Connection) -> None:
        max_bytes = self._bytes_to_ask_for()
        partition = messages.FetchPartition(
            partition=self._partition.partition, fetch_offset=self._position, partition_max_bytes=max_bytes
        )
        topic_id = self._topic_id if self._topic_id != ZERO_UUID else self._client.topic_id_of(self._partition.topic)
        topic = messages.FetchTopic(topic=self._partition.topic, topic_id=topic_id, partitions=(partition,))
        connection.send(
            messages.FetchRequest(
                max_wait_ms=self._max_wait_ms,
                min_bytes=self._min_bytes,
                max_bytes=max_bytes,
                isolation_level=self._isolation_level,
                topics=(topic,),
                rack_id=self._rack,
            )
        )

    def _bytes_to_ask_for(self) -> int:
        """No more than the range has left, as far as can be told: what comes behind it would be sent for nothing."""
        left = self._until - self._position
        if self._fetched_offsets:
            wanted = _FIRST_BYTES + left * self._fetched_bytes * 5 // (self._fetched_offsets * 4)
        else:
            wanted = _FIRST_BYTES + left * _FIRST_BYTES_PER_OFFSET
        return min(self._max_bytes, wanted)

    def _send_ahead(self) -> None:
        """Where this fails, the next call finds no request under way, and connects anew."""
        assert self._connection is not None
        try:
            self._send(self._connection)
        except OSError:
            self._hang_up()

    def _go_on(self, fetched: Fetched) -> None:
        self._fetched_bytes += len(fetched.records)
        self._fetched_offsets += fetched.next_offset - self._position
        self._position = fetched.next_offset
        if self._position < self._until:
            self._send_ahead()

    # --- answers ------------------------------------------------------------------------------------------------------

    def _receive(self) -> messages.PartitionData | None:
        """What the answer has of the partition: None if nothing, as when a quota holds the client back."""
        if self._connection is None:
            broker_id = self._client.leader_of(self._partition)
            self._check_topic_id()
            if self._replica_id is not None:
                broker_id = self._replica_id
                if broker_id not in self._client.broker_ids():
                    raise Refused(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker_id} is not in the cluster now")
            self._connection = self._client.connect(broker_id, records_in_place=True)
            self._send(self._connection)
        answer = self._connection.receive().message
        assert isinstance(answer, messages.FetchResponse)
        self._refuse(answer.error_code)
        for topic in answer.responses:
            for found in topic.partitions:
                self._refuse(found.error_code)
                return found
        return None

    def _fetched(self, found: messages.PartitionData | None) -> Fetched:
        if found is None:
            return Fetched(memoryview(b""), (), self._position, -1, -1, -1)
        records = memoryview(found.records or b"")
        try:
            behind = offset_behind(records)
        except MalformedBytes as error:
            raise MalformedBytes(f"{self._partition}: {error}") from error
        if behind is None and len(records):
            raise MalformedBytes(f"{self._partition}: from offset {self._position} on came no whole batch")
        aborted = tuple((each.producer_id, each.first_offset) for each in found.aborted_transactions or ())
        return Fetched(
            records,
            aborted if self._isolation_level else (),
            self._position if behind is None else behind,
            found.high_watermark,
            found.last_stable_offset,
            found.log_start_offset,
        )

    def _refuse(self, error_code: int) -> None:
        if error_code != ErrorCode.NONE:
            code = ErrorCode(error_code)
            raise Refused(code, f"fetching from {self._partition}: {code.name}")

    def _judge(self, failure: Refused | OSError, deadline: float) -> None:
        """Raise what ends the range; return if it may pass."""
        now = time.monotonic()
        if isinstance(failure, Refused) and failure.code in _NO_SUCH_TOPIC:
            if self._no_such_topic_since is None:
                self._no_such_topic_since = now
            deadline = self._no_such_topic_since + _NO_SUCH_TOPIC_S
        else:
            self._no_such_topic_since = None
        if isinstance(failure, Refused):
            if failure.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                self._judge_offset(is_over=now > deadline)
            elif failure.code not in RETRIABLE:
                raise failure
        if now > deadline:
            raise failure

    def _judge_offset(self, *, is_over: bool) -> None:
        """A leader that is behind may not know the offset yet: gone is what the log has not, by its own word."""
        log_start = self._client.offset_at(*self._partition, EARLIEST_TIMESTAMP)
        log_end = self._client.offset_at(*self._partition, LATEST_TIMESTAMP)
        self._check_topic_id()
        if is_over or not log_start <= self._position <= log_end:
            raise OffsetGone(self._partition, self._position, log_start, log_end)

    def _check_topic_id(self) -> None:
        found = self._client.topic_id_of(self._partition.topic)
        if ZERO_UUID not in (self._topic_id, found) and found != self._topic_id:
            raise TopicMadeAnew(self._partition, self._topic_id, found)

    def _turn_to(self, replica_id: int) -> None:
        """Read that replica from here on, as the leader says. It is not followed from one replica to the next."""
        if self._replica_id is None:
            self._hang_up()
            self._replica_id = replica_id
        else:
            self._stay_with_leader()

    def _stay_with_leader(self) -> None:
        self._hang_up()
        self._replica_id, self._rack = None, ""

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> "_Fetch":
        return self

    def __exit__(self, *exception: object) -> None:
        self._hang_up()
