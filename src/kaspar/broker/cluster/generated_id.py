"""The id of a broker of a cluster whose settings have none, as in Kafka's ZooKeeper mode: the id in its log
directories, or, at its first start, one above `reserved.broker.max.id` that no other broker has had.
"""

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Final

from kaspar.base.errors import InvalidSetting
from kaspar.base.ids import BrokerId
from kaspar.base.log import get_log
from kaspar.config import BrokerSettings
from kaspar.controller.fence import retried
from kaspar.metadata import Store
from kaspar.metadata.layout import broker_nodes, store_paths
from kaspar.metadata.store import Create, Put, UnknownOutcome, VersionConflict
from kaspar.storage.directories.folder_metadata import read_meta_properties
from kaspar.storage.disk.files import OsFiles

log = get_log(__name__)

RETRY_S: Final = 0.05


async def with_node_id(settings: BrokerSettings) -> BrokerSettings:
    """The settings with a `node.id`, read or generated if they have none and are for a cluster. Raises KasparError."""
    config = settings.config
    if config.zookeeper_connect is None or "node.id" in settings.static or config.broker_id >= 0:
        return settings
    node_id = await asyncio.to_thread(_known_id, config.log_dirs)
    if node_id is None:
        if not config.broker_id_generation_enable:
            raise InvalidSetting("node.id is required, because broker.id.generation.enable is false")
        from kaspar.metadata.zookeeper import ZooKeeperMetadata

        log.info("connecting to ZooKeeper for an id", ensemble=config.zookeeper_connect)
        store = (await ZooKeeperMetadata.configured(config)).connect()
        try:
            node_id = await generate_id(store, config.reserved_broker_max_id)
        finally:
            await store.close()
        log.info("this broker has a generated id", node=node_id)
    return BrokerSettings.of({**settings.static, "node.id": str(node_id)})


def _known_id(log_dirs: Iterable[str]) -> int | None:
    """The id in the first log directory that has one. That they agree is checked when they are opened."""
    for folder in log_dirs:
        with contextlib.suppress(OSError):
            meta = read_meta_properties(OsFiles(), folder)
            if meta is not None:
                return meta.node_id
    return None


async def generate_id(store: Store, reserved: int) -> int:
    """The next unused id above the reserved ones. An attempt whose outcome is unknown only skips an id."""
    while True:
        counter = await retried(lambda: store.get(store_paths.GENERATED_IDS), RETRY_S)
        # On a conflict another broker was first; an unknown outcome is read in the next iteration.
        with contextlib.suppress(VersionConflict, UnknownOutcome):
            if counter is None:
                await store.transact([Create(store_paths.GENERATED_IDS)])
                continue
            await store.transact([Put(store_paths.GENERATED_IDS, b"", counter.version)])
            found = BrokerId(reserved + counter.version + 1)
            if not await _has_registered(store, found):
                return found


async def _has_registered(store: Store, broker_id: BrokerId) -> bool:
    return await retried(lambda: store.get(broker_nodes.incarnations_path(broker_id)), RETRY_S) is not None
