"""The log directories of a broker, with their largest partitions."""

from dataclasses import dataclass
from typing import Final

from kaspar.client.admin.log_dirs import LogDir, describe_log_dirs
from kaspar.client.admin.session import Admin

_LARGEST: Final = 20


@dataclass(frozen=True, slots=True)
class PartitionSize:
    topic: str
    partition: int
    size: int
    offset_lag: int
    """The number of offsets by which the replica is behind its leader's log."""
    is_future: bool
    """Whether the replica is being moved here from another directory."""


@dataclass(frozen=True, slots=True)
class LogDirView:
    path: str
    problem: str
    """Why the directory is offline; empty if it is online."""
    total_bytes: int | None
    """The size of its file system; None if the broker does not report it."""
    usable_bytes: int | None
    replicas: int
    size: int
    largest: tuple[PartitionSize, ...]


def read_log_dirs(admin: Admin, broker_id: int) -> list[LogDirView]:
    """The log directories of a broker. Raises Refused."""
    return [_view(each) for each in describe_log_dirs(admin, broker_id)]


def _view(log_dir: LogDir) -> LogDirView:
    sizes = [
        PartitionSize(where.topic, where.partition, each.partition_size, each.offset_lag, is_future)
        for is_future, replicas in ((False, log_dir.replicas), (True, log_dir.future_replicas))
        for where, each in replicas.items()
    ]
    largest = sorted(sizes, key=lambda each: (-each.size, each.topic, each.partition))[:_LARGEST]
    return LogDirView(
        log_dir.path,
        "" if log_dir.error is None else log_dir.error.message,
        log_dir.total_bytes if log_dir.total_bytes >= 0 else None,
        log_dir.usable_bytes if log_dir.usable_bytes >= 0 else None,
        len(sizes),
        sum(each.size for each in sizes),
        tuple(largest),
    )
