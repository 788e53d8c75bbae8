"""What recovery cannot use stays on the disk, under a name that no start takes for a part of the log.

Nobody removes these files but an operator, or the deletion of the topic. `kafka-dump-log` reads them.
"""

import os

from kaspar.base.log import get_log
from kaspar.storage.file_names import LOG, stray_mark
from kaspar.storage.files import Files, unlink_if_there, write_all
from kaspar.storage.segment import Segment

log = get_log(__name__)

_CHUNK_BYTES = 1 << 20


def set_segment_aside(files: Files, segment: Segment, problem: str) -> None:
    """Take a whole segment out of the log."""
    renamed = segment.mark_deleted(files, stray_mark())
    files.fsync_dir(segment.folder)
    log.error(
        "set a segment aside that cannot be a part of the log: its records are no longer read",
        file=segment.path(LOG),
        problem=problem,
        bytes=segment.size,
        kept_as=os.path.basename(renamed[0]) if renamed else None,
    )


def keep_tail(files: Files, segment: Segment, fd: int, position: int) -> None:
    """Copy what a cut is about to take off a segment, unless it is all zeros."""
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
        # Every start tries it anew: what there is space for must not be less each time.
        unlink_if_there(files, path)
        raise
    finally:
        files.close(copy)
    files.fsync_dir(segment.folder)
    log.error(
        "kept what is cut off a segment that other segments follow, or that was perhaps synced",
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
