"""Requests to the brokers: the partitions of a topic, their offsets, and records of many of them at once.

Every call is one request to each leader of its partitions. A partition without a leader, or one whose leader does not
respond, does not affect the others: its problem is reported together with their results.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from kaspar.base.errors import ErrorCode, MalformedBytes, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.cluster import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, Client
from kaspar.client.offsets import ListedOffset, ask_offsets
from kaspar.console.messages.reading.streams import Bounds, Fetched, Stream
from kaspar.console.problems import NotThere
from kaspar.protocol.isolation_level import READ_COMMITTED, READ_UNCOMMITTED
from kaspar.protocol.messages import fetch as messages

RESPONSE_BYTES: Final = 8 * 1024 * 1024
_MOST_PARTITION_BYTES: Final = 1024 * 1024
_LEAST_PARTITION_BYTES: Final = 16 * 1024
_LIST_TIMEOUT_MS: Final = 10_000
_LONGEST_THROTTLE_S: Final = 0.5
"""The maximum wait when a broker throttles, so that a page can check its time budget in between."""


@dataclass(slots=True)
class TopicLayout:
    """The leaders of a topic's partitions. `problems` has a sentence for each partition that cannot be read now."""

    topic: str
    topic_id: UUID
    leaders: dict[int, int]
    partition_count: int
    """The number of partitions of the topic; `leaders` may have fewer."""
    problems: dict[int, str] = field(default_factory=dict)

    def lose(self, partition: int, problem: str) -> None:
        self.leaders.pop(partition, None)
        self.problems[partition] = problem


def look_up(client: Client, topic: str, partitions: Sequence[int] = ()) -> TopicLayout:
    """The layout of these partitions, or of all. Raises Refused and NotThere."""
    response = client.refresh_metadata([topic])
    (found,) = response.topics
    if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise NotThere(f"There is no topic {topic}.")
    if found.error_code != ErrorCode.NONE:
        code = ErrorCode(found.error_code)
        raise Refused(code, f"Topic {topic} cannot be read: {code.name}.")
    leaders = {each.partition_index: each.leader_id for each in found.partitions}
    layout = TopicLayout(topic, found.topic_id, leaders, len(leaders))
    if missing := set(partitions) - set(layout.leaders):
        raise NotThere(f"Topic {topic} has no partition {min(missing)}: it has {len(layout.leaders)}.")
    if partitions:
        layout.leaders = {partition: layout.leaders[partition] for partition in partitions}
    brokers = {broker.node_id for broker in response.brokers}
    for partition, leader in list(layout.leaders.items()):
        if leader not in brokers:
            layout.lose(partition, "it has no leader")
    return layout


def offsets_at(client: Client, layout: TopicLayout, timestamp: int, isolation_level: int = 0) -> dict[int, int]:
    """The first offset at or after the time, or at one of ListOffsets' special times; -1 where there is none."""
    by_leader: dict[int, dict[TopicPartition, int]] = defaultdict(dict)
    for partition, leader in layout.leaders.items():
        by_leader[leader][TopicPartition(layout.topic, partition)] = timestamp
    found: dict[int, int] = {}
    for leader, asked in by_leader.items():
        listed: Mapping[TopicPartition, ListedOffset | int]
        try:
            listed = ask_offsets(client, leader, asked, isolation_level, _LIST_TIMEOUT_MS)
        except OSError as error:
            listed = {}
            reason = f"broker {leader} does not respond ({error})"
        else:
            reason = "its leader returned no offset"
        for where in asked:
            each = listed.get(where, reason)
            if isinstance(each, ListedOffset):
                found[where.partition] = each.offset
            else:
                _refuse_topic(layout.topic, each)
                layout.lose(where.partition, each if isinstance(each, str) else _name(each))
    return found


