"""Adopts the folder of a stopped Kafka node in place, and gives it back.

No record is copied. A metadata store is built beside Kafka's metadata log, under a name that no broker opens, then read
back and compared. Then two files change, each atomically:

1. `quorum-state` is replaced (quorum_state.py): from now on Kafka does not start.
2. The store is renamed to its final name: from now on Kaspar starts.

So there is never a moment in which both could start, and after a crash the command can be run again. Undoing runs the
steps backwards. It is refused once a broker has been started with the store, which shows because a broker registers
there before it serves clients.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kaspar.acls.acl import Acl
from kaspar.base.errors import KasparError, MalformedBytes
from kaspar.base.ids import BrokerId
from kaspar.config import BrokerConfig
from kaspar.metadata.directories import remember_directories
from kaspar.metadata.image import ClusterImage
from kaspar.metadata.kraft.folder import find_metadata_log, read_folder
from kaspar.metadata.kraft.frames import UnknownRecord
from kaspar.metadata.kraft.metadata_log import MetadataLog
from kaspar.metadata.kraft.plan import AdoptionPlan, plan_adoption
from kaspar.metadata.kraft.quorum_state import allow_kafka, forbid_kafka, is_adopted, known_voters
from kaspar.metadata.kraft.state import KRaftState
from kaspar.metadata.kraft.unread_groups import find_unread_groups
from kaspar.metadata.layout import (
    acl_nodes,
    cluster_nodes,
    config_nodes,
    credential_nodes,
    first_nodes,
    quota_nodes,
    store_paths,
    topic_nodes,
)
from kaspar.metadata.loading import load_image
from kaspar.metadata.nodes import in_transactions
from kaspar.metadata.sqlite import FILE_NAME, SqliteMetadata
from kaspar.metadata.store import Create, Operation, Store
from kaspar.storage.directories.directory_lock import DirectoryInUse, DirectoryLock
from kaspar.storage.disk.files import OsFiles, unlink_if_there

_UNFINISHED: Final = FILE_NAME + ".adopting"
_BESIDE: Final = ("", "-wal", "-journal", "-shm")
"""The suffixes of SQLite's files: the database itself, and the files that it keeps beside it."""
_OFFSETS_TOPIC: Final = "__consumer_offsets"


class AdoptionRefused(KasparError):
    """The adoption or its reversal is not possible. Nothing was changed."""


