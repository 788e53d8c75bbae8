"""Creates the log of a new partition."""

import uuid

from kaspar.base.ids import TopicPartition
from kaspar.config import LogConfig
from kaspar.storage.derived_state import DerivedState
from kaspar.storage.directories.log_directory import LogDirectory
from kaspar.storage.leader_epochs import LeaderEpochCache
from kaspar.storage.local_log import LocalLog
from kaspar.storage.log import Log
from kaspar.storage.producers.state import ProducerState
from kaspar.storage.rolling import jitter_ms
from kaspar.storage.segments.segment import Segment


def create_log(
    directory: LogDirectory,
    folder: str,
    topic_partition: TopicPartition,
    topic_id: uuid.UUID | None,
    config: LogConfig,
    *,
    now_ms: int,
) -> Log:
    """Create an empty log in a folder that exists. Its files are closed until the first append."""
    segment = Segment.create(directory.files, folder, 0, now_ms=now_ms, jitter_ms=jitter_ms(config), preallocate=0)
    segment.close(directory.files)
    local = LocalLog(directory, folder, topic_partition, config, segments=[segment], log_end_offset=0, recovery_point=0)
    local.unsynced.add_rebuilt([], names=True)
    state = DerivedState(
        directory, folder, topic_partition, LeaderEpochCache(), ProducerState(topic_partition), snapshot_offsets=()
    )
    return Log(local, topic_id, log_start_offset=0, state=state)