def bounds_of(client: Client, layout: TopicLayout, *, is_committed: bool) -> dict[int, Bounds]:
    """The bounds of each partition. With `is_committed`, it ends at its last stable offset."""
    starts = offsets_at(client, layout, EARLIEST_TIMESTAMP)
    stable = offsets_at(client, layout, LATEST_TIMESTAMP, READ_COMMITTED)
    ends = stable if is_committed else offsets_at(client, layout, LATEST_TIMESTAMP)
    return {
        partition: Bounds(starts[partition], stable[partition], ends[partition]) for partition in sorted(layout.leaders)
    }


def fetch_round(client: Client, layout: TopicLayout, streams: Iterable[Stream]) -> int:
    """Fetch what the streams need, with one request to each leader. Returns the bytes of records.

    Below the last stable offset the requests are read_committed, because only these responses list the aborted
    transactions. From there on all transactional records belong to transactions that may still be open.
    """
    requests: dict[tuple[int, int], list[tuple[Stream, int]]] = defaultdict(list)
    for stream in streams:
        offset = stream.wanted()
        if offset is None:
            continue
        partition = stream.where.partition
        if partition not in layout.leaders:
            stream.stop()
            continue
        level = READ_COMMITTED if offset < stream.bounds.last_stable else READ_UNCOMMITTED
        requests[layout.leaders[partition], level].append((stream, offset))
    return sum(_fetch(client, layout, leader, level, asked) for (leader, level), asked in requests.items())


def _fetch(
    client: Client, layout: TopicLayout, leader: int, isolation_level: int, asked: list[tuple[Stream, int]]
) -> int:
    each_bytes = max(_LEAST_PARTITION_BYTES, min(_MOST_PARTITION_BYTES, RESPONSE_BYTES // len(asked)))
    request = messages.FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=RESPONSE_BYTES,
        isolation_level=isolation_level,
        topics=(
            messages.FetchTopic(
                topic=layout.topic,
                topic_id=layout.topic_id,
                partitions=tuple(
                    messages.FetchPartition(
                        partition=stream.where.partition, fetch_offset=offset, partition_max_bytes=each_bytes
                    )
                    for stream, offset in asked
                ),
            ),
        ),
    )
    by_partition = {stream.where.partition: stream for stream, _ in asked}
    first = asked[0][0].where.partition
    try:
        response = client.request_broker(leader, request, messages.FetchResponse)
    except OSError as error:
        for partition in by_partition:
            _lose(layout, by_partition[partition], f"broker {leader} does not respond ({error})")
        return 0
    if response.error_code != ErrorCode.NONE:
        raise Refused(ErrorCode(response.error_code), f"Fetching from {layout.topic}: {_name(response.error_code)}.")
    if not response.responses:  # the broker throttles this client
        time.sleep(min(response.throttle_time_ms / 1000, _LONGEST_THROTTLE_S))
    size = 0
    for topic in response.responses:
        for found in topic.partitions:
            stream = by_partition[found.partition_index]
            size += _give(layout, stream, found, was_first=found.partition_index == first)
    return size


def _give(layout: TopicLayout, stream: Stream, found: messages.PartitionData, *, was_first: bool) -> int:
    if found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
        _lose(layout, stream, "the records at this position have since been deleted")
        return 0
    if found.error_code != ErrorCode.NONE:
        _refuse_topic(layout.topic, found.error_code)
        _lose(layout, stream, _name(found.error_code))
        return 0
    batches = memoryview(found.records or b"")
    aborted = tuple((each.producer_id, each.first_offset) for each in found.aborted_transactions or ())
    try:
        stream.give(Fetched(batches, aborted, was_first))
    except MalformedBytes as problem:
        _lose(layout, stream, str(problem))
    return len(batches)


def _lose(layout: TopicLayout, stream: Stream, problem: str) -> None:
    layout.lose(stream.where.partition, problem)
    stream.stop()


def _refuse_topic(topic: str, error: int | str) -> None:
    """Raises Refused for an error that concerns the whole topic, not only a partition."""
    if error == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        raise Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"You are not permitted to read topic {topic}.")


def _name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:  # an error code of a newer version of Kafka
        return f"error {code}"
