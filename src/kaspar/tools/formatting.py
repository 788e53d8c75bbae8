"""What `kafka-storage format` does: directories get their ids, and the metadata store is made and knows them."""

import asyncio

from kaspar.base.clock import SystemClock
from kaspar.base.errors import KasparError
from kaspar.base.ids import BrokerId, uuid_from_text
from kaspar.broker.log_places import claim_directories
from kaspar.config import BrokerConfig
from kaspar.metadata import SqliteMetadata
from kaspar.metadata.directories import store_folder
from kaspar.metadata.loading import load_image, prepare_store
from kaspar.metadata.sqlite import FILE_NAME
from kaspar.storage import LogManager


async def format_directories(config: BrokerConfig, cluster_id: str | None, *, ignore_formatted: bool) -> list[str]:
    """What was done, in sentences. KasparError where it cannot be."""
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
            raise KasparError(f"{before[0]} belongs to the cluster {found}, and the cluster id given is {cluster_id}")
        cluster, made_store = await _claim(config, logs, cluster_id or found)
        _refuse_unusable(logs)
        done = [
            f"Formatted {directory.path} for the cluster {cluster}."
            for directory in logs.directories
            if directory.path not in before
        ]
        return [*made_store, *done] or ["All of the log directories are already formatted."]
    finally:
        logs.abandon()


def _check_id(cluster_id: str) -> None:
    try:
        uuid_from_text(cluster_id)
    except ValueError:
        raise KasparError(
            f"{cluster_id} is not a cluster id: take one that 'kafka-storage random-uuid' gives"
        ) from None


async def _claim(config: BrokerConfig, logs: LogManager, cluster_id: str | None) -> tuple[str, list[str]]:
    # An operator who formats knows that there is no store yet, or no longer: nothing needs to be formatted before.
    folder = store_folder(config.metadata_log_dir, config.log_dirs, formatted=())
    folder.mkdir(parents=True, exist_ok=True)
    had_store = (folder / FILE_NAME).exists()
    metadata = await SqliteMetadata.open(folder)
    try:
        store = metadata.connect()
        await prepare_store(store, cluster_id)
        image = await load_image(store)
        if cluster_id is not None and cluster_id != image.cluster_id:
            raise KasparError(f"the metadata store is of the cluster {image.cluster_id}, and not of {cluster_id}")
        await claim_directories(store, image, logs, BrokerId(config.node_id), trusted=True)
        return image.cluster_id, [] if had_store else [f"Made an empty metadata store in {folder}."]
    finally:
        await metadata.close()


def _refuse_unusable(logs: LogManager) -> None:
    if unusable := [directory for directory in logs.directories if directory.offline is not None]:
        raise KasparError("; ".join(f"{one.path} cannot be used: {one.offline}" for one in unusable))
