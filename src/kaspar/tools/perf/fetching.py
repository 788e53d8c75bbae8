"""Reads partitions continuously, over one connection to each leader. The next request is sent before a response is
processed. Leaders that move or are unavailable are looked up again.
"""

import select
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from kaspar.base.error_codes import RETRIABLE
from kaspar.base.errors import ErrorCode, MalformedBytes, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.client.blocking import Connection
from kaspar.protocol.messages import fetch as messages
from kaspar.records.column_reading import offset_behind

_BACKOFF_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class FetchTerms:
    """Fetch parameters, named like Kafka's settings."""

    partition_max_bytes: int = 1 << 20
    max_bytes: int = 50 << 20
    min_bytes: int = 1
    max_wait_ms: int = 500
    isolation_level: int = 0


class FetchedRecords(NamedTuple):
    """Batches of a partition, starting at `position`. The memory is valid until the next poll."""

    partition: TopicPartition
    position: int
    records: memoryview
    aborted: tuple[tuple[int, int], ...]


class Fetcher:
    def __init__(self, client: Client, terms: FetchTerms) -> None:
        self._client = client
        self._terms = terms
        self._positions: dict[TopicPartition, int] = {}
        self._links: dict[int, Connection] = {}  # each has a request in flight
        self._not_before_s = 0.0

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions from now on. Requests in flight are dropped."""
        self.close()
        self._positions = dict(positions)

    def poll(self, timeout_s: float) -> Iterator[FetchedRecords]:
        """What arrives within this time, if anything. Raises Refused for errors that are not retriable."""
        self._send_requests()
        readable = [link for link in self._links.values() if link.has_buffered]
        if not readable and self._links:
            readable, _, _ = select.select(self._links.values(), (), (), timeout_s)
        elif not self._links:
            time.sleep(min(timeout_s, _BACKOFF_S))
        for leader, link in list(self._links.items()):
            if link in readable:
                yield from self._receive(leader, link)

    def close(self) -> None:
        while self._links:
            self._links.popitem()[1].close()

    def _send_requests(self) -> None:
        """Send a request to every leader that has none in flight."""
        if time.monotonic() < self._not_before_s:
            return
        by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
        try:
            for partition in self._positions:
                by_leader[self._client.leader_of(partition)].append(partition)
            for leader, partitions in by_leader.items():
                if leader not in self._links:
                    connection = self._client.connect(leader, records_in_place=True)
                    self._links[leader] = connection
                    self._send(connection, partitions)
        except OSError:
            self._back_off()
        except Refused as refused:
            if refused.code not in RETRIABLE:
                raise
            self._back_off()

    def _back_off(self) -> None:
        """Forget the leaders, which may have moved, and delay the next request."""
        self.close()
        for partition in self._positions:
            self._client.forget_leader(partition)
        self._not_before_s = time.monotonic() + _BACKOFF_S

    def _send(self, connection: Connection, partitions: list[TopicPartition]) -> None:
        terms = self._terms
        by_topic: dict[str, list[messages.FetchPartition]] = defaultdict(list)
        for topic, number in partitions:
            by_topic[topic].append(
                messages.FetchPartition(
                    partition=number,
                    fetch_offset=self._positions[TopicPartition(topic, number)],
                    partition_max_bytes=terms.partition_max_bytes,
                )
            )
        connection.send(
            messages.FetchRequest(
                max_wait_ms=terms.max_wait_ms,
                min_bytes=terms.min_bytes,
                max_bytes=terms.max_bytes,
                isolation_level=terms.isolation_level,
                topics=tuple(
                    messages.FetchTopic(topic=topic, topic_id=self._client.topic_id_of(topic), partitions=tuple(each))
                    for topic, each in by_topic.items()
                ),
            )
        )

    def _receive(self, leader: int, link: Connection) -> Iterator[FetchedRecords]:
        try:
            response = link.receive().message
        except (OSError, MalformedBytes):
            self._back_off()
            return
        assert isinstance(response, messages.FetchResponse)
        found = list(self._found(response))
        if leader in self._links:  # no error: send the next request before this response is processed
            mine = [where for where in self._positions if self._client.leader_of(where) == leader]
            try:
                self._send(link, mine)
            except OSError:
                self._back_off()
        yield from found

    def _found(self, response: messages.FetchResponse) -> Iterator[FetchedRecords]:
        if response.error_code != ErrorCode.NONE:
            self._fail(response.error_code, "fetching")
        names = {self._client.topic_id_of(where.topic): where.topic for where in self._positions}
        for topic in response.responses:
            name = topic.topic or names.get(topic.topic_id, "")
            for each in topic.partitions:
                where = TopicPartition(name, each.partition_index)
                if each.error_code != ErrorCode.NONE:
                    self._fail(each.error_code, f"fetching from {where}")
                records = memoryview(each.records or b"")
                if (behind := offset_behind(records)) is not None and where in self._positions:
                    aborted = tuple((one.producer_id, one.first_offset) for one in each.aborted_transactions or ())
                    yield FetchedRecords(where, self._positions[where], records, aborted)
                    self._positions[where] = behind

    def _fail(self, error_code: int, doing: str) -> None:
        code = ErrorCode(error_code)
        if code not in RETRIABLE:
            raise Refused(code, f"{doing}: {code.name}")
        self._back_off()
