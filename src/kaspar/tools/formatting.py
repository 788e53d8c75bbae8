"""Implements `kafka-storage format`: assigns ids to directories, and registers them in the metadata store."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kaspar.base.clock import SystemClock
from kaspar.base.errors import KasparError
from kaspar.base.ids import BrokerId, uuid_from_text
from kaspar.broker.log_places import claim_directories
from kaspar.config import BrokerConfig
from kaspar.metadata import ClusterImage, SqliteMetadata, Store
from kaspar.metadata.directories import store_folder
from kaspar.metadata.features import NEW_LEVELS, SUPPORTED
from kaspar.metadata.layout import credential_nodes, store_paths
from kaspar.metadata.loading import load_image, prepare_store
from kaspar.metadata.moving import refuse_unmoved
from kaspar.metadata.sqlite import FILE_NAME
from kaspar.metadata.store import Put
from kaspar.storage import LogManager
from kaspar.tools.feature_levels import UnknownLevel, parse_level, parse_release
from kaspar.tools.scram_arguments import NewScramUser

if TYPE_CHECKING:
    from kaspar.metadata.zookeeper import ZooKeeperMetadata


async def format_directories(
    config: BrokerConfig,
    cluster_id: str | None,
    *,
    ignore_formatted: bool,
    scram_users: Sequence[NewScramUser] = (),
    levels: Mapping[str, int] = NEW_LEVELS,
) -> list[str]:
    """Format the directories that are not formatted. Returns sentences that say what was done. Raises KasparError."""
    if cluster_id is not None:
        _check_id(cluster_id)
    logs = LogManager(config, SystemClock())
    try:
        found = await asyncio.to_thread(logs.look)
        before = logs.formatted_directories
        if before and not ignore_formatted:
            raise KasparError(
                f"Log directory {before[0]} is already formatted. Use --ignore-formatted to ignore this directory and "
                "format the others."
            )
        if cluster_id is not None and found is not None and cluster_id != found:
            raise KasparError(f"{before[0]} belongs to the cluster {found}, not to {cluster_id}")
        cluster, made_store = await _claim(config, logs, cluster_id or found, scram_users, levels)
        _refuse_unusable(logs)
        done = [
            f"Formatted {directory.path} for cluster {cluster}."
            for directory in logs.directories
            if directory.path not in before
        ]
        return [*made_store, *done] or ["All of the log directories are already formatted."]
    finally:
        logs.abandon()


def levels_of_new_cluster(release: str | None, features: Sequence[str]) -> dict[str, int]:
    """The levels of the features that this version supports. metadata.version is always that of this version."""
    levels = dict(NEW_LEVELS)
    if release is not None:
        of_release = parse_release(release).levels()
        levels |= {name: level for name, level in of_release.items() if name in SUPPORTED}
    for text in features:
        name, level = parse_level(text)
        if name not in SUPPORTED:
            raise UnknownLevel(f"Unsupported feature: {name}. Supported features are: {', '.join(sorted(SUPPORTED))}")
        first, last = SUPPORTED[name]
        if not first <= level <= last:
            raise UnknownLevel(f"No feature:{name} with feature level {level}")
        levels[name] = level
    return {name: level for name, level in levels.items() if level}


def _check_id(cluster_id: str) -> None:
    try:
        uuid_from_text(cluster_id)
    except ValueError:
        raise KasparError(f"{cluster_id} is not a cluster id: 'kafka-storage random-uuid' prints one") from None


async def _claim(
    config: BrokerConfig,
    logs: LogManager,
    cluster_id: str | None,
    scram_users: Sequence[NewScramUser],
    levels: Mapping[str, int],
) -> tuple[str, list[str]]:
    metadata, done = await _open_store(config, cluster_id)
    try:
        store = metadata.connect()
        await prepare_store(store, cluster_id, min_insync_replicas=config.min_insync_replicas, levels=levels)
        image = await load_image(store)
        if cluster_id is not None and cluster_id != image.cluster_id:
            raise KasparError(f"the metadata store belongs to the cluster {image.cluster_id}, not to {cluster_id}")
        await claim_directories(store, image, logs, BrokerId(config.node_id), trusted=True)
        if scram_users:
            await _add_scram_users(store, image, scram_users)
        return image.cluster_id, done
    finally:
        await metadata.close()


async def _add_scram_users(store: Store, image: ClusterImage, users: Sequence[NewScramUser]) -> None:
    """Allowed only while there is no controller, because a controller would not notice the change."""
    if await store.get(store_paths.CONTROLLER_SEAT) is not None:
        raise KasparError(
            "a broker of the cluster is running: add the users with kafka-configs --alter --entity-type users"
        )
    fence = await store.get(store_paths.FENCE)
    assert fence is not None, "a prepared store has a fence"
    credentials = {name: dict(each) for name, each in image.scram_credentials.items()}
    for user in users:
        credentials.setdefault(user.name, {})[user.mechanism] = user.credential
    operations = [
        operation
        for name in dict.fromkeys(user.name for user in users)
        for operation in credential_nodes.scram_change(name, image.scram_credentials.get(name, {}), credentials[name])
    ]
    await store.transact([Put(store_paths.FENCE, fence.value), *operations])


async def _open_store(
    config: BrokerConfig, cluster_id: str | None
) -> tuple["SqliteMetadata | ZooKeeperMetadata", list[str]]:
    """Open the store that the broker will use. Also returns a sentence if the store was created."""
    if config.zookeeper_connect is not None:
        return await _open_zookeeper(config, cluster_id), []
    # No formatted directory is required: an operator who formats knows that the store does not exist (any longer).
    folder = store_folder(config.metadata_log_dir, config.log_dirs, formatted=())
    folder.mkdir(parents=True, exist_ok=True)
    had_store = (folder / FILE_NAME).exists()
    metadata = await SqliteMetadata.open(folder)
    return metadata, [] if had_store else [f"Created an empty metadata store in {folder}."]


async def _open_zookeeper(config: BrokerConfig, cluster_id: str | None) -> "ZooKeeperMetadata":
    from kaspar.metadata.zookeeper import ZooKeeperMetadata

    metadata = await ZooKeeperMetadata.configured(config)
    try:
        folders = {config.metadata_log_dir or config.log_dirs[0], *config.log_dirs}
        await refuse_unmoved(metadata.connect(), folders, cluster_id=cluster_id, connect=str(metadata.address))
    except BaseException:
        await metadata.close()
        raise
    return metadata


def _refuse_unusable(logs: LogManager) -> None:
    if unusable := [directory for directory in logs.directories if directory.offline is not None]:
        raise KasparError("; ".join(f"{one.path} cannot be used: {one.offline}" for one in unusable))
