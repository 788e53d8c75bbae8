"""Fetches a range of a partition's offsets. The next request is sent before a response is returned to the caller.

So the broker sends records while the caller processes the previous ones. Each fetch has its own connection. Moved
leaders and lost connections are retried within the client's timeout, which restarts with every response that has
records.

With a rack the leader may name a closer replica (KIP-392), which is then read instead. That happens only once: after
any failure of the replica, or if it lags behind the end of the range, the fetch continues with the leader.

A range is complete once its last offset is passed, whether or not a record has this offset: the last offsets may be
transaction markers, belong to aborted transactions, or be compacted away. Otherwise the fetch ends with an exception:
the log no longer has the offset (OffsetGone), the topic was recreated (TopicRecreated), the end is not reached
(EndOutOfReach), or the response has no valid batches (MalformedBytes).
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
from kaspar.protocol.isolation_level import READ_UNCOMMITTED
from kaspar.protocol.messages import fetch as messages
from kaspar.records.column_reading import offset_behind

MAX_BYTES = 2 * 1024 * 1024
"""The size of a response. It is parsed once it is complete, and a larger one would not fit into the CPU's caches."""

_BACKOFF_S = 0.05
_EMPTY_RESPONSES = 2  # after this many in a row, while the log has all offsets of the range, it has no more records
_NO_SUCH_TOPIC = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
_NO_SUCH_TOPIC_S = 3.0  # enough for brokers that do not know the topic yet; a deleted topic does not come back
_FIRST_BYTES = 128 * 1024
_FIRST_BYTES_PER_OFFSET = 1024  # until the size of the records is known


class Fetched(NamedTuple):
    """A response. `records` are complete batches, the first with the requested offset, and maybe an incomplete one."""

    records: memoryview
    aborted: tuple[tuple[int, int], ...]
    """The producer id and first offset of each aborted transaction among the records; only with read_committed."""
    next_offset: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int


class OffsetGone(KasparError):
    """The log does not have the offset: it starts later or ends earlier."""

    def __init__(self, partition: TopicPartition, asked: int, log_start: int, log_end: int) -> None:
        super().__init__(f"{partition} has no offset {asked}: its log has offsets {log_start} to {log_end}")
        self.partition = partition
        self.asked = asked
        self.log_start = log_start
        self.log_end = log_end


class TopicRecreated(KasparError):
    """The topic was deleted, and another one now has its name."""

    def __init__(self, partition: TopicPartition, expected: UUID, found: UUID) -> None:
        super().__init__(
            f"topic {partition.topic} was deleted and recreated: its id was {uuid_to_text(expected)} and is now "
            f"{uuid_to_text(found)}"
        )
        self.partition = partition
        self.expected = expected
        self.found = found


