"""Keeps Kafka from starting on an adopted folder, because its metadata there is no longer up to date.

Kafka reads `quorum-state`, in the folder of its metadata log, before it opens any partition, and does not start if the
file has an unknown data version. So the file is replaced, atomically, by one with such a version, a note that explains
it, and the original content. No other file of Kafka is changed.
"""

import json
import os
from typing import Final

from kaspar.base.errors import KasparError
from kaspar.storage.disk.files import Files, read_file, write_file

QUORUM_STATE: Final = "quorum-state"
_ADOPTED_VERSION: Final = 32767
"""Higher than any version that Kafka uses."""
_ORIGINAL: Final = "original"
_NOTE: Final = (
    "Kaspar has adopted this folder, and Apache Kafka must not be started on it. Until Kaspar is started, 'kaspar "
    "metadata adopt FILE --undo' restores it."
)


def is_adopted(files: Files, metadata_log: str) -> bool:
    """Whether Kafka is kept from starting."""
    return _original(_read(files, metadata_log)) is not None


def known_voters(files: Files, metadata_log: str) -> frozenset[int]:
    """The voters that controller.quorum.voters had. Empty if the quorum is dynamic: then the metadata log has them."""
    content = _read(files, metadata_log)
    try:
        fields = json.loads(_original(content) or content)
        return frozenset(voter["voterId"] for voter in fields.get("currentVoters") or ())
    except (ValueError, TypeError, KeyError, AttributeError):
        raise KasparError(f"{_path(metadata_log)} is damaged: start Kafka, which repairs what it can") from None


def forbid_kafka(files: Files, metadata_log: str) -> None:
    """Keep Kafka from starting from now on. Does nothing if that is done already."""
    content = _read(files, metadata_log)
    if _original(content) is None:
        adopted = {"note": _NOTE, _ORIGINAL: content.decode(), "data_version": _ADOPTED_VERSION}
        write_file(files, _path(metadata_log), json.dumps(adopted).encode())


def allow_kafka(files: Files, metadata_log: str) -> None:
    """Let Kafka start again. Does nothing if it may start already."""
    original = _original(_read(files, metadata_log))
    if original is not None:
        write_file(files, _path(metadata_log), original.encode())


def _original(content: bytes) -> str | None:
    """The content of the file before the adoption. None if it was not replaced."""
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
