"""A batch that is ready to be appended."""

from typing import NamedTuple


class PreparedBatch(NamedTuple):
    """One batch that has passed every check that needs no log: ready to get its offsets and to be written.

    `buffer[start:end]` is the batch; the log sets offset and leader epoch in place. The rest is from its header.
    """

    buffer: bytearray | memoryview
    start: int
    end: int
    last_offset_delta: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    log_append_time_ms: int  # -1: records keep the producer's time
