"""Offsets of many partitions at once: those of the logs, by timestamp, and those that a group has committed.

Each leader is asked once for all of its partitions. A partition that is no longer there is Refused at once, since its
caller has to look anew at what there is; anything that passes is asked again until the client's time is up.
"""

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar
from uuid import UUID

from kaspar.base.error_codes import RETRIABLE
from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import NO_EPOCH, NO_OFFSET, NO_TIMESTAMP, TopicPartition
from kaspar.client.cluster import Client
from kaspar.client.coordinators import CoordinatorKind, at_coordinator
from kaspar.protocol.messages import list_offsets as messages
from kaspar.protocol.messages import offset_commit, offset_fetch

_BACKOFF_S = 0.05
GONE = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
"""A partition that is not there, or not there yet."""
_Value = TypeVar("_Value")


class ListedOffset(NamedTuple):
    offset: int = NO_OFFSET
    timestamp: int = NO_TIMESTAMP
    leader_epoch: int = NO_EPOCH


class CommittedOffset(NamedTuple):
    offset: int
    leader_epoch: int = NO_EPOCH
    metadata: str = ""


# --- of the logs ------------------------------------------------------------------------------------------------------


def list_offsets(
    client: Client, timestamps: Mapping[TopicPartition, int], *, isolation_level: int = 0
) -> dict[TopicPartition, ListedOffset]:
    """The first offset at or after each timestamp (or a special one: latest, earliest); offset -1 where there is none.

    The latest is the high watermark, and with isolation level 1 (read_committed) the last stable offset.
    """
    deadline = time.monotonic() + client.timeout_s
    found: dict[TopicPartition, ListedOffset] = {}
    while True:
        missing = {where: timestamp for where, timestamp in timestamps.items() if where not in found}
        failure: Exception | None = None
        try:
            for leader, asked in by_leader(client, missing).items():
                for where, listed in _ask_leader(client, leader, asked, isolation_level):
                    if isinstance(listed, Refused):
                        failure = listed
                    else:
                        found[where] = listed
        except (OSError, Refused) as error:
            failure = error
        if failure is None:
            return found
        if time.monotonic() > deadline or (isinstance(failure, Refused) and failure.code not in RETRIABLE - GONE):
            raise failure
        time.sleep(_BACKOFF_S)
        client.refresh_metadata(sorted({where.topic for where in timestamps}))


def by_leader(
    client: Client, of_partitions: Mapping[TopicPartition, _Value]
) -> dict[int, dict[TopicPartition, _Value]]:
    """What is asked of each partition, by the id of the broker that leads it."""
    leaders: dict[int, dict[TopicPartition, _Value]] = defaultdict(dict)
    for where, value in of_partitions.items():
        leaders[client.leader_of(where)][where] = value
    return leaders


def _ask_leader(
    client: Client, leader: int, asked: Mapping[TopicPartition, int], isolation_level: int
) -> Iterator[tuple[TopicPartition, ListedOffset | Refused]]:
    request = messages.ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=tuple(
            messages.ListOffsetsTopic(
                name=topic,
                partitions=tuple(
                    messages.ListOffsetsPartition(
                        partition_index=partition, timestamp=asked[TopicPartition(topic, partition)]
                    )
                    for partition in partitions
                ),
            )
            for topic, partitions in by_topic(asked).items()
        ),
        timeout_ms=int(client.timeout_s * 1000),
    )
    answer = client.request_broker(leader, request, messages.ListOffsetsResponse)
    for topic in answer.topics:
        for partition in topic.partitions:
            where = TopicPartition(topic.name, partition.partition_index)
            if partition.error_code != ErrorCode.NONE:
                code = ErrorCode(partition.error_code)
                yield where, Refused(code, f"looking up an offset of {where}: {code.name}")
            else:
                yield where, ListedOffset(partition.offset, partition.timestamp, partition.leader_epoch)


# --- of groups --------------------------------------------------------------------------------------------------------


