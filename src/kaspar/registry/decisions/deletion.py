"""Deleting versions, subjects and contexts.

A version is first soft-deleted: it is no longer listed or compared with, but its id can still be looked up. Then it can
be deleted permanently. A version that others refer to cannot be deleted.
"""

import msgspec

from kaspar.registry.decisions.decision import Decision, check_writable
from kaspar.registry.decisions.purging import purged
from kaspar.registry.errors import (
    context_not_empty,
    reference_exists,
    subject_not_found,
    subject_not_soft_deleted,
    subject_soft_deleted,
    version_not_found,
    version_not_soft_deleted,
    version_soft_deleted,
)
from kaspar.registry.interfaces import LogRecord
from kaspar.registry.names import qualified
from kaspar.registry.records import (
    config_record,
    context_tombstone,
    delete_subject_record,
    mode_record,
    schema_record,
)
from kaspar.registry.state import State, StoredVersion

LATEST = -1


def version_deletion(state: State, subject: str, version: int, *, permanent: bool, requested: str) -> Decision[int]:
    """Delete a version. `requested` is the version as the client wrote it. The reply is the version number."""
    stored = _version_to_delete(state, subject, version)
    if stored is None:
        raise version_not_found(version) if state.has_subject(subject, deleted=True) else subject_not_found(subject)
    if stored.deleted and not permanent:
        raise version_soft_deleted(subject, requested)
    check_writable(state, subject)
    _check_unreferenced(state, stored)
    if permanent and not stored.deleted:
        raise version_not_soft_deleted(subject, stored.version)
    if not permanent:
        return Decision((schema_record(msgspec.structs.replace(stored.value, deleted=True)),), stored.version)
    left = len(state.versions(subject)) - 1
    settings = () if left else _settings_tombstones(state, subject)
    return Decision((*purged(state, [stored]), *settings), stored.version)


def subject_deletion(state: State, subject: str, *, permanent: bool) -> Decision[list[int]]:
    """Delete all versions. The reply has the numbers of the deleted versions."""
    versions = state.versions(subject)
    if not len(versions):  # also true for a context (`:.context:`), which is not a subject
        raise subject_not_found(subject)
    if not permanent and not versions.has_live:
        raise subject_soft_deleted(subject)
    check_writable(state, subject)
    stored = [each for each in versions.oldest_first() if permanent or not each.deleted]
    for each in stored:
        _check_unreferenced(state, each)
        if permanent and not each.deleted:
            raise subject_not_soft_deleted(subject)
    numbers = [each.version for each in stored]
    if not permanent:
        return Decision((delete_subject_record(subject, numbers[-1]),), numbers)
    return Decision((*purged(state, stored), *_settings_tombstones(state, subject)), numbers)


def context_deletion(state: State, context_prefix: str) -> Decision[None]:
    """Delete a context, which must be empty."""
    if state.has_subject(context_prefix, deleted=True):
        raise context_not_empty(context_prefix)
    context = qualified(context_prefix).context
    return Decision((context_tombstone(context),) if context in state.contexts else (), None)


def _version_to_delete(state: State, subject: str, version: int) -> StoredVersion | None:
    versions = state.versions(subject)
    return versions.latest_live() if version == LATEST else versions.get(version)


def _check_unreferenced(state: State, stored: StoredVersion) -> None:
    if state.referrers(stored.subject, stored.version):
        raise reference_exists(stored.subject, stored.version)


def _settings_tombstones(state: State, subject: str) -> tuple[LogRecord, ...]:
    """The tombstones of the subject's config and mode, which are deleted with its last version."""
    records = []
    if state.mode(subject) is not None:
        records.append(mode_record(subject, None))
    if state.config(subject) is not None:
        records.append(config_record(subject, None))
    return tuple(records)
