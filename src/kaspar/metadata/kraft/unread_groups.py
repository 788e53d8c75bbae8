"""Finds the groups in `__consumer_offsets` whose kinds Kaspar does not have: share groups and streams groups.

A group exists as long as its metadata record is not followed by a tombstone. Damaged segments are skipped: the broker
recovers them when it starts, and this list is only for information.
"""

import os
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from kaspar.base.errors import MalformedBytes
from kaspar.records import Record, iter_records
from kaspar.storage.disk.file_names import LOG, parse_numbered
from kaspar.storage.disk.files import Files, read_file

_KEY: Final = struct.Struct(">hh")  # the record type, and the length of the group's id
_SHARE_GROUP_METADATA: Final = 11
_STREAMS_GROUP_METADATA: Final = 17


@dataclass(frozen=True, slots=True)
class UnreadGroups:
    share: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()


def find_unread_groups(files: Files, folders: Iterable[str]) -> UnreadGroups:
    """Find the groups. `folders` are the partitions of `__consumer_offsets`."""
    found: dict[int, set[str]] = {_SHARE_GROUP_METADATA: set(), _STREAMS_GROUP_METADATA: set()}
    for folder in folders:
        for record in _records(files, folder):
            _note(found, record)
    return UnreadGroups(tuple(sorted(found[_SHARE_GROUP_METADATA])), tuple(sorted(found[_STREAMS_GROUP_METADATA])))


def _note(found: dict[int, set[str]], record: Record) -> None:
    key = record.key
    if key is None or len(key) < _KEY.size:
        return
    number, length = _KEY.unpack_from(key)
    groups = found.get(number)
    if groups is None:
        return
    group = key[_KEY.size : _KEY.size + length].decode("utf-8", "replace")
    if record.value is None:
        groups.discard(group)
    else:
        groups.add(group)


def _records(files: Files, folder: str) -> Iterator[Record]:
    for name in sorted(files.listdir(folder)):
        named = parse_numbered(name)
        if named is None or named[1] != LOG:
            continue
        try:
            yield from iter_records(read_file(files, os.path.join(folder, name)))
        except MalformedBytes:
            continue
