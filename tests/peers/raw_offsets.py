"""Offsets of groups in single requests, at any version: what is asked is what a test says, and nothing is hidden.

offsets = RawOffsets(client, "group")
assert offsets.commit("orders", {0: 5}) == {0: ErrorCode.NONE}
assert offsets.fetch("orders", 0)[0].offset == 5
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ZERO_UUID
from kaspar.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kaspar.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from kaspar.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)
from tests.peers.raw_client import RawClient
from tests.peers.raw_transactions import GROUP, find_coordinator

NAMES_TOPICS = 9  # the last version of OffsetCommit and OffsetFetch that says topics by name
NOWHERE = -1
COMMIT_BY_NAME = 9
COMMIT_BY_ID = 10
FETCH_WITH_ONE_GROUP = 7
FETCH_BY_NAME = 9
FETCH_BY_ID = 10

Codes = dict[int, ErrorCode]


class FetchedOffset(NamedTuple):
    """One partition of an OffsetFetch response."""

    offset: int
    code: ErrorCode = ErrorCode.NONE
    metadata: str | None = ""
    leader_epoch: int = -1


class GroupRefused(Exception):
    """The response is a code for the whole group."""

    def __init__(self, code: int) -> None:
        super().__init__(ErrorCode(code).name)
        self.code = ErrorCode(code)


@dataclass
class RawOffsets:
    client: RawClient
    group: str
    topic_ids: dict[str, uuid.UUID] = field(default_factory=dict)
    """Of topics that are named by id, in newer versions; what is not here is looked up."""

    def __post_init__(self) -> None:
        find_coordinator(self.client, self.group, GROUP)

    def topic_id(self, topic: str) -> uuid.UUID:
        if topic not in self.topic_ids:
            self.topic_ids[topic] = self.client.metadata(topic).topics[0].topic_id
        return self.topic_ids[topic]

    def commit(
        self,
        topic: str,
        offsets: Mapping[int, int],
        version: int = COMMIT_BY_NAME,
        *,
        metadata: str | None = "",
        leader_epoch: int = -1,
        generation: int = -1,
        member_id: str = "",
        retention_ms: int = -1,
    ) -> Codes:
        by_id = version >= COMMIT_BY_ID
        partitions = tuple(
            OffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=offset,
                committed_leader_epoch=leader_epoch,
                committed_metadata=metadata,
            )
            for partition, offset in offsets.items()
        )
        request = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            retention_time_ms=retention_ms,
            topics=(
                OffsetCommitRequestTopic(
                    name="" if by_id else topic,
                    topic_id=self.topic_id(topic) if by_id else ZERO_UUID,
                    partitions=partitions,
                ),
            ),
        )
        (committed,) = self.client.call(request, OffsetCommitResponse, version).topics
        assert (committed.name, committed.topic_id) == (request.topics[0].name, request.topics[0].topic_id)
        return {each.partition_index: ErrorCode(each.error_code) for each in committed.partitions}

    def fetch(
        self,
        topic: str,
        *partitions: int,
        version: int = FETCH_BY_NAME,
        require_stable: bool = False,
        member_id: str | None = None,
        member_epoch: int = -1,
    ) -> dict[int, FetchedOffset]:
        if version <= FETCH_WITH_ONE_GROUP:
            response = self._ask_for_one(OffsetFetchRequestTopic(name=topic, partition_indexes=partitions), version)
            return {each.partition_index: _fetched(each) for found in response.topics for each in found.partitions}
        by_id = version >= FETCH_BY_ID
        wanted = OffsetFetchRequestTopics(
            name="" if by_id else topic,
            topic_id=self.topic_id(topic) if by_id else ZERO_UUID,
            partition_indexes=partitions,
        )
        group = OffsetFetchRequestGroup(
            group_id=self.group, member_id=member_id, member_epoch=member_epoch, topics=(wanted,)
        )
        (fetched,) = self._ask(group, version, require_stable).groups
        if fetched.error_code:
            raise GroupRefused(fetched.error_code)
        (found,) = fetched.topics
        assert (found.name, found.topic_id) == (wanted.name, wanted.topic_id)
        return {each.partition_index: _fetched(each) for each in found.partitions}

    def fetch_all(
        self, *, version: int = FETCH_BY_NAME, require_stable: bool = False
    ) -> dict[tuple[str, int], FetchedOffset]:
        """By topic (its id from version 10 on) and partition."""
        if version <= FETCH_WITH_ONE_GROUP:
            response = self._ask_for_one(None, version)
            return {
                (topic.name, each.partition_index): _fetched(each)
                for topic in response.topics
                for each in topic.partitions
            }
        group = OffsetFetchRequestGroup(group_id=self.group, topics=None)
        (fetched,) = self._ask(group, version, require_stable).groups
        if fetched.error_code:
            raise GroupRefused(fetched.error_code)
        return {
            (found.name or str(found.topic_id), each.partition_index): _fetched(each)
            for found in fetched.topics
            for each in found.partitions
        }

    def _ask(self, group: OffsetFetchRequestGroup, version: int, require_stable: bool) -> OffsetFetchResponse:
        request = OffsetFetchRequest(groups=(group,), require_stable=require_stable)
        return self.client.call(request, OffsetFetchResponse, version)

    def _ask_for_one(self, topic: OffsetFetchRequestTopic | None, version: int) -> OffsetFetchResponse:
        request = OffsetFetchRequest(group_id=self.group, topics=None if topic is None else (topic,))
        response = self.client.call(request, OffsetFetchResponse, version)
        if response.error_code:
            raise GroupRefused(response.error_code)
        return response

    def delete(self, topic: str, *partitions: int) -> Codes:
        wanted = tuple(OffsetDeleteRequestPartition(partition_index=partition) for partition in partitions)
        request = OffsetDeleteRequest(
            group_id=self.group, topics=(OffsetDeleteRequestTopic(name=topic, partitions=wanted),)
        )
        response = self.client.call(request, OffsetDeleteResponse)
        if response.error_code:
            raise GroupRefused(response.error_code)
        return {
            each.partition_index: ErrorCode(each.error_code) for found in response.topics for each in found.partitions
        }


def _fetched(partition: OffsetFetchResponsePartition | OffsetFetchResponsePartitions) -> FetchedOffset:
    return FetchedOffset(
        partition.committed_offset,
        ErrorCode(partition.error_code),
        partition.metadata,
        partition.committed_leader_epoch,
    )


# -- groups without members --------------------------------------------------------------------------------------------


def commit(client: RawClient, group: str, topic: str, offsets: Mapping[int, int]) -> int:
    """Commit for a group without members; the first error code, or 0."""
    partitions = tuple(
        OffsetCommitRequestPartition(partition_index=number, committed_offset=offset, committed_metadata=None)
        for number, offset in offsets.items()
    )
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=(OffsetCommitRequestTopic(name=topic, partitions=partitions),),
    )
    response = client.call(request, OffsetCommitResponse, NAMES_TOPICS)
    codes = (each.error_code for found in response.topics for each in found.partitions)
    return next((code for code in codes if code), ErrorCode.NONE)


def committed(
    client: RawClient, group: str, topic: str, *partitions: int, stable: bool = True
) -> tuple[int, dict[int, int]]:
    """The first error code, or 0, and the offsets that came with it: -1 where there is none."""
    wanted = OffsetFetchRequestTopics(name=topic, partition_indexes=partitions)
    asked = OffsetFetchRequestGroup(group_id=group, member_id=None, topics=(wanted,))
    request = OffsetFetchRequest(groups=(asked,), require_stable=stable)
    found = client.call(request, OffsetFetchResponse, NAMES_TOPICS).groups[0]
    if found.error_code:
        return found.error_code, {}
    each_partition = found.topics[0].partitions
    code = next((each.error_code for each in each_partition if each.error_code), ErrorCode.NONE)
    return code, {each.partition_index: each.committed_offset for each in each_partition}
