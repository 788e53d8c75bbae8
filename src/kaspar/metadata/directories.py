"""The known log directories of each broker, and which of them has the embedded store.

Only the broker itself reads and writes its list, and `kafka-storage format` while the broker is down.
"""

import uuid
from collections.abc import Collection, Mapping
from pathlib import Path

from kaspar.base.errors import KasparError
from kaspar.base.ids import BrokerId, uuid_from_text, uuid_to_text
from kaspar.metadata.image import ClusterImage
from kaspar.metadata.layout import json_values, store_paths
from kaspar.metadata.sqlite import FILE_NAME
from kaspar.metadata.store import Create, Put, Store, UnknownOutcome, VersionConflict
from kaspar.storage.disk.file_names import CLUSTER_METADATA_FOLDER

_MAX_ATTEMPTS = 20
_UNREAD = uuid.UUID("5f0c6a3e-3f6b-4a8e-9d0b-7c1e52d6a9b4")


def id_of_unread(path: str) -> uuid.UUID:
    """A placeholder id for a log directory that may have logs and whose id was never read, because it was not mounted
    when the first release that records the ids was started.
    """
    return uuid.uuid5(_UNREAD, path)


async def known_directories(store: Store, broker_id: BrokerId) -> dict[uuid.UUID, str] | None:
    """The paths of a broker's log directories by id. None if the broker has never recorded them."""
    node = await store.get(_path(broker_id))
    if node is None:
        return None
    return {uuid_from_text(directory): path for directory, path in json_values.decode(node.value).items()}


async def remember_directories(store: Store, broker_id: BrokerId, directories: Mapping[uuid.UUID, str]) -> None:
    """Record a broker's log directories. Writes nothing if they are unchanged."""
    path = _path(broker_id)
    value = json_values.encode({uuid_to_text(directory): place for directory, place in directories.items()})
    for _ in range(_MAX_ATTEMPTS):
        try:
            node = await store.get(path)
            if node is None:
                await store.transact([Create(path, value)])
            elif node.value != value:
                await store.transact([Put(path, value, node.version)])
            return
        except (VersionConflict, UnknownOutcome):
            continue
    raise UnknownOutcome("the metadata store does not respond")


def still_needed(
    known: Mapping[uuid.UUID, str], image: ClusterImage, broker_id: BrokerId, unusable: Collection[str]
) -> dict[uuid.UUID, str]:
    """A broker's `known` directories without those that it no longer needs. A directory is needed if it may have one of
    the broker's logs, or if its path is among the currently `unusable` ones.

    A directory that an operator removed from `log.dirs` is dropped when no partition is in it any more. While the
    directory of some partition is unknown, it may be any of them.
    """
    mine = [
        partition.directory_of(broker_id)
        for topic in image.topics.values()
        for partition in topic.partitions
        if broker_id in partition.replicas
    ]
    return {
        directory: path for directory, path in known.items() if path in unusable or directory in mine or None in mine
    }


def _path(broker_id: BrokerId) -> str:
    return f"{store_paths.BROKER_DIRECTORIES}/{broker_id}"


def store_folder(configured: str | None, log_dirs: Collection[str], formatted: Collection[str]) -> Path:
    """The folder of the embedded store: `metadata.log.dir`, or else the log directory that has the store, or else, for
    a new store, the first log directory.

    Raises KasparError if there seems to be a store that cannot be found, because then a broker must not start with a
    new one.
    """
    found = [folder for folder in log_dirs if (Path(folder) / FILE_NAME).exists()]
    if configured is not None and (Path(configured) / FILE_NAME).exists():
        return Path(configured)
    if configured is not None and found:
        raise KasparError(
            f"the metadata store is in {found[0]}, and metadata.log.dir is {configured}: move {FILE_NAME} there, with "
            f"the files beside it that begin with this name, or set metadata.log.dir to {found[0]}"
        )
    if len(found) > 1:
        raise KasparError(
            f"there are metadata stores in {' and in '.join(found)}: move {FILE_NAME} away where it is not in use"
        )
    if found:
        return Path(found[0])
    refuse_unadopted(log_dirs if configured is None else (configured, *log_dirs))
    if formatted and (configured is not None or len(formatted) < len(log_dirs)):
        raise KasparError(
            f"there is no metadata store ({FILE_NAME}), and {', '.join(formatted)} belongs to a cluster. If a volume "
            f"is to be mounted at {_others(configured, log_dirs, formatted)}, mount it and start the broker again. If "
            "the store is lost, 'kafka-storage format --ignore-formatted -c FILE' creates an empty one: the logs "
            "stay, but their topics are lost"
        )
    return Path(configured or next(iter(log_dirs)))


def refuse_unadopted(folders: Collection[str]) -> None:
    """Raise KasparError if one of the folders has Kafka's metadata, because a new store would not have its topics."""
    for folder in folders:
        metadata_log = Path(folder) / CLUSTER_METADATA_FOLDER
        if metadata_log.is_dir():
            raise KasparError(
                f"{metadata_log} has the metadata of Apache Kafka, and there is no metadata store ({FILE_NAME}): "
                "'kaspar metadata adopt FILE', where FILE is the properties file, imports it. To start with an "
                "empty cluster, move that folder away"
            )


def _others(configured: str | None, log_dirs: Collection[str], formatted: Collection[str]) -> str:
    return configured or ", ".join(folder for folder in log_dirs if folder not in formatted)
