"""Batches that a follower has fetched: which of them are appended to its log, and how."""

from typing import NamedTuple

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.records import BatchHeader, crc_matches, iter_headers
from kaspar.storage.append import UnexpectedAppendOffset
from kaspar.storage.derived_state import DerivedState
from kaspar.storage.local_log import LocalLog
from kaspar.storage.producers import replay
from kaspar.storage.segments.segment import Segment


class FetchedBatches(NamedTuple):
    """Complete batches at the beginning of `view`, each with its position. They continue a log."""

    view: memoryview
    batches: list[tuple[int, BatchHeader]]

    @property
    def size(self) -> int:
        if not self.batches:
            return 0
        begin, last = self.batches[-1]
        return begin + last.size


def batches_to_append(
    view: memoryview, leader_epoch: int, log_end_offset: int, topic_partition: TopicPartition
) -> FetchedBatches:
    """Return the complete batches in `view`, up to the first with a later leader epoch than `leader_epoch`.

    Raises UnexpectedAppendOffset if they do not continue the log, Refused if a checksum is wrong.
    """
    batches: list[tuple[int, BatchHeader]] = []
    expected = log_end_offset
    for position, header in iter_headers(view, 0, len(view)):
        if header.leader_epoch > leader_epoch:
            break
        if header.base_offset < expected:
            raise UnexpectedAppendOffset(
                f"{topic_partition} ends at {expected}, but a batch to append begins at {header.base_offset}",
                header.base_offset,
                continues_after=header.last_offset >= expected and not batches,
            )
        if not crc_matches(view, position, header):
            raise Refused(
                ErrorCode.CORRUPT_MESSAGE,
                f"a batch for {topic_partition} at offset {header.base_offset} has a wrong checksum",
            )
        expected = header.next_offset
        batches.append((position, header))
    return FetchedBatches(view, batches)


def write_batches(
    local: LocalLog,
    state: DerivedState,
    segment: Segment,
    data: memoryview,
    origin: int,
    batches: list[tuple[int, BatchHeader]],
) -> None:
    """Write whole batches at once. `origin` is where `data` begins in the buffer in which the batches have their
    positions.
    """
    at = segment.size
    try:
        local.write_rest(segment.fd, data, at, 0)
    except OSError as error:
        raise local.write_failed(segment, error) from error
    for begin, header in batches:
        if header.leader_epoch >= 0 and header.leader_epoch != state.leader_epochs.latest_epoch:
            state.leader_epochs.assign(header.leader_epoch, header.base_offset)
        position = at + begin - origin
        segment.appended(header.base_offset, header.last_offset, position, header.max_timestamp)
        if segment.bytes_since_index_entry > local.index_interval_bytes:
            local.add_index_entry(segment, header.last_offset, position)
        segment.bytes_since_index_entry += header.size
        batch = data[begin - origin : begin - origin + header.size]
        decided = replay.remember_batch(state.producers, header, batch)
        if decided is not None and (entry := decided.index_entry) is not None:
            local.add_aborted(segment, entry)
    local.log_end_offset = batches[-1][1].next_offset
    segment.size = at + len(data)
    if local.unflushed_since_ms < 0:
        local.unflushed_since_ms = local.directory.steady_ms()