class Adoption:
    """The folder that a properties file describes. It is locked against brokers while it is read and changed."""

    def __init__(self, config: BrokerConfig) -> None:
        """Raises AdoptionRefused if there is no metadata log of Kafka, or if zookeeper.connect is set."""
        if config.zookeeper_connect is not None:
            raise AdoptionRefused(
                "zookeeper.connect is set: adopt the folder without it, and move the metadata to ZooKeeper afterwards "
                "with 'kaspar metadata move'"
            )
        metadata_log = find_metadata_log(config.metadata_log_dir, config.log_dirs)
        if metadata_log is None:
            places = config.metadata_log_dir or ", ".join(config.log_dirs)
            raise AdoptionRefused(f"there is no metadata log of Kafka (__cluster_metadata-0) in {places}")
        self.metadata_log = metadata_log
        self._config = config
        self._node_id = BrokerId(config.node_id)
        self._folder = Path(metadata_log).parent
        self._files = OsFiles()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the directories. Raises AdoptionRefused if Kafka, or a broker of Kaspar, runs on one of them."""
        with contextlib.ExitStack() as locks:
            places = (*self._config.log_dirs, os.fspath(self._folder))
            for path in {os.path.realpath(path): path for path in places}.values():
                try:
                    locks.callback(DirectoryLock(path).release)
                except DirectoryInUse:
                    raise AdoptionRefused(f"{path} is in use by a running broker: stop it first") from None
                except OSError as problem:
                    raise AdoptionRefused(f"{path} cannot be used: {problem.strerror}") from None
            yield

    async def is_done(self) -> bool:
        """Whether the folder was adopted before. Raises AdoptionRefused if there is a store that was not adopted."""
        stores = [
            path for path in {*self._config.log_dirs, os.fspath(self._folder)} if (Path(path) / FILE_NAME).exists()
        ]
        if not stores:
            return False
        if stores == [os.fspath(self._folder)]:
            metadata = await SqliteMetadata.open(self._folder, even_if_moved=True)
            try:
                if await metadata.connect().get(store_paths.ADOPTED) is not None:
                    return True
            finally:
                await metadata.close()
        raise AdoptionRefused(
            f"{', '.join(sorted(stores))} already has a metadata store of Kaspar ({FILE_NAME}), which was not adopted "
            "from Kafka: if it is not needed, move it away"
        )

    def plan(self) -> AdoptionPlan:
        """Read everything, without changes, and plan the adoption."""
        log = MetadataLog(self.metadata_log)
        if log.is_empty:
            raise AdoptionRefused(f"{self.metadata_log} is empty: Kafka has never been started on it")
        state = self._replayed(log)
        folder = read_folder(self._files, self._config.log_dirs)
        offsets = [one.folder for one in folder.partitions if one.topic_partition.topic == _OFFSETS_TOPIC]
        return plan_adoption(
            state,
            folder,
            self._config,
            end_offset=log.end_offset,
            unread=find_unread_groups(self._files, offsets),
            unfinished_bytes=log.unfinished_bytes,
        )

    def _replayed(self, log: MetadataLog) -> KRaftState:
        state = KRaftState(voters=known_voters(self._files, self.metadata_log))
        try:
            for batch in log.read():
                state.replay(batch)
        except UnknownRecord as problem:
            raise AdoptionRefused(f"{self.metadata_log} was written by a Kafka later than 4.3: {problem}") from None
        except MalformedBytes as problem:
            raise AdoptionRefused(f"{self.metadata_log} is damaged: {problem}") from None
        return state

    async def carry_out(self, plan: AdoptionPlan) -> None:
        assert not plan.obstacles, "the plan is impossible"
        self._remove_unfinished()
        await self._build(plan)
        forbid_kafka(self._files, self.metadata_log)
        self._rename(_UNFINISHED, FILE_NAME)

    async def undo(self) -> None:
        """Give the folder back to Kafka. Raises AdoptionRefused if a broker has been started with the store."""
        if await self.is_done():
            await self._refuse_used()
            self._rename(FILE_NAME, _UNFINISHED)
        elif not is_adopted(self._files, self.metadata_log):
            raise AdoptionRefused(f"{self._folder} has not been adopted")
        allow_kafka(self._files, self.metadata_log)
        self._remove_unfinished()

    async def _build(self, plan: AdoptionPlan) -> None:
        metadata = await SqliteMetadata.open(self._folder, file_name=_UNFINISHED)
        try:
            store = metadata.connect()
            await self._fill(store, plan)
            if await load_image(store) != plan.image:
                raise KasparError("what was written to the metadata store reads differently: nothing was changed")
        finally:
            await metadata.close()

    async def _fill(self, store: Store, plan: AdoptionPlan) -> None:
        image = plan.image
        operations: list[Operation] = [*first_nodes.bootstrap_nodes(), first_nodes.first_features(image.features)]
        for topic in image.topics.values():
            operations += topic_nodes.topic_change(None, topic)
        operations += map(topic_nodes.deleted_node, image.deleted_topics.values())
        for name, folder in config_nodes.CONFIG_FOLDERS.items():
            for resource, configs in getattr(image, name).items():
                operations += config_nodes.config_change(folder, resource, None, configs)
        operations += _security_nodes(image)
        operations += cluster_nodes.producer_id_change(image.next_producer_id)
        operations += cluster_nodes.features_change(image.features, image.features_epoch)
        operations.append(first_nodes.adopted_from(self.metadata_log))
        operations.append(Create(store_paths.CLUSTER_ID, image.cluster_id.encode()))
        for transaction in in_transactions(operations):
            await store.transact(transaction)
        await remember_directories(store, self._node_id, plan.directories)

    async def _refuse_used(self) -> None:
        metadata = await SqliteMetadata.open(self._folder, even_if_moved=True)
        try:
            store = metadata.connect()
            mark = await metadata.moved_mark()
            fence = await store.get(store_paths.FENCE)
            is_used = fence is None or fence.version > 0 or bool(await store.children(store_paths.BROKER_INCARNATIONS))
        finally:
            await metadata.close()
        if mark is not None:
            raise AdoptionRefused(
                f"the metadata was moved to ZooKeeper at {mark.connect} after the adoption: undo that first"
            )
        if is_used:
            raise AdoptionRefused(
                "the adoption cannot be undone: a broker has been started since, and what it has written would be lost"
            )

    def _rename(self, old: str, new: str) -> None:
        """Rename the store's file, and sync the folder, so that the step is durable before the next one."""
        is_open = any((self._folder / (old + suffix)).exists() for suffix in _BESIDE[1:])
        assert not is_open, "the store has files beside it, which would be lost"
        self._files.rename(os.fspath(self._folder / old), os.fspath(self._folder / new))
        self._files.fsync_dir(os.fspath(self._folder))

    def _remove_unfinished(self) -> None:
        for suffix in _BESIDE:
            unlink_if_there(self._files, os.fspath(self._folder / (_UNFINISHED + suffix)))


def _security_nodes(image: ClusterImage) -> Iterator[Operation]:
    buckets: dict[str, dict[str, Acl]] = {}
    for acl_id, acl in image.acls.items():
        buckets.setdefault(acl_nodes.acl_bucket(acl_id), {})[acl_id] = acl
    for bucket, acls in buckets.items():
        yield from acl_nodes.acls_change(bucket, {}, acls)
    for user, credentials in image.scram_credentials.items():
        yield from credential_nodes.scram_change(user, {}, credentials)
    for token in image.delegation_tokens.values():
        yield from credential_nodes.token_change(token, is_new=True)
    for entity, limits in image.client_quotas.items():
        yield from quota_nodes.quota_change(entity, None, limits)
