"""Which folder is a partition's log, where several carry its name or the topic behind the name has changed. Pure.

A topic may have been deleted, and made again under the same name, while a log directory was away. When that directory
is back, its folder must neither stop the start nor give old records to the new topic. The topic id in the folder
decides first, then the directory that the metadata store has for the partition.
"""

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kaspar.base.errors import KasparError
from kaspar.base.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class Expected:
    """What the metadata store knows of this broker's partitions: the id of each topic by its name, the ids of topics
    that are deleted, and in which log directory each partition is.
    """

    topic_ids: Mapping[str, uuid.UUID] = field(default_factory=dict)
    deleted: Collection[uuid.UUID] = ()
    directories: Mapping[TopicPartition, uuid.UUID] = field(default_factory=dict)


NOTHING_KNOWN = Expected()


class FoundFolder(NamedTuple):
    path: str
    topic_id: uuid.UUID | None
    directory_id: uuid.UUID | None


def choose_folder(partition: TopicPartition, found: Sequence[FoundFolder], expected: Expected) -> FoundFolder:
    """The one of several folders of a partition, none of them of a deleted topic, that is its log. KasparError if none
    can be told from the others.
    """
    topic_id = expected.topic_ids.get(partition.topic)
    of_topic = [one for one in found if topic_id is not None and one.topic_id == topic_id]
    candidates = of_topic or found
    if len(candidates) > 1:
        directory_id = expected.directories.get(partition)
        candidates = [one for one in candidates if directory_id is not None and one.directory_id == directory_id]
    if len(candidates) != 1:
        raise KasparError(
            f"{partition} is in {' and in '.join(one.path for one in found)}: move all but one of these folders out of "
            "the log directories"
        )
    return candidates[0]
