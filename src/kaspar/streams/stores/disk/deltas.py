"""Delta files: the changes of a task, from one version of a partition's state to the next.

A file is named by the two versions. It is created atomically by a rename, but not synced: a checksum detects files that
a crash of the machine has damaged. A damaged file is removed, with a line in the log.
"""

import os
import struct
import time
import zlib
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Final

import msgspec

from kaspar.base.log import get_log
from kaspar.streams.stores.byte_store import KeyRange, OverlayStore

FORMAT: Final = 1

_SUFFIX = ".delta"
_NEW_SUFFIX = ".new"
_STALE_S = 3600.0
_FRAME = struct.Struct(">III")  # format, checksum of the rest, size of the versions
_log = get_log(__name__)


class StoreDelta(msgspec.Struct, frozen=True):
    """The changes of one store. The ranges are deleted before the changes are applied."""

    deleted_ranges: list[KeyRange]
    changes: dict[bytes, bytes | None]


class Versions(msgspec.Struct, frozen=True):
    """The versions before and after a delta."""

    parent: dict[str, int]
    ends: dict[str, int]


class Delta(msgspec.Struct, frozen=True):
    versions: Versions
    meta: dict[str, int]
    """The numbers at the end of the task."""
    stores: dict[str, StoreDelta]


class _Body(msgspec.Struct, frozen=True):
    meta: dict[str, int]
    stores: dict[str, StoreDelta]


_decode_versions = msgspec.msgpack.Decoder(Versions).decode
_decode_body = msgspec.msgpack.Decoder(_Body).decode


def delta_of(
    parent: Mapping[str, int], ends: Mapping[str, int], meta: Mapping[str, int], stores: Mapping[str, OverlayStore]
) -> Delta:
    """The delta of a task's changes in these stores."""
    changed = {
        name: StoreDelta(list(store.deleted_ranges), store.changes)
        for name, store in stores.items()
        if store.changes or store.deleted_ranges
    }
    return Delta(Versions(dict(parent), dict(ends)), dict(meta), changed)


def same_version(one: Mapping[str, int], other: Mapping[str, int]) -> bool:
    """Whether two versions are equal. A missing store has no records yet."""
    return all(one.get(name, 0) == other.get(name, 0) for name in one.keys() | other.keys())


def delta_folder(directory: Path) -> Path:
    return directory / "deltas"


def write_delta(directory: Path, delta: Delta) -> Path:
    """Write the file of a delta into the directory of its partition."""
    folder = delta_folder(directory)
    folder.mkdir(parents=True, exist_ok=True)
    versions = msgspec.msgpack.encode(delta.versions)
    body = msgspec.msgpack.encode(_Body(delta.meta, delta.stores))
    file = folder / f"{_digest(delta.versions.parent)}-{_digest(delta.versions.ends)}{_SUFFIX}"
    new = file.with_suffix(f".{os.getpid()}{_NEW_SUFFIX}")
    with new.open("wb") as writer:
        writer.write(_FRAME.pack(FORMAT, zlib.crc32(body, zlib.crc32(versions)), len(versions)))
        writer.write(versions)
        writer.write(body)
    new.rename(file)
    return file


def delta_chain(directory: Path, current: Mapping[str, int], wanted: Mapping[str, int]) -> list[Path] | None:
    """The delta files that lead from the current version to the wanted one, in order; None if some are missing."""
    found: list[Path] = []
    target, start = _digest(wanted), _digest(current)
    files = {file.name.removesuffix(_SUFFIX).partition("-")[2]: file for file in _files(directory)}
    while target != start:
        file = files.pop(target, None)
        if file is None:
            return None
        found.append(file)
        target = file.name.partition("-")[0]
    return found[::-1]


def read_delta(file: Path) -> Delta | None:
    """Read a delta file; None if it is missing. A file that is damaged or has another format is removed."""
    try:
        data = memoryview(file.read_bytes())
        file_format, checksum, size = _FRAME.unpack_from(data)
        if file_format != FORMAT or zlib.crc32(data[_FRAME.size :]) != checksum:
            raise ValueError("wrong format or checksum")
        versions = _decode_versions(data[_FRAME.size : _FRAME.size + size])
        body = _decode_body(data[_FRAME.size + size :])
    except FileNotFoundError:
        return None
    except (ValueError, struct.error) as error:
        _discard(file, error)
        return None
    return Delta(versions, body.meta, body.stores)


def remove_old_deltas(directory: Path, ends: Mapping[str, int]) -> None:
    """Remove the files of deltas to versions that are not newer than this one, and stale files of dead writers."""
    for file in _files(directory):
        versions = _read_versions(file)
        if versions is not None and all(end <= ends.get(name, 0) for name, end in versions.ends.items()):
            file.unlink(missing_ok=True)
    for file in delta_folder(directory).glob(f"*{_NEW_SUFFIX}"):
        try:
            if file.stat().st_mtime < time.time() - _STALE_S:
                file.unlink(missing_ok=True)
        except FileNotFoundError:
            continue


def _files(directory: Path) -> list[Path]:
    return list(delta_folder(directory).glob(f"*{_SUFFIX}"))


def _read_versions(file: Path) -> Versions | None:
    try:
        with file.open("rb") as reader:
            _, _, size = _FRAME.unpack(reader.read(_FRAME.size))
            return _decode_versions(reader.read(size))
    except FileNotFoundError:
        return None
    except (ValueError, struct.error) as error:
        _discard(file, error)
        return None


def _discard(file: Path, error: Exception) -> None:
    _log.warning("removed a damaged delta file: its changes are read from the changelog", file=file, reason=error)
    file.unlink(missing_ok=True)


def _digest(ends: Mapping[str, int]) -> str:
    named = sorted((name, end) for name, end in ends.items() if end)
    return blake2b(msgspec.msgpack.encode(named), digest_size=12).hexdigest()
