"""The log directories of a broker: their locks, their identity, and which of them may be used.

Every directory has an id in its `meta.properties`, and the metadata store knows the ids of each broker's directories.
So a directory that is empty because its volume is not mounted is not mistaken for a new one and is not used: otherwise
offsets would be assigned a second time. A directory becomes known when a cluster without topics is started with it, or
by `kafka-storage format`.
"""

import uuid
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from kaspar.base.errors import KasparError, StorageFailure
from kaspar.base.ids import random_uuid, uuid_to_text
from kaspar.base.log import get_log
from kaspar.storage.directories import folder_metadata
from kaspar.storage.directories.directory_lock import DirectoryLock
from kaspar.storage.directories.folder_metadata import MetaProperties
from kaspar.storage.directories.log_directory import LogDirectory
from kaspar.storage.disk.files import Files
from kaspar.storage.segments.open_files import ReadHandles, WriteHandles

log = get_log(__name__)

_FORMAT = "run 'kafka-storage format --ignore-formatted -c FILE' with the broker's settings file, and start it again"

KnownIds: TypeAlias = Collection[uuid.UUID | None] | None
"""The directory ids that the cluster knows, if any. A None among them is a directory from before directories had
ids."""


@dataclass(slots=True)
class _Opened:
    directory: LogDirectory
    lock: DirectoryLock | None = None
    meta: MetaProperties | None = None


class LogDirectories:
    def __init__(
        self,
        files: Files,
        readers: ReadHandles,
        writers: WriteHandles,
        monotonic: Callable[[], float],
        *,
        lock: bool,
    ) -> None:
        self._monotonic = monotonic
        self._files = files
        self._readers = readers
        self._writers = writers
        self._lock = lock
        self._opened: dict[str, _Opened] = {}

    def look(self, paths: Collection[str], node_id: int) -> str | None:
        """Lock every directory and read its identity. Returns the id of the cluster, if any of them has one."""
        try:
            for path in paths:
                self._look_at(path)
            self.refuse_without_any()
            return self._agree(node_id)
        except KasparError:
            self.release()
            raise

    def _look_at(self, path: str) -> None:
        directory = LogDirectory(path, self._files, self._readers, self._writers, self._monotonic)
        opened = self._opened[path] = _Opened(directory)
        try:
            self._files.mkdir(path)
            if self._lock:
                opened.lock = DirectoryLock(path)
            opened.meta = folder_metadata.read_meta_properties(self._files, path)
        except OSError as error:
            self._cannot_use(directory, str(error))

    def _agree(self, node_id: int) -> str | None:
        """Check that all directories belong to this node and to one cluster, and that none is a copy of another."""
        first: dict[uuid.UUID, str] = {}
        cluster_id: str | None = None
        for path, meta in self._formatted():
            if meta.node_id != node_id:
                raise KasparError(
                    f"{path} belongs to node {meta.node_id}, but this broker is node {node_id}: remove it from "
                    "log.dirs, or set node.id"
                )
            cluster_id = cluster_id or meta.cluster_id
            _check_cluster(path, meta, cluster_id)
            if meta.directory_id is not None and (other := first.setdefault(meta.directory_id, path)) != path:
                raise KasparError(
                    f"{other} and {path} have the same directory.id, {uuid_to_text(meta.directory_id)}: one is a copy "
                    "of the other. Remove the copy from log.dirs"
                )
        return cluster_id

    def claim(self, cluster_id: str, node_id: int, known: KnownIds, *, trusted: bool) -> None:
        """Decide which directories may be used. `known`: the ids of this broker's directories in the metadata store.
        `trusted`: all may be used, because the cluster has no topics or an operator has formatted them.
        """
        try:
            for path, meta in self._formatted():
                _check_cluster(path, meta, cluster_id)
            for path, opened in self._opened.items():
                if opened.directory.offline is None:
                    self._claim_one(path, opened, MetaProperties(cluster_id, node_id, None), known, trusted=trusted)
            self.refuse_without_any()
        except KasparError:
            self.release()
            raise

    def _claim_one(self, path: str, opened: _Opened, new: MetaProperties, known: KnownIds, *, trusted: bool) -> None:
        meta = opened.meta
        if meta is None and not trusted:
            self._cannot_use(
                opened.directory,
                f"{path} is not formatted, but the cluster has topics whose logs may belong there. If a volume is "
                f"missing, mount it and start the broker again. If its contents were moved elsewhere, move them back, "
                f"meta.properties included. If it is a new log directory, {_FORMAT}",
            )
        elif meta is not None and not trusted and known is not None and meta.directory_id not in known:
            self._cannot_use(
                opened.directory,
                f"{path} has a directory.id that the cluster does not know: it was not a log directory of this broker "
                f"when it last ran. If another volume belongs there, mount it. To use what is there, {_FORMAT}",
            )
        elif meta is None or meta.directory_id is None:
            meta = replace(meta or new, directory_id=random_uuid())
            try:
                folder_metadata.write_meta_properties(self._files, path, meta)
            except OSError as error:
                self._cannot_use(opened.directory, str(error))
            else:
                opened.meta = meta
                log.info("formatted a log directory", directory=path, cluster=meta.cluster_id)

    def _formatted(self) -> Iterator[tuple[str, MetaProperties]]:
        for path, opened in self._opened.items():
            if opened.meta is not None:
                yield path, opened.meta

    @staticmethod
    def _cannot_use(directory: LogDirectory, reason: str) -> None:
        log.error("a log directory cannot be used", directory=directory.path, error=reason)
        directory.take_offline(reason)

    def refuse_without_any(self) -> None:
        offline = [directory.offline for directory in self.all]
        if all(reason is not None for reason in offline):
            reasons = "; ".join(str(reason) for reason in offline)
            raise StorageFailure(", ".join(self._opened), f"no log directory can be used: {reasons}")

    @property
    def all(self) -> list[LogDirectory]:
        return [opened.directory for opened in self._opened.values()]

    @property
    def formatted(self) -> list[str]:
        """The paths of the directories with a `meta.properties`."""
        return [path for path, _ in self._formatted()]

    @property
    def ids(self) -> dict[uuid.UUID, str]:
        """The paths of the usable directories, by id."""
        return {
            meta.directory_id: path
            for path, meta in self._formatted()
            if meta.directory_id is not None and self._opened[path].directory.offline is None
        }

    def find(self, path: str) -> LogDirectory | None:
        opened = self._opened.get(path)
        return None if opened is None else opened.directory

    def id_of(self, path: str) -> uuid.UUID | None:
        meta = self._opened[path].meta
        return meta.directory_id if meta is not None else None

    def release(self) -> None:
        """Release the locks. Safe to call twice."""
        opened, self._opened = self._opened, {}
        for one in opened.values():
            if one.lock is not None:
                one.lock.release()


def _check_cluster(path: str, meta: MetaProperties, cluster_id: str) -> None:
    if meta.cluster_id != cluster_id:
        raise KasparError(
            f"{path} belongs to cluster {meta.cluster_id}, but this broker belongs to {cluster_id}: remove it from "
            "log.dirs, or correct cluster.id in its meta.properties"
        )
