"""Values in JSON files that are replaced atomically: a reader sees the old or the new one, also after a power loss."""

import os
from pathlib import Path
from typing import TypeVar

import msgspec

from kaspar.base.errors import KasparError

_Value = TypeVar("_Value")


def read_json(file: Path, kind: type[_Value]) -> _Value | None:
    """Read a file. Returns None if it does not exist."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        raise KasparError(f"{file} cannot be read: {problem.strerror}") from None
    except msgspec.DecodeError as problem:
        raise KasparError(f"{file} was not written by 'kaspar pipeline' ({problem}): remove it") from None


def write_json(file: Path, value: object) -> None:
    """Replace the file. There must be one writer at a time."""
    new = file.with_suffix(".new")
    try:
        with new.open("wb") as opened:
            opened.write(msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")
            opened.flush()
            os.fsync(opened.fileno())
        new.rename(file)
        folder = os.open(file.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as problem:
        raise KasparError(f"{file} cannot be written: {problem.strerror}") from None
