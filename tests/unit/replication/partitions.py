"""Partitions over real logs, and waiters that record their notifications."""

from pathlib import Path

from kaspar.base.ids import BrokerId, LeaderEpoch, random_uuid
from kaspar.config import LogConfig
from kaspar.replication.partition import Partition
from kaspar.replication.state import Leadership
from kaspar.storage import Appended, prepare
from tests.unit.storage.logs import NOW_MS, PARTITION, LogFolder, make_batch

ME = BrokerId(1)
OTHER = BrokerId(2)


def leadership(
    *, leader: BrokerId = ME, epoch: int = 0, partition_epoch: int = 0, in_sync: tuple[BrokerId, ...] = (ME,)
) -> Leadership:
    return Leadership(leader, LeaderEpoch(epoch), partition_epoch, (ME, OTHER), in_sync)


def make_partition(folder: Path, config: LogConfig | None = None) -> Partition:
    return Partition(PARTITION, random_uuid(), LogFolder(folder, config).log, ME)


def append(partition: Partition, batch: bytearray | None = None, *, acks_all: bool = False) -> Appended:
    batch = batch if batch is not None else make_batch()
    prepared = prepare(batch, 0, len(batch), partition.log.config, NOW_MS)
    return partition.append_as_leader(prepared, acks_all=acks_all, now_ms=NOW_MS)


class Reader:
    """A fetch that waits."""

    def __init__(self) -> None:
        self.notified: list[int] = []

    def readable(self, partition: Partition, size: int) -> None:
        self.notified.append(size)

    def read_again(self, partition: Partition) -> None:
        self.notified.append(0)
