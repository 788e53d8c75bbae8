"""Keeps Kafka from starting on a folder that was adopted: it would go on with metadata that is not kept up to date.

Kafka reads `quorum-state`, in the folder of its metadata log, before it opens any partition, and does not start if the
file has a data version that it does not know. So the file is replaced, atomically, by one of such a version, which says
what happened and has the original in it. Nothing else of Kafka's is changed.
"""

import json
import os
from typing import Final

from kaspar.base.errors import KasparError
from kaspar.storage.disk.files import Files, read_file, write_file

QUORUM_STATE: Final = "quorum-state"
_ADOPTED_VERSION: Final = 32767
"""Above any version of Kafka's."""
_ORIGINAL: Final = "original"
_NOTE: Final = (
    "Kaspar has adopted this folder, and Apache Kafka must not be started on it. Until Kaspar is started, 'kaspar "
    "metadata adopt FILE --undo' restores it."
)


def is_adopted(files: Files, metadata_log: str) -> bool:
    """Whether Kafka is kept from starting."""
    return _original(_read(files, metadata_log)) is not None


def known_voters(files: Files, metadata_log: str) -> frozenset[int]:
    """The voters that controller.quorum.voters had. None are known where voters can be added and removed: then the
    metadata log has them.
    """
    content = _read(files, metadata_log)
    try:
        fields = json.loads(_original(content) or content)
        return frozenset(voter["voterId"] for voter in fields.get("currentVoters") or ())
    except (ValueError, TypeError, KeyError, AttributeError):
        raise KasparError(f"{_path(metadata_log)} is damaged: start Kafka, which repairs what it can") from None


def forbid_kafka(files: Files, metadata_log: str) -> None:
    """From now on Kafka does not start. Changes nothing if that is so already."""
    content = _read(files, metadata_log)
    if _original(content) is None:
        adopted = {"note": _NOTE, _ORIGINAL: content.decode(), "data_version": _ADOPTED_VERSION}
        write_file(files, _path(metadata_log), json.dumps(adopted).encode())


def allow_kafka(files: Files, metadata_log: str) -> None:
    """From now on Kafka may start again. Changes nothing if that is so already."""
    original = _original(_read(files, metadata_log))
    if original is not None:
        write_file(files, _path(metadata_log), original.encode())


def _original(content: bytes) -> str | None:
    """What the file was before the adoption; None if it is as Kafka wrote it."""
    try:
        fields = json.loads(content)
    except ValueError:
        return None
    if not isinstance(fields, dict) or fields.get("data_version") != _ADOPTED_VERSION:
        return None
    return str(fields[_ORIGINAL])


def _read(files: Files, metadata_log: str) -> bytes:
    try:
        return read_file(files, _path(metadata_log))
    except FileNotFoundError:
        raise KasparError(f"{metadata_log} has no {QUORUM_STATE}: Kafka has never been started on it") from None


def _path(metadata_log: str) -> str:
    return os.path.join(metadata_log, QUORUM_STATE)
