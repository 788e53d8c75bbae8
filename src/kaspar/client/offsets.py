"""Offsets of many partitions at once: those of the logs, by timestamp, and the committed offsets of a group.

Each leader gets one request for all of its partitions. A partition that no longer exists is refused at once, because
the caller has to look up its partitions again; other retriable errors are retried until the client's timeout.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar
from uuid import UUID

from kaspar.base.error_codes import RETRIABLE
from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import NO_EPOCH, NO_OFFSET, NO_TIMESTAMP, TopicPartition
from kaspar.client.cluster import Client
from kaspar.client.coordinators import CoordinatorKind, request_coordinator
from kaspar.protocol.messages import list_offsets as messages
from kaspar.protocol.messages import offset_commit, offset_fetch

READ_UNCOMMITTED = 0
READ_COMMITTED = 1
"""The isolation levels of ListOffsets and Fetch."""
_BACKOFF_S = 0.05
_CLIENT = -1
"""The replica id in requests of clients."""
_OFFSET_FETCH_VERSION = 8  # the first version with several groups (KIP-709); from 10 on it has topic ids, not names
GONE = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
"""The partition does not exist, or not yet."""
_Value = TypeVar("_Value")


class ListedOffset(NamedTuple):
    offset: int = NO_OFFSET
    timestamp: int = NO_TIMESTAMP
    leader_epoch: int = NO_EPOCH


class CommittedOffset(NamedTuple):
    offset: int
    """The offset of the next record to read."""
    metadata: str


# --- of the logs ------------------------------------------------------------------------------------------------------


def offsets_at(
    client: Client, partitions: Iterable[TopicPartition], timestamp: int, *, isolation_level: int = READ_UNCOMMITTED
) -> dict[TopicPartition, int]:
    """The first offset at or after a timestamp in each partition. A short form of `list_offsets`."""
    listed = list_offsets(client, dict.fromkeys(partitions, timestamp), isolation_level=isolation_level)
    return {where: each.offset for where, each in listed.items()}


def list_offsets(
    client: Client, timestamps: Mapping[TopicPartition, int], *, isolation_level: int = READ_UNCOMMITTED
) -> dict[TopicPartition, ListedOffset]:
    """The first offset at or after each timestamp, or for a special timestamp (latest, earliest); offset -1 if there is
    none.

    The latest offset is the high watermark, or with READ_COMMITTED the last stable offset.
    """
    deadline = time.monotonic() + client.timeout_s
    timeout_ms = int(client.timeout_s * 1000)
    found: dict[TopicPartition, ListedOffset] = {}
    while True:
        missing = {where: timestamp for where, timestamp in timestamps.items() if where not in found}
        failure: Exception | None = None
        try:
            for leader, asked in by_leader(client, missing).items():
                for where, listed in ask_offsets(client, leader, asked, isolation_level, timeout_ms).items():
                    if isinstance(listed, int):
                        code = ErrorCode(listed)
                        failure = Refused(code, f"listing offsets of {where}: {code.name}")
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
    """The values of the partitions, grouped by the id of the leader."""
    leaders: dict[int, dict[TopicPartition, _Value]] = defaultdict(dict)
    for where, value in of_partitions.items():
        leaders[client.leader_of(where)][where] = value
    return leaders


def ask_offsets(
    client: Client, leader: int, wanted: Mapping[TopicPartition, int], isolation_level: int, timeout_ms: int
) -> dict[TopicPartition, ListedOffset | int]:
    """The offsets of partitions that a broker leads, or error codes."""
    request = messages.ListOffsetsRequest(
        replica_id=_CLIENT,
        isolation_level=isolation_level,
        topics=tuple(
            messages.ListOffsetsTopic(
                name=topic,
                partitions=tuple(
                    messages.ListOffsetsPartition(
                        partition_index=number, timestamp=wanted[TopicPartition(topic, number)]
                    )
                    for number in numbers
                ),
            )
            for topic, numbers in by_topic(wanted).items()
        ),
        timeout_ms=timeout_ms,
    )
    response = client.request_broker(leader, request, messages.ListOffsetsResponse)
    return {
        TopicPartition(topic.name, each.partition_index): ListedOffset(each.offset, each.timestamp, each.leader_epoch)
        if each.error_code == ErrorCode.NONE
        else each.error_code
        for topic in response.topics
        for each in topic.partitions
    }


# --- of groups --------------------------------------------------------------------------------------------------------


def commit_offsets(
    client: Client,
    group_id: str,
    offsets: Mapping[TopicPartition, int],
    *,
    topic_ids: Mapping[str, UUID] | None = None,
    metadata: str = "",
    member_id: str = "",
    member_epoch: int = -1,
) -> dict[TopicPartition, ErrorCode]:
    """Commit offsets as a member, or for a group without members. An offset is that of the next record to read. Returns
    the errors.

    With `topic_ids` nothing is committed for a topic that was deleted and recreated since. `metadata` is stored with
    every offset.
    """
    if not offsets:
        return {}
    ids = _topic_ids(client, offsets) if topic_ids is None else topic_ids
    request = offset_commit.OffsetCommitRequest(
        group_id=group_id,
        member_id=member_id,
        generation_id_or_member_epoch=member_epoch,
        topics=tuple(
            offset_commit.OffsetCommitRequestTopic(
                name=topic,
                topic_id=ids[topic],
                partitions=tuple(
                    offset_commit.OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=offsets[TopicPartition(topic, partition)],
                        committed_metadata=metadata,
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
    response = client.run(
        request_coordinator(
            client.core,
            CoordinatorKind.GROUP,
            group_id,
            request,
            offset_commit.OffsetCommitResponse,
            code_of=_first_code,
            resend=True,
        )
    )
    for topic in response.topics:
        for partition in topic.partitions:
            if partition.error_code != ErrorCode.NONE:
                name = topic.name or names.get(topic.topic_id, "")
                refused[TopicPartition(name, partition.partition_index)] = ErrorCode(partition.error_code)
    return refused


def fetch_committed(client: Client, group_id: str) -> dict[TopicPartition, CommittedOffset]:
    """The committed offsets of a group, for all of its topics; empty if there is no such group. Raises Refused."""
    of_group = offset_fetch.OffsetFetchRequestGroup(group_id=group_id, topics=None)
    response = client.run(
        request_coordinator(
            client.core,
            CoordinatorKind.GROUP,
            group_id,
            offset_fetch.OffsetFetchRequest(groups=(of_group,)),
            offset_fetch.OffsetFetchResponse,
            _OFFSET_FETCH_VERSION,
            code_of=_group_code,
            resend=True,
        )
    )
    _check_committed(group_id, _group_code(response))
    committed: dict[TopicPartition, CommittedOffset] = {}
    for topic in response.groups[0].topics:
        for partition in topic.partitions:
            _check_committed(group_id, partition.error_code)
            if partition.committed_offset != NO_OFFSET:
                where = TopicPartition(topic.name, partition.partition_index)
                committed[where] = CommittedOffset(partition.committed_offset, partition.metadata or "")
    return committed


def _check_committed(group_id: str, error_code: int) -> None:
    if error_code != ErrorCode.NONE:
        code = ErrorCode(error_code)
        raise Refused(code, f"looking up the offsets of group {group_id!r}: {code.name}")


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The partition numbers of each topic."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for where in partitions:
        numbers[where.topic].append(where.partition)
    return numbers


def _topic_ids(client: Client, partitions: Iterable[TopicPartition]) -> dict[str, UUID]:
    """The ids of the topics that exist, for newer versions of requests, which have ids instead of names."""
    response = client.refresh_metadata(sorted({where.topic for where in partitions}))
    return {
        topic.name: topic.topic_id
        for topic in response.topics
        if topic.name is not None and topic.error_code == ErrorCode.NONE
    }


def _first_code(response: offset_commit.OffsetCommitResponse) -> int:
    """The first error code of the response. A coordinator that is moving returns its error for every partition."""
    return next((each.error_code for topic in response.topics for each in topic.partitions), ErrorCode.NONE)


def _group_code(response: offset_fetch.OffsetFetchResponse) -> int:
    return response.groups[0].error_code
