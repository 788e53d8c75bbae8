"""The names of the files and folders of the log, which are the same as Kafka's.

A segment's files have its base offset in twenty digits: `00000000000000000042.log`. A producer snapshot has the offset
up to which it is valid. A partition's folder is `<topic>-<partition>`; a folder that is going to be removed is
`<topic>-<partition>.<32 hex digits>-delete`, one that is kept but not used ends in `-stray`, and the copy of a log that
is being moved to another directory in `-future`. A file that recovery removes from a log without deleting it is
`00000000000000000042.log.<8 hex digits>.stray`.
"""

import re
import uuid

from kaspar.base.ids import TopicPartition

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TRANSACTION_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"
TEMPORARY = ".tmp"
STRAY = ".stray"

SEGMENT_SUFFIXES = (LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)

PARTITION_METADATA = "partition.metadata"
LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
MOVED_HERE = "moved-here"
"""In the folder of a log that was moved from another directory, where the old folder may still exist (`FutureLogs`)."""
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"
RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT = "log-start-offset-checkpoint"
REPLICATION_OFFSET_CHECKPOINT = "replication-offset-checkpoint"
CLEANER_OFFSET_CHECKPOINT = "cleaner-offset-checkpoint"

CLUSTER_METADATA_FOLDER = "__cluster_metadata-0"

_NUMBERED = re.compile(r"(\d{20})(\.[a-z]+)")
_PARTITION = re.compile(r"(.+)-(\d+)")
_MARKED = re.compile(r"(.+-\d+)\.[0-9a-f]{32}-(delete|future|stray)")
_LONGEST_NAME = 255


def numbered(offset: int, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


def parse_numbered(name: str) -> tuple[int, str] | None:
    """The offset and suffix of a segment's file or a snapshot; None for any other file."""
    found = _NUMBERED.fullmatch(name)
    return None if found is None else (int(found[1]), found[2])


def parse_partition(folder: str) -> TopicPartition | None:
    """The partition that a folder belongs to; None for any other folder."""
    found = _PARTITION.fullmatch(folder)
    if found is None or str(int(found[2])) != found[2]:
        return None
    return TopicPartition(found[1], int(found[2]))


def parse_mark(folder: str) -> str | None:
    """'delete', 'future' or 'stray' for a folder with that mark."""
    found = _MARKED.fullmatch(folder)
    return None if found is None else found[2]


def parse_future(folder: str) -> TopicPartition | None:
    """The partition that a folder with the mark 'future' is a copy of; None for any other folder."""
    found = _MARKED.fullmatch(folder)
    return parse_partition(found[1]) if found is not None and found[2] == "future" else None


def future_folder(partition: TopicPartition) -> str | None:
    """A new name for the copy of a log in another directory; None if the topic name is too long for it, as in Kafka."""
    name = f"{partition}.{uuid.uuid4().hex}-future"
    return name if len(name) <= _LONGEST_NAME else None


def folder_to_delete(partition: TopicPartition) -> str:
    """A new name for a partition's folder that is going to be removed."""
    return _marked(partition, "delete")


def stray_folder(partition: TopicPartition) -> str:
    """A new name for a folder that is kept, but no longer used for the partition."""
    return _marked(partition, "stray")


def stray_mark() -> str:
    """A new suffix for a segment's file, with which a start ignores the file."""
    return f".{uuid.uuid4().hex[:8]}{STRAY}"


def _marked(partition: TopicPartition, mark: str) -> str:
    """The folder name with a mark, cut to a length that every file system allows."""
    mark = f".{uuid.uuid4().hex}-{mark}"
    room = _LONGEST_NAME - len(mark) - len(f"-{partition.partition}")
    return f"{partition.topic[:room]}-{partition.partition}{mark}"
