"""Kafka's offset checkpoint files: one line with the version, one with the number of entries, then one entry per line.

    0                       the version
    2                       how many entries follow
    orders 0 1234           topic, partition, offset      (leader-epoch-checkpoint: epoch, start offset)
    orders 1 998

They are written atomically. A file with another version is refused. One that cannot be parsed counts as damaged, and
the caller continues with what can be found without it.
"""

import os
from collections.abc import Iterable, Mapping

from kaspar.base.errors import KasparError
from kaspar.base.ids import Offset, TopicPartition
from kaspar.storage.disk.files import Files, read_file, write_file

VERSION = 0


class DamagedCheckpoint(KasparError):
    """A checkpoint file that cannot be parsed."""


class UnknownVersion(KasparError):
    """A file of a version that is not supported, perhaps written by a newer release."""


def read_lines(files: Files, path: str, *, may_be_empty: bool = False) -> list[list[str]]:
    """Read the entries of a checkpoint file, each split into its fields. A missing file has none. With `may_be_empty`,
    neither has a file of zero bytes, which is damaged otherwise.
    """
    try:
        text = read_file(files, path).decode("utf-8", "replace")
    except FileNotFoundError:
        return []
    if may_be_empty and not text:
        return []
    lines = text.split("\n")
    try:
        version = int(lines[0])
        count = int(lines[1])
    except (ValueError, IndexError):
        raise DamagedCheckpoint(f"{path} does not begin with a version and the number of entries") from None
    if version != VERSION:
        raise UnknownVersion(f"{path} has version {version}; only version {VERSION} is supported")
    entries = [line.split() for line in lines[2:] if line]
    if len(entries) != count:
        raise DamagedCheckpoint(f"{path} declares {count} entries but has {len(entries)}")
    return entries


def write_lines(files: Files, path: str, entries: Iterable[str]) -> None:
    lines = list(entries)
    write_file(files, path, "\n".join([str(VERSION), str(len(lines)), *lines, ""]).encode())


def read_offsets(files: Files, folder: str, name: str, *, may_be_empty: bool = False) -> dict[TopicPartition, Offset]:
    """Read a checkpoint with one offset per partition of a log directory."""
    path = os.path.join(folder, name)
    offsets = {}
    for fields in read_lines(files, path, may_be_empty=may_be_empty):
        try:
            topic, partition, offset = fields
            offsets[TopicPartition(topic, int(partition))] = Offset(int(offset))
        except ValueError:
            raise DamagedCheckpoint(f"{path} has an entry that is not topic, partition and offset: {fields}") from None
    return offsets


def write_offsets(files: Files, folder: str, name: str, offsets: Mapping[TopicPartition, int]) -> None:
    entries = (f"{partition.topic} {partition.partition} {offset}" for partition, offset in offsets.items())
    write_lines(files, os.path.join(folder, name), entries)
