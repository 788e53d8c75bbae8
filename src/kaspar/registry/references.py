"""Finds the texts of all schemas that a schema refers to, directly or through others.

References are names of versions, which are stored before anything can refer to them, so there are no cycles; but an
import or a foreign writer of the topic can make some. Depth and number are bounded.
"""

from collections.abc import Iterable
from typing import Final

from kaspar.registry.entities import SchemaReference
from kaspar.registry.names import DEFAULT_CONTEXT, context_of, context_prefix, qualified, within
from kaspar.registry.state import State, StoredVersion
from kaspar.schemas import InvalidSchema

MAX_DEPTH: Final = 64
MAX_REFERENCES: Final = 1_000

LATEST: Final = -1


def resolved_references(state: State, subject: str, references: Iterable[SchemaReference]) -> dict[str, str]:
    """The texts by the names that refer to them; what others depend on comes first. Raises InvalidSchema."""
    found: dict[str, str] = {}
    _resolve(state, subject, references, found, ())
    return found


def pinned_references(state: State, subject: str, references: Iterable[SchemaReference]) -> tuple[SchemaReference, ...]:
    """The references with numbers instead of `latest`, which is sent as -1. Raises InvalidSchema."""
    return tuple(
        SchemaReference(each.name, each.subject, _find(state, subject, each).version)
        if each.version == LATEST
        else each
        for each in references
    )


def version_in_contexts(state: State, subject: str, version: int, *, deleted: bool) -> StoredVersion | None:
    """The version, or the latest one (-1). An unqualified subject is looked for in every context: first in the default
    one."""
    found = _version(state, subject, version, deleted=deleted)
    if found is not None or context_of(subject) != DEFAULT_CONTEXT:
        return found
    name = qualified(subject).subject
    others = (_version(state, context_prefix(context) + name, version, deleted=deleted) for context in state.contexts)
    return next((each for each in others if each is not None), None)


def _version(state: State, subject: str, version: int, *, deleted: bool) -> StoredVersion | None:
    versions = state.versions(subject)
    if version == LATEST:
        return versions.latest_live()
    stored = versions.get(version)
    return None if stored is None or (stored.deleted and not deleted) else stored


def _find(state: State, subject: str, reference: SchemaReference) -> StoredVersion:
    target = within(subject, reference.subject)
    # A deleted version still serves those that refer to it.
    stored = version_in_contexts(state, target, reference.version, deleted=True)
    if stored is None:
        raise InvalidSchema(f'No schema reference found for subject "{target}" and version {reference.version}')
    return stored


def _resolve(
    state: State,
    subject: str,
    references: Iterable[SchemaReference],
    found: dict[str, str],
    path: tuple[tuple[str, int], ...],
) -> None:
    for reference in references:
        if reference.name in found:
            continue
        stored = _find(state, subject, reference)
        place = (stored.subject, stored.version)
        if place in path:
            raise InvalidSchema(f'Schema references form a cycle at subject "{place[0]}" and version {place[1]}')
        if len(path) >= MAX_DEPTH:
            raise InvalidSchema(f"Schema references are nested more than {MAX_DEPTH} levels deep")
        _resolve(state, stored.subject, stored.references, found, (*path, place))
        if len(found) >= MAX_REFERENCES:
            raise InvalidSchema(f"A schema must not refer to more than {MAX_REFERENCES} others")
        found.setdefault(reference.name, stored.value.schema)
