"""Lists a partition's folder, and cleans up what an unfinished deletion, cleaning or swap left in it.

- `.deleted`: a deletion that did not finish; the file is removed.
- `.cleaned`: a cleaning that did not finish; it is removed, and so are `.swap` files from its base offset on.
- `.swap`: a cleaned segment that has not replaced the old ones yet; it does now. Old segments after the last record
  that it kept may stay: they are unchanged by the cleaning.
- `.tmp`: a small file that was not renamed yet; it is removed.
- an index without its log file is removed.
"""

import os
from typing import NamedTuple

from kaspar.base.log import get_log
from kaspar.storage.disk.file_names import (
    CLEANED,
    DELETED,
    LOG,
    OFFSET_INDEX,
    SEGMENT_SUFFIXES,
    SNAPSHOT,
    SWAP,
    TEMPORARY,
    TRANSACTION_INDEX,
    numbered,
    parse_numbered,
)
from kaspar.storage.disk.files import Files, unlink_if_there
from kaspar.storage.segments.batch_scan import BatchScan

log = get_log(__name__)


class FolderContent(NamedTuple):
    """The offsets in the names of a folder's `.log`, `.index`, `.snapshot` and `.txnindex` files."""

    logs: set[int]
    indexes: set[int]
    snapshots: set[int]
    aborted: set[int]

    @staticmethod
    def empty() -> "FolderContent":
        return FolderContent(set(), set(), set(), set())


def settle_leftovers(files: Files, folder: str) -> FolderContent:
    names = files.listdir(folder)
    if any(name.endswith((DELETED, CLEANED, SWAP, TEMPORARY)) for name in names):
        _settle(files, folder, names)
        names = files.listdir(folder)
    content = FolderContent.empty()
    by_suffix = {
        LOG: content.logs,
        OFFSET_INDEX: content.indexes,
        SNAPSHOT: content.snapshots,
        TRANSACTION_INDEX: content.aborted,
    }
    others = []
    for name in names:
        parsed = parse_numbered(name)
        if parsed is not None:
            offset, suffix = parsed
            if suffix in by_suffix:
                by_suffix[suffix].add(offset)
            if suffix in SEGMENT_SUFFIXES and suffix != LOG:
                others.append((name, offset))
    for name, offset in others:
        if offset not in content.logs:
            log.warning("removed an index that belongs to no segment", file=os.path.join(folder, name))
            unlink_if_there(files, os.path.join(folder, name))
            content.indexes.discard(offset)
            content.aborted.discard(offset)
    return content


def _settle(files: Files, folder: str, names: list[str]) -> None:
    offset_of = {name: parsed[0] for name in names if (parsed := parse_numbered(name[: name.rfind(".")]))}
    first_cleaned = min((offset_of.get(name, 0) for name in names if name.endswith(CLEANED)), default=None)
    swaps = []
    for name in names:
        if name.endswith(SWAP) and (first_cleaned is None or offset_of.get(name, 0) < first_cleaned):
            swaps.append(name)
        elif name.endswith((DELETED, CLEANED, SWAP, TEMPORARY)):
            unlink_if_there(files, os.path.join(folder, name))
    for base_offset in sorted({offset_of[name] for name in swaps}):
        _remove_replaced(files, folder, names, base_offset, numbered(base_offset, LOG + SWAP) in swaps)
    # The log files first: while one still ends in `.swap`, all segments in its range are old.
    for name in sorted(swaps, key=lambda name: not name.endswith(LOG + SWAP)):
        log.info("finished a swap of cleaned segments", file=os.path.join(folder, name))
        files.rename(os.path.join(folder, name), os.path.join(folder, name.removesuffix(SWAP)))
    files.fsync_dir(folder)


def _remove_replaced(files: Files, folder: str, names: list[str], base_offset: int, log_is_marked: bool) -> None:
    """Remove what is left of the segments that a cleaned one replaces. If its log file no longer ends in `.swap`, the
    files with the same base offset are its own.
    """
    path = os.path.join(folder, numbered(base_offset, LOG + SWAP if log_is_marked else LOG))
    try:
        end = _end_of(files, path, base_offset)
    except FileNotFoundError:
        return  # an index without a log: settle_leftovers removes it
    begin = base_offset if log_is_marked else base_offset + 1
    for name in names:
        parsed = parse_numbered(name)
        if parsed is not None and parsed[1] in SEGMENT_SUFFIXES and begin <= parsed[0] < end:
            unlink_if_there(files, os.path.join(folder, name))


def _end_of(files: Files, path: str, base_offset: int) -> int:
    end = base_offset + 1
    fd = files.open(path)
    try:
        for _, header, _ in BatchScan(files, fd, 0, files.size(path)):
            end = header.next_offset
    finally:
        files.close(fd)
    return end
