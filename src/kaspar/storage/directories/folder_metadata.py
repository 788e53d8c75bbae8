"""The small files that identify a folder: `meta.properties`, `partition.metadata` and the mark of a clean shutdown.

`meta.properties` is in every log directory (version 1: cluster.id, node.id, directory.id); `partition.metadata` in
every partition's folder (version 0: topic_id). `.kafka_cleanshutdown` exists only between a clean shutdown and the next
start. A newer version of any of them is refused.
"""

import json
import os
import uuid
from dataclasses import dataclass

from kaspar.base.errors import KasparError
from kaspar.base.ids import uuid_from_text, uuid_to_text
from kaspar.storage.disk.checkpoints import DamagedCheckpoint, UnknownVersion
from kaspar.storage.disk.file_names import CLEAN_SHUTDOWN, META_PROPERTIES, PARTITION_METADATA
from kaspar.storage.disk.files import Files, read_file, unlink_if_there, write_file


@dataclass(frozen=True, slots=True)
class MetaProperties:
    cluster_id: str
    node_id: int
    directory_id: uuid.UUID | None
    """None if the file was written before directories had ids."""


def read_meta_properties(files: Files, directory: str) -> MetaProperties | None:
    path = os.path.join(directory, META_PROPERTIES)
    try:
        values = _properties(read_file(files, path))
    except FileNotFoundError:
        return None
    version = values.get("version", "")
    node_id = values.get("node.id", values.get("broker.id"))
    if version not in ("0", "1"):
        raise UnknownVersion(f"{path} has version {version or 'unknown'}; only versions 0 and 1 are supported")
    if node_id is None or "cluster.id" not in values:
        raise KasparError(f"{path} lacks cluster.id or node.id")
    try:
        directory_id = uuid_from_text(values["directory.id"]) if "directory.id" in values else None
        return MetaProperties(values["cluster.id"], int(node_id), directory_id)
    except ValueError as error:
        raise KasparError(f"{path} is damaged: {error}") from None


def write_meta_properties(files: Files, directory: str, meta: MetaProperties) -> None:
    assert meta.directory_id is not None
    lines = [
        "#",
        f"cluster.id={meta.cluster_id}",
        f"directory.id={uuid_to_text(meta.directory_id)}",
        f"node.id={meta.node_id}",
        "version=1",
        "",
    ]
    write_file(files, os.path.join(directory, META_PROPERTIES), "\n".join(lines).encode())


def _properties(content: bytes) -> dict[str, str]:
    values = {}
    for line in content.decode("utf-8", "replace").splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith(("#", "!")):
            values[name.strip()] = value.strip().replace("\\", "")
    return values


def read_partition_metadata(files: Files, folder: str) -> uuid.UUID | None:
    """Read the id of the topic whose partition is in `folder`; None if the file is missing or has a zero id."""
    path = os.path.join(folder, PARTITION_METADATA)
    try:
        lines = read_file(files, path).decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return None
    values = dict(line.split(": ", 1) for line in lines if ": " in line)
    version = values.get("version", "")
    if version.isdigit() and version != "0":
        raise UnknownVersion(f"{path} has version {version}; only version 0 is supported")
    try:
        topic_id = uuid_from_text(values["topic_id"])
    except (KeyError, ValueError):
        raise DamagedCheckpoint(f"{path} has no valid topic_id") from None
    return topic_id if topic_id.int else None


def write_partition_metadata(files: Files, folder: str, topic_id: uuid.UUID) -> None:
    """Write the topic id without syncing it: the log's first flush does that, before anything in the log counts as
    durable. So topics with thousands of partitions are created quickly, and a folder without an id after a power
    failure contains no synced record.
    """
    content = f"version: 0\ntopic_id: {uuid_to_text(topic_id)}"
    write_file(files, os.path.join(folder, PARTITION_METADATA), content.encode(), sync=False)


def write_clean_shutdown(files: Files, directory: str, broker_epoch: int) -> None:
    """Mark that everything in this log directory is synced, so that the next start need not check it."""
    content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    write_file(files, os.path.join(directory, CLEAN_SHUTDOWN), content.encode())


def take_clean_shutdown(files: Files, directory: str) -> bool:
    """Return whether the last shutdown was clean. Removes the mark durably, before anything can be appended."""
    if not unlink_if_there(files, os.path.join(directory, CLEAN_SHUTDOWN)):
        return False
    files.fsync_dir(directory)
    return True
