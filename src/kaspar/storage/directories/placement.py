"""Decides which folder is a partition's log, if several directories have one or its topic was recreated. Pure.

A topic may have been deleted and recreated under the same name while a log directory was offline. When that directory
is back, its folder must neither prevent the start nor add old records to the new topic. The topic id in the folder
decides first, then the mark of a log that was moved between directories (`FutureLogs`), then the directory that the
metadata store has for the partition.
"""

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kaspar.base.errors import KasparError
from kaspar.base.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class Expected:
    """What the metadata store knows of this broker's partitions: the id of each topic by name, the ids of deleted
    topics, the log directory of each partition, and the paths of known directories that were not found, by id.
    """

    topic_ids: Mapping[str, uuid.UUID] = field(default_factory=dict)
    deleted: Collection[uuid.UUID] = ()
    directories: Mapping[TopicPartition, uuid.UUID] = field(default_factory=dict)
    away: Mapping[uuid.UUID, str] = field(default_factory=dict)


NOTHING_KNOWN = Expected()


class FoundFolder(NamedTuple):
    path: str
    topic_id: uuid.UUID | None
    directory_id: uuid.UUID | None
    was_moved_here: bool = False
    """Whether the log was moved here from another directory whose folder was not removed before the broker stopped."""


def choose_folder(partition: TopicPartition, found: Sequence[FoundFolder], expected: Expected) -> FoundFolder:
    """Choose the folder that is the partition's log from several, none of them of a deleted topic. Raises KasparError
    if that is unclear.
    """
    topic_id = expected.topic_ids.get(partition.topic)
    of_topic = [one for one in found if topic_id is not None and one.topic_id == topic_id]
    candidates = of_topic or found
    moved = [one for one in candidates if one.was_moved_here]
    if len(candidates) > 1 and len(moved) == 1:
        return moved[0]
    if len(candidates) > 1:
        directory_id = expected.directories.get(partition)
        candidates = [one for one in candidates if directory_id is not None and one.directory_id == directory_id]
    if len(candidates) != 1:
        raise KasparError(
            f"{partition} is in {' and in '.join(one.path for one in found)}: move all but one of these folders out of "
            "the log directories"
        )
    return candidates[0]
