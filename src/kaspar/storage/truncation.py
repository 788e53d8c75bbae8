"""Removes the end of a log, durably, with everything that depends on it.

Only LogManager uses this: before anything is appended, it writes checkpoints that no longer count the removed offsets
as synced. The thread that truncates a log has it to itself.
"""

import contextlib
from collections.abc import Iterator

from kaspar.storage.log import Log


def truncate_to(log: Log, offset: int, *, now_ms: int) -> bool:
    """Remove every record at or above `offset`. Returns False if there is none: then only a leader epoch is removed
    that began at the end of the log and in which no record was written here before another leader was elected.

    A truncation that did not finish is repeated, even if `offset` is not below the log's end.
    """
    local = log.local
    if offset >= local.log_end_offset and not local.truncation_due:
        log.leader_epochs.truncate_from_end(local.log_end_offset)
        return False
    offset = min(offset, local.log_end_offset)
    if local.is_starting_anew or offset < local.segments.base_offsets[0]:
        truncate_fully_and_start_at(log, offset, now_ms=now_ms)
        return True
    with _truncation(log):
        local.truncate_to(offset)
        _restore_state(log, min(log.log_start_offset, offset))
    return True


def truncate_fully_and_start_at(log: Log, offset: int, *, now_ms: int) -> None:
    """Remove every record; the log continues, empty, at `offset`."""
    with _truncation(log):
        log.local.truncate_fully_and_start_at(offset, now_ms)
        _restore_state(log, offset)


@contextlib.contextmanager
def _truncation(log: Log) -> Iterator[None]:
    """Leave `truncation_due` set if the truncation fails half-way, perhaps on a full disk: it must be repeated."""
    log.local.truncation_due = True
    try:
        _give_up_swap(log)
        yield
    except OSError as error:
        raise log.directory.fail(error, f"truncating {log.topic_partition}") from error
    log.local.truncation_due = False


def _give_up_swap(log: Log) -> None:
    if log.swaps.give_up(log.local.segments.all):
        log.directory.files.fsync_dir(log.folder)


def _restore_state(log: Log, log_start_offset: int) -> None:
    log.log_start_offset = log_start_offset
    log.state.truncate_to(log.local.log_end_offset, log.local.segments.all)
