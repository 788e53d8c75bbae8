"""OffsetCommit requests as a shard handles them, whether they were decoded or recognized by their bytes.

A consumer commits the same partitions again and again, as the same member of the same generation. So a commit of one
partition without metadata can be kept and reused with other numbers: its key, and the end of its value, are encoded
once.
"""

import uuid
from collections.abc import Callable
from typing import Protocol, TypeAlias

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import NO_TIMESTAMP, ZERO_UUID, ProducerIdAndEpoch
from kaspar.base.named_tuples import new_tuple
from kaspar.coordination import Decision, EncodedRecord, StoredRecord
from kaspar.groups.group import Committer, PartitionCheck
from kaspar.groups.offsets.records import OffsetCommitKey, OffsetCommitValue, rest_of_value, write_commit, write_numbers
from kaspar.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kaspar.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitRequestPartition

NO_RETENTION_TIME = -1
_NO_METADATA = ""


ReplaySingle: TypeAlias = "Callable[[SingleCommit, int, int, int], None]"
"""Called with a commit, its offset, its leader epoch and its time when it is in the log."""


class Commit(Committer, Protocol):
    def decide(
        self, check: PartitionCheck | None, now_ms: int, max_metadata_bytes: int, replay: ReplaySingle
    ) -> Decision:
        """Decide on a commit that the group has accepted; `check` is called for each partition."""
        ...


class DecodedCommit:
    """Any OffsetCommit."""

    __slots__ = ("api_version", "generation_or_epoch", "group_id", "instance_id", "member_id", "request")

    def __init__(self, request: OffsetCommitRequest, api_version: int) -> None:
        self.request = request
        self.group_id = request.group_id
        self.member_id = request.member_id
        self.instance_id = request.group_instance_id
        self.generation_or_epoch = request.generation_id_or_member_epoch
        self.api_version = api_version

    def decide(
        self, check: PartitionCheck | None, now_ms: int, max_metadata_bytes: int, replay: ReplaySingle
    ) -> Decision:
        request = self.request
        expire_timestamp = NO_TIMESTAMP
        if request.retention_time_ms != NO_RETENTION_TIME:
            expire_timestamp = now_ms + request.retention_time_ms
        records: list[StoredRecord] = []
        topics = []
        for topic in request.topics:
            partitions = []
            for wanted in topic.partitions:
                code = metadata_code(wanted, max_metadata_bytes)
                if code is ErrorCode.NONE:
                    if check is not None:
                        check(topic.name, topic.topic_id, wanted.partition_index)
                    records.append(
                        commit_record(request.group_id, topic.name, topic.topic_id, wanted, now_ms, expire_timestamp)
                    )
                partitions.append(
                    OffsetCommitResponsePartition(partition_index=wanted.partition_index, error_code=code)
                )
            topics.append(
                OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=tuple(partitions))
            )
        return Decision(records, OffsetCommitResponse(topics=tuple(topics)))


class SingleCommit:
    """A commit of one partition without metadata. `offset` and `leader_epoch` are set before each use."""

    __slots__ = (
        "_key",
        "_response",
        "_rest_of_value",
        "api_version",
        "generation_or_epoch",
        "group_id",
        "instance_id",
        "leader_epoch",
        "member_id",
        "offset",
        "partition",
        "topic",
        "topic_id",
        "topic_id_bytes",
    )

    def __init__(
        self,
        request: OffsetCommitRequest,
        topic: OffsetCommitRequestTopic,
        api_version: int,
        response: OffsetCommitResponse,
    ) -> None:
        """`topic` has both name and id, and exactly one partition; `response` has no error."""
        (wanted,) = topic.partitions
        key = OffsetCommitKey(group=request.group_id, topic=topic.name, partition=wanted.partition_index)
        encoded = write_commit(key, OffsetCommitValue(offset=0, metadata=_NO_METADATA, commit_timestamp=0))
        assert encoded is not None, "a commit without metadata and expire timestamp has the usual form"
        self._key = encoded[0]
        self._rest_of_value = rest_of_value(topic.topic_id)
        self._response = response
        self.topic_id_bytes = topic.topic_id.bytes
        self.topic_id = topic.topic_id
        self.topic = topic.name
        self.partition = wanted.partition_index
        self.group_id = request.group_id
        self.member_id = request.member_id
        self.instance_id = request.group_instance_id
        self.generation_or_epoch = request.generation_id_or_member_epoch
        self.api_version = api_version
        self.offset = wanted.committed_offset
        self.leader_epoch = wanted.committed_leader_epoch

    def decide(
        self, check: PartitionCheck | None, now_ms: int, max_metadata_bytes: int, replay: ReplaySingle
    ) -> Decision:
        if check is not None:
            check(self.topic, self.topic_id, self.partition)
        offset, leader_epoch = self.offset, self.leader_epoch
        value = write_numbers(offset, leader_epoch, now_ms) + self._rest_of_value
        record = new_tuple(EncodedRecord, ((self._key, value), lambda: replay(self, offset, leader_epoch, now_ms)))
        return Decision((record,), self._response)


class TransactionalCommit:
    """Any TxnOffsetCommit."""

    __slots__ = ("api_version", "generation_or_epoch", "group_id", "instance_id", "member_id", "producer", "request")

    def __init__(self, request: TxnOffsetCommitRequest, api_version: int) -> None:
        self.request = request
        self.group_id = request.group_id
        self.member_id = request.member_id
        self.instance_id = request.group_instance_id
        self.generation_or_epoch = request.generation_id
        self.api_version = api_version
        self.producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)


def metadata_code(
    wanted: OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition, max_metadata_bytes: int
) -> ErrorCode:
    metadata = wanted.committed_metadata
    if metadata and _java_length(metadata) > max_metadata_bytes:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.NONE


def _java_length(text: str) -> int:
    """The number of Java characters, in which the limit is measured: code points beyond the basic plane count twice."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def commit_record(
    group_id: str,
    topic: str,
    topic_id: uuid.UUID,
    wanted: OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition,
    now_ms: int,
    expire_timestamp: int,
) -> StoredRecord:
    return StoredRecord(
        OffsetCommitKey(group=group_id, topic=topic, partition=wanted.partition_index),
        OffsetCommitValue(
            offset=wanted.committed_offset,
            leader_epoch=wanted.committed_leader_epoch,
            metadata=wanted.committed_metadata or _NO_METADATA,
            commit_timestamp=now_ms,
            expire_timestamp=expire_timestamp,
            topic_id=topic_id if expire_timestamp == NO_TIMESTAMP else ZERO_UUID,  # a record cannot hold both
        ),
    )