def commit_offsets(
    client: Client, group_id: str, offsets: Mapping[TopicPartition, int], *, topic_ids: Mapping[str, UUID] | None = None
) -> dict[TopicPartition, ErrorCode]:
    """Commit for a group without members; what was refused, and why. Offsets are those of the next record to read.

    With topic ids nothing is committed to a topic that has taken the place of the one that was read.
    """
    if not offsets:
        return {}
    ids = _topic_ids(client, offsets) if topic_ids is None else topic_ids
    request = offset_commit.OffsetCommitRequest(
        group_id=group_id,
        member_id="",
        topics=tuple(
            offset_commit.OffsetCommitRequestTopic(
                name=topic,
                topic_id=ids[topic],
                partitions=tuple(
                    offset_commit.OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=offsets[TopicPartition(topic, partition)],
                        committed_metadata="",
                    )
                    for partition in partitions
                ),
            )
            for topic, partitions in by_topic(offsets).items()
            if topic in ids
        ),
    )
    names = {topic_id: topic for topic, topic_id in ids.items()}
    refused = {where: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for where in offsets if where.topic not in ids}
    answer = at_coordinator(
        client,
        CoordinatorKind.GROUP,
        group_id,
        request,
        offset_commit.OffsetCommitResponse,
        code_of=_first_code,
        resend=True,
    )
    for topic in answer.topics:
        for partition in topic.partitions:
            if partition.error_code != ErrorCode.NONE:
                name = topic.name or names.get(topic.topic_id, "")
                refused[TopicPartition(name, partition.partition_index)] = ErrorCode(partition.error_code)
    return refused


def committed_offsets(
    client: Client, group_id: str, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, CommittedOffset]:
    """What the group has committed of these; a partition of which it has nothing is left out."""
    ids = _topic_ids(client, partitions)
    names = {topic_id: topic for topic, topic_id in ids.items()}
    request = offset_fetch.OffsetFetchRequest(
        groups=(
            offset_fetch.OffsetFetchRequestGroup(
                group_id=group_id,
                topics=tuple(
                    offset_fetch.OffsetFetchRequestTopics(
                        name=topic, topic_id=ids[topic], partition_indexes=tuple(numbers)
                    )
                    for topic, numbers in by_topic(partitions).items()
                    if topic in ids
                ),
            ),
        )
    )
    answer = at_coordinator(
        client,
        CoordinatorKind.GROUP,
        group_id,
        request,
        offset_fetch.OffsetFetchResponse,
        code_of=lambda each: each.groups[0].error_code,
        resend=True,
    )
    group = answer.groups[0]
    if group.error_code != ErrorCode.NONE:
        code = ErrorCode(group.error_code)
        raise Refused(code, f"reading the offsets of group {group_id!r}: {code.name}")
    return {
        TopicPartition(topic.name or names[topic.topic_id], partition.partition_index): CommittedOffset(
            partition.committed_offset, partition.committed_leader_epoch, partition.metadata or ""
        )
        for topic in group.topics
        for partition in topic.partitions
        if partition.error_code == ErrorCode.NONE and partition.committed_offset != NO_OFFSET
    }


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The numbers of the partitions of each topic."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for where in partitions:
        numbers[where.topic].append(where.partition)
    return numbers


def _topic_ids(client: Client, partitions: Iterable[TopicPartition]) -> dict[str, UUID]:
    """Of the topics that there are: newer versions of the requests name a topic by its id."""
    response = client.refresh_metadata(sorted({where.topic for where in partitions}))
    return {
        topic.name: topic.topic_id
        for topic in response.topics
        if topic.name is not None and topic.error_code == ErrorCode.NONE
    }


def _first_code(answer: offset_commit.OffsetCommitResponse) -> int:
    """A coordinator that moves says so of every partition."""
    return next((each.error_code for topic in answer.topics for each in topic.partitions), ErrorCode.NONE)
