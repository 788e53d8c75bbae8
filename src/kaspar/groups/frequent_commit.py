"""A commit as most are: of one partition, and without metadata. All that is known of it before its numbers come.

A consumer commits the same partitions again and again, as the same member of the same generation. So the key of its
records, and what their values end with, are made once.
"""

from kaspar.groups.offset_records import OffsetCommitKey, OffsetCommitValue, rest_of_value, write_commit, write_numbers
from kaspar.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestTopic


class FrequentCommit:
    __slots__ = (
        "_rest_of_value",
        "api_version",
        "generation_or_epoch",
        "group_id",
        "instance_id",
        "key",
        "member_id",
        "partition",
        "topic",
        "topic_id",
        "topic_id_bytes",
    )

    def __init__(self, request: OffsetCommitRequest, topic: OffsetCommitRequestTopic, api_version: int) -> None:
        """`topic` has its name and its id, and the one partition."""
        (wanted,) = topic.partitions
        key = OffsetCommitKey(group=request.group_id, topic=topic.name, partition=wanted.partition_index)
        written = write_commit(key, OffsetCommitValue(offset=0, metadata="", commit_timestamp=0))
        assert written is not None, "a commit without metadata and expire timestamp has the usual form"
        self.key = written[0]
        self._rest_of_value = rest_of_value(topic.topic_id)
        self.topic_id_bytes = topic.topic_id.bytes
        self.topic_id = topic.topic_id
        self.topic = topic.name
        self.partition = wanted.partition_index
        self.group_id = request.group_id
        self.member_id = request.member_id
        self.instance_id = request.group_instance_id
        self.generation_or_epoch = request.generation_id_or_member_epoch
        self.api_version = api_version

    def value(self, offset: int, leader_epoch: int, now_ms: int) -> bytes:
        return write_numbers(offset, leader_epoch, now_ms) + self._rest_of_value
