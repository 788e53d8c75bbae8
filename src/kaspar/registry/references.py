"""Finds the texts of all schemas that a schema references, directly or indirectly.

A reference names a version, which is stored before anything can reference it, so there are no cycles. But an import or
another program that writes to the topic can create some. Depth, number and size are bounded, because schemas are
untrusted input and are resolved on the event loop.
"""

from collections.abc import Sequence
from typing import Final

from kaspar.registry.entities import SchemaReference
from kaspar.registry.names import DEFAULT_CONTEXT, context_of, context_prefix, qualified, within
from kaspar.registry.state import State, StoredVersion
from kaspar.schemas import InvalidSchema

MAX_DEPTH: Final = 64
MAX_REFERENCES: Final = 1_000
MAX_CHARACTERS: Final = 16 * 1024 * 1024
"""The maximum total size of all schemas that one schema references."""

LATEST: Final = -1


def check_number(references: Sequence[SchemaReference]) -> None:
    """Raises InvalidSchema."""
    if len(references) > MAX_REFERENCES:
        raise InvalidSchema(f"A schema must not refer to more than {MAX_REFERENCES} others")


def resolved_references(state: State, subject: str, references: Sequence[SchemaReference]) -> dict[str, str]:
    """The texts by reference name, dependencies first. Raises InvalidSchema."""
    resolution = _Resolution(state)
    resolution.resolve(subject, references, ())
    return resolution.found


def pinned_references(state: State, subject: str, references: Sequence[SchemaReference]) -> tuple[SchemaReference, ...]:
    """Replace the version `latest`, which is sent as -1, by its number. Raises InvalidSchema."""
    check_number(references)
    return tuple(
        SchemaReference(each.name, each.subject, _find(state, subject, each).version)
        if each.version == LATEST
        else each
        for each in references
    )


def version_in_contexts(state: State, subject: str, version: int, *, deleted: bool) -> StoredVersion | None:
    """The version, or the latest one for -1. An unqualified subject is searched in every context, the default one
    first."""
    found = _version(state, subject, version, deleted=deleted)
    if found is not None or context_of(subject) != DEFAULT_CONTEXT:
        return found
    name = qualified(subject).subject
    contexts = state.contexts_with(name)
    others = (_version(state, context_prefix(context) + name, version, deleted=deleted) for context in contexts)
    return next((each for each in others if each is not None), None)


def _version(state: State, subject: str, version: int, *, deleted: bool) -> StoredVersion | None:
    versions = state.versions(subject)
    if version == LATEST:
        return versions.latest_live()
    stored = versions.get(version)
    return None if stored is None or (stored.deleted and not deleted) else stored


def _find(state: State, subject: str, reference: SchemaReference) -> StoredVersion:
    target = within(subject, reference.subject)
    # A deleted version can still be referenced.
    stored = version_in_contexts(state, target, reference.version, deleted=True)
    if stored is None:
        raise InvalidSchema(f'No schema reference found for subject "{target}" and version {reference.version}')
    return stored


class _Resolution:
    def __init__(self, state: State) -> None:
        self._state = state
        self._characters = 0
        self.found: dict[str, str] = {}

    def resolve(self, subject: str, references: Sequence[SchemaReference], path: tuple[tuple[str, int], ...]) -> None:
        check_number(references)
        for reference in references:
            if reference.name in self.found:
                continue
            stored = _find(self._state, subject, reference)
            place = (stored.subject, stored.version)
            if place in path:
                raise InvalidSchema(f'Schema references form a cycle at subject "{place[0]}" and version {place[1]}')
            if len(path) >= MAX_DEPTH:
                raise InvalidSchema(f"Schema references are nested more than {MAX_DEPTH} levels deep")
            self.resolve(stored.subject, stored.references, (*path, place))
            self._add(reference.name, stored.value.schema)

    def _add(self, name: str, text: str) -> None:
        if len(self.found) >= MAX_REFERENCES:
            raise InvalidSchema(f"A schema must not refer to more than {MAX_REFERENCES} others")
        if name not in self.found:
            self.found[name] = text
            self._characters += len(text)
        if self._characters > MAX_CHARACTERS:
            raise InvalidSchema(f"The schemas that are referred to have more than {MAX_CHARACTERS} characters")
