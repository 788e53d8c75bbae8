"""Keeps data that recovery cannot use, under a name that a start ignores.

Only an operator or the deletion of the topic removes these files. `kafka-dump-log` reads them.
"""

import os

from kaspar.base.log import get_log
from kaspar.storage.disk.file_names import LOG, stray_mark
from kaspar.storage.disk.files import Files, unlink_if_there, write_all
from kaspar.storage.segments.segment import Segment

log = get_log(__name__)

_CHUNK_BYTES = 1 << 20


def set_segment_aside(files: Files, segment: Segment, problem: str) -> None:
    """Remove a whole segment from the log, and keep its files."""
    renamed = segment.mark_deleted(files, stray_mark())
    files.fsync_dir(segment.folder)
    log.error(
        "set a segment aside that cannot be part of the log: its records are no longer read",
        file=segment.path(LOG),
        problem=problem,
        bytes=segment.size,
        kept_as=os.path.basename(renamed[0]) if renamed else None,
    )


def keep_tail(files: Files, segment: Segment, fd: int, position: int) -> None:
    """Copy the bytes that are about to be cut off a segment, unless they are all zeros."""
    if _is_zeros(files, fd, position, segment.size):
        return
    path = segment.path(LOG) + stray_mark()
    copy = files.open(path, create=True)
    try:
        written = 0
        while chunk := files.pread(fd, min(_CHUNK_BYTES, segment.size - position - written), position + written):
            write_all(files, copy, chunk, written)
            written += len(chunk)
        files.fsync(copy)
    except OSError:
        # Every start retries this, and must not use more space each time.
        unlink_if_there(files, path)
        raise
    finally:
        files.close(copy)
    files.fsync_dir(segment.folder)
    log.error(
        "kept a copy of what was cut off a segment: later segments follow, or it may have been synced",
        file=segment.path(LOG),
        position=position,
        bytes=written,
        kept_as=os.path.basename(path),
    )


def _is_zeros(files: Files, fd: int, position: int, end: int) -> bool:
    while position < end:
        chunk = files.pread(fd, min(_CHUNK_BYTES, end - position), position)
        if chunk.count(0) != len(chunk):
            return False
        if not chunk:
            break
        position += len(chunk)
    return True
