"""Reads the contents of the log directories of a stopped Kafka node, without changing them."""

import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kaspar.base.errors import KasparError
from kaspar.base.ids import TopicPartition
from kaspar.metadata.topic_names import CLUSTER_METADATA_TOPIC
from kaspar.storage.directories.folder_metadata import MetaProperties, read_meta_properties, read_partition_metadata
from kaspar.storage.disk.file_names import (
    CLEAN_SHUTDOWN,
    CLUSTER_METADATA_FOLDER,
    LOG,
    META_PROPERTIES,
    parse_mark,
    parse_numbered,
    parse_partition,
)
from kaspar.storage.disk.files import Files

_MAGIC_AT: Final = 16
_MAGIC: Final = 2


@dataclass(frozen=True, slots=True)
class FoundPartition:
    """`topic_id` is read from the folder. `old_segments` begin with a batch in a format from before Kafka 0.11."""

    topic_partition: TopicPartition
    directory: str
    topic_id: uuid.UUID | None
    old_segments: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        return os.path.join(self.directory, str(self.topic_partition))


@dataclass(frozen=True, slots=True)
class KafkaFolder:
    """`directories` has the meta.properties of each path in log.dirs. `unclean` are the paths whose logs were not
    closed cleanly. `moving` are folders of replicas that were being moved between directories.
    """

    directories: Mapping[str, MetaProperties]
    partitions: Sequence[FoundPartition] = ()
    unclean: Sequence[str] = ()
    moving: Sequence[str] = ()

    @property
    def directory_ids(self) -> dict[uuid.UUID, str]:
        return {meta.directory_id: path for path, meta in self.directories.items() if meta.directory_id is not None}


def find_metadata_log(configured: str | None, log_dirs: Sequence[str]) -> str | None:
    """The folder of Kafka's metadata log: in metadata.log.dir, or in one of log.dirs (Kafka uses the first). None if
    there is none.
    """
    places = log_dirs if configured is None else (configured,)
    found = [folder for place in places if os.path.isdir(folder := os.path.join(place, CLUSTER_METADATA_FOLDER))]
    if len(found) > 1:
        raise KasparError(f"there are several metadata logs: {', '.join(found)}: move away those that are not in use")
    return found[0] if found else None


def read_folder(files: Files, log_dirs: Sequence[str]) -> KafkaFolder:
    """Read the log directories. Raises KasparError for a directory that Kafka has not formatted."""
    directories: dict[str, MetaProperties] = {}
    partitions: list[FoundPartition] = []
    unclean, moving = [], []
    for path in log_dirs:
        meta = read_meta_properties(files, path)
        if meta is None:
            raise KasparError(
                f"{path} has no {META_PROPERTIES}: it is not a log directory of Kafka, or its volume is not mounted"
            )
        directories[path] = meta
        names = sorted(files.listdir(path))
        partitions += _partitions(files, path, names)
        if CLEAN_SHUTDOWN not in names:
            unclean.append(path)
        moving += [os.path.join(path, name) for name in names if parse_mark(name) == "future"]
    return KafkaFolder(directories, partitions, unclean, moving)


def _partitions(files: Files, directory: str, names: Sequence[str]) -> Iterator[FoundPartition]:
    for name in names:
        partition = parse_partition(name) if parse_mark(name) is None else None
        folder = os.path.join(directory, name)
        if partition is None or partition.topic == CLUSTER_METADATA_TOPIC or not os.path.isdir(folder):
            continue
        yield FoundPartition(
            partition, directory, read_partition_metadata(files, folder), tuple(_old_segments(files, folder))
        )


def _old_segments(files: Files, folder: str) -> Iterator[str]:
    for name in files.listdir(folder):
        named = parse_numbered(name)
        if named is None or named[1] != LOG:
            continue
        path = os.path.join(folder, name)
        fd = files.open(path)
        try:
            magic = files.pread(fd, 1, _MAGIC_AT)
        finally:
            files.close(fd)
        if magic and magic[0] < _MAGIC:
            yield path