class EndOutOfReach(KasparError):
    """The log did not reach the end of the range within the client's timeout."""

    def __init__(self, partition: TopicPartition, position: int, until: int, readable: int, timeout_s: float) -> None:
        super().__init__(
            f"{partition} has no records from offset {position} to {until} after {timeout_s:g} s: "
            f"it can be read up to {readable}"
        )
        self.partition = partition
        self.position = position
        self.until = until
        self.readable = readable
        """The high watermark, or with read_committed the last stable offset."""


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
    """Responses with all batches that have an offset from `start` to below `until`, in order and without duplicates.

    With a `topic_id` other than zero, TopicRecreated is raised if the topic was recreated. `rack` is the caller's rack,
    like the consumer's client.rack.
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
        self._replica_id: int | None = None  # the follower that the leader named, while it is read
        self._fetched_bytes = 0
        self._fetched_offsets = 0
        self._connection: Connection | None = None  # if set, a request is in flight
        self._no_such_topic_since: float | None = None  # the start of an unbroken series of such responses

    def next(self) -> Fetched | None:
        """The next response that has records; None at the end of the range."""
        deadline = time.monotonic() + self._client.timeout_s
        empty_responses = 0
        while self._position < self._until:
            try:
                found = self._receive()
            except (Refused, OSError) as failure:
                self._disconnect()
                if self._replica_id is not None:
                    self._stay_with_leader()
                    continue
                self._check_retriable(failure, deadline)
                self._client.forget_leader(self._partition)
                time.sleep(_BACKOFF_S)
                continue
            self._no_such_topic_since = None
            if self._rack and found is not None and found.preferred_read_replica >= 0:
                self._read_from_replica(found.preferred_read_replica)
                continue
            fetched = self._fetched(found)
            if fetched.next_offset > self._position:
                self._advance(fetched)
                return fetched
            readable = fetched.last_stable_offset if self._isolation_level else fetched.high_watermark
            if self._replica_id is not None and found is not None and readable < self._until:
                self._stay_with_leader()
                continue
            empty_responses = empty_responses + 1 if readable >= self._until else 0
            if empty_responses == _EMPTY_RESPONSES:
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
        """An estimate of the rest of the range, because records after its end would be fetched for nothing."""
        left = self._until - self._position
        if self._fetched_offsets:
            wanted = _FIRST_BYTES + left * self._fetched_bytes * 5 // (self._fetched_offsets * 4)
        else:
            wanted = _FIRST_BYTES + left * _FIRST_BYTES_PER_OFFSET
        return min(self._max_bytes, wanted)

    def _send_ahead(self) -> None:
        """Send the next request. If this fails, the next call of `_receive` reconnects."""
        assert self._connection is not None
        try:
            self._send(self._connection)
        except OSError:
            self._disconnect()

    def _advance(self, fetched: Fetched) -> None:
        self._fetched_bytes += len(fetched.records)
        self._fetched_offsets += fetched.next_offset - self._position
        self._position = fetched.next_offset
        if self._position < self._until:
            self._send_ahead()

    # --- responses ----------------------------------------------------------------------------------------------------

    def _receive(self) -> messages.PartitionData | None:
        """The partition's part of the response. None if it has none, because the broker throttles the client."""
        if self._connection is None:
            broker_id = self._client.leader_of(self._partition)
            self._check_topic_id()
            if self._replica_id is not None:
                broker_id = self._replica_id
                if broker_id not in self._client.broker_ids():
                    raise Refused(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker_id} is not in the cluster now")
            self._connection = self._client.connect(broker_id, records_in_place=True)
            self._send(self._connection)
        response = self._connection.receive().message
        assert isinstance(response, messages.FetchResponse)
        self._refuse(response.error_code)
        for topic in response.responses:
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
            raise MalformedBytes(f"{self._partition}: the response for offset {self._position} has no complete batch")
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

    def _check_retriable(self, failure: Refused | OSError, deadline: float) -> None:
        """Raise the failure if it is final; return if the fetch may be retried."""
        now = time.monotonic()
        if isinstance(failure, Refused) and failure.code in _NO_SUCH_TOPIC:
            if self._no_such_topic_since is None:
                self._no_such_topic_since = now
            deadline = self._no_such_topic_since + _NO_SUCH_TOPIC_S
        else:
            self._no_such_topic_since = None
        if isinstance(failure, Refused):
            if failure.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                self._check_offset(is_over=now > deadline)
            elif failure.code not in RETRIABLE:
                raise failure
        if now > deadline:
            raise failure

    def _check_offset(self, *, is_over: bool) -> None:
        """Raise OffsetGone if the offset is outside the log, or the time is over. Otherwise retry, because a new leader
        may not have the offset yet.
        """
        log_start = self._client.offset_at(*self._partition, EARLIEST_TIMESTAMP)
        log_end = self._client.offset_at(*self._partition, LATEST_TIMESTAMP)
        self._check_topic_id()
        if is_over or not log_start <= self._position <= log_end:
            raise OffsetGone(self._partition, self._position, log_start, log_end)

    def _check_topic_id(self) -> None:
        found = self._client.topic_id_of(self._partition.topic)
        if ZERO_UUID not in (self._topic_id, found) and found != self._topic_id:
            raise TopicRecreated(self._partition, self._topic_id, found)

    def _read_from_replica(self, replica_id: int) -> None:
        """Read from the replica that the leader named. If that replica names another one, return to the leader."""
        if self._replica_id is None:
            self._disconnect()
            self._replica_id = replica_id
        else:
            self._stay_with_leader()

    def _stay_with_leader(self) -> None:
        self._disconnect()
        self._replica_id, self._rack = None, ""

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> "_Fetch":
        return self

    def __exit__(self, *exception: object) -> None:
        self._disconnect()
