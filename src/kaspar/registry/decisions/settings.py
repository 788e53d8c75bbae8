"""Changing the config and the mode of a subject, a context (`:.context:`) or the whole registry (None)."""

from collections.abc import Mapping
from typing import Any

import msgspec

from kaspar.registry.decisions.decision import Decision, check_writable
from kaspar.registry.decisions.purging import purged
from kaspar.registry.errors import not_permitted, reference_exists, subject_not_found
from kaspar.registry.interfaces import LogRecord
from kaspar.registry.names import context_of, qualified
from kaspar.registry.records import (
    ConfigValue,
    Mode,
    clear_subject_record,
    config_record,
    mode_record,
)
from kaspar.registry.state import State


def config_change(state: State, subject: str | None, changes: Mapping[str, Any]) -> Decision[ConfigValue]:
    """Change a config. `changes` has the fields of ConfigValue that the request contains; None resets a field."""
    check_writable(state, subject)
    config = msgspec.structs.replace(state.config(subject) or ConfigValue(), subject=subject, **changes)
    return Decision((config_record(subject, config),), config)


def config_deletion(state: State, subject: str | None) -> Decision[ConfigValue | None]:
    """Delete a config. The reply is the deleted config. It is an error if a subject has none of its own."""
    config = state.config(subject)
    if config is None and subject is not None:
        raise subject_not_found(subject)
    check_writable(state, subject)
    return Decision((config_record(subject, None),) if config is not None else (), config)


def mode_change(state: State, subject: str | None, mode: Mode, *, mutable: bool, force: bool) -> Decision[Mode]:
    _check_mutable(mutable)
    records: tuple[LogRecord, ...] = ()
    if mode == "IMPORT" and state.mode_in_scope(subject) != "IMPORT" and not force:
        records = _clearing(state, subject)
    return Decision((*records, mode_record(subject, mode)), mode)


def mode_deletion(
    state: State, subject: str | None, *, mutable: bool, recursive: bool = False
) -> Decision[Mode | None]:
    """Delete a mode. The reply is the deleted mode. It is an error if a subject has none of its own. `recursive` also
    deletes the modes of the subjects in the context, or in the default context for the registry."""
    scopes = [subject, *subjects_with_mode(state, subject)] if recursive else [subject]
    deleted = [scope for scope in scopes if state.mode(scope) is not None]
    if not deleted and subject is not None:
        raise subject_not_found(subject)
    _check_mutable(mutable)
    return Decision(tuple(mode_record(scope, None) for scope in deleted), state.mode(subject))


def subjects_with_mode(state: State, scope: str | None) -> list[str]:
    """The subjects of a context (`:.context:`), or of the default one (None), that have a mode of their own."""
    if scope is not None and qualified(scope).subject:
        return []
    context = context_of(scope or "")
    return [each for each in state.modes() if qualified(each).subject and context_of(each) == context]


def _check_mutable(mutable: bool) -> None:
    if not mutable:
        raise not_permitted("Mode changes are not allowed")


def _clearing(state: State, subject: str | None) -> tuple[LogRecord, ...]:
    """The records that delete soft-deleted versions before an import, so that the ids it brings are free."""
    if state.has_subject(subject, deleted=False):
        raise not_permitted("Cannot import since found existing subjects")
    deleted = [stored for each in state.matching_subjects(subject) for stored in state.versions(each).oldest_first()]
    for stored in deleted:
        if state.referrers(stored.subject, stored.version):
            raise reference_exists(stored.subject, stored.version)
    return (*purged(state, deleted), clear_subject_record(subject))
