"""Queries of the API, as functions of the state."""

from collections.abc import Iterator, Mapping

from kaspar.registry.names import DEFAULT_CONTEXT, context_of, context_prefix, qualified, within
from kaspar.registry.state import Listing, State, StoredVersion


def listed_subjects(state: State, prefix: str, listing: Listing) -> Iterator[str]:
    """The subjects with the prefix. A subject counts as deleted if all its versions are."""
    for subject in state.subjects_with_prefix(prefix):
        if listing.has(deleted=not state.versions(subject).has_live):
            yield subject


def listed_versions(state: State, subject: str, listing: Listing) -> Iterator[StoredVersion]:
    return (stored for stored in state.versions(subject).oldest_first() if listing.has(deleted=stored.deleted))


def listed_schemas(state: State, prefix: str, *, deleted: bool, latest_only: bool) -> Iterator[StoredVersion]:
    for subject in state.subjects_with_prefix(prefix):
        yield from schemas_of_subject(state, subject, deleted=deleted, latest_only=latest_only)


def schemas_of_subject(state: State, subject: str, *, deleted: bool, latest_only: bool) -> Iterator[StoredVersion]:
    if latest_only:
        latest = next(state.versions(subject).newest_first(deleted=deleted), None)
        if latest is not None:
            yield latest
    else:
        yield from listed_versions(state, subject, Listing.ALL if deleted else Listing.LIVE)


def aliases_of_subjects(state: State, prefix: str) -> Mapping[str, list[str]]:
    """The aliases that begin with the prefix, by the subject that they stand for."""
    any_context = prefix.startswith(":*:")
    wanted = prefix.removeprefix(":*:")
    found: dict[str, list[str]] = {}
    for alias, config in sorted(state.configs(), key=lambda item: item[0]):
        name = qualified(alias).subject if any_context else alias
        if config.alias and name.startswith(wanted):
            found.setdefault(within(alias, config.alias), []).append(alias)
    return found


def alias_target(state: State, subject: str) -> str:
    """The subject that an alias stands for, or the subject itself."""
    config = state.config(subject)
    return within(subject, config.alias) if config is not None and config.alias else subject


def schema_by_id(state: State, schema_id: int, subject: str) -> StoredVersion | None:
    """The version with the id in the context of `subject`, which may be empty. An unqualified subject is searched in
    every context; after that, the id in the default context."""
    name = qualified(subject)
    index = state.index(name.context)
    if not name.subject:
        return index.any_with_id(schema_id)
    found = index.with_id_in(schema_id, subject)
    if found is not None or name.context != DEFAULT_CONTEXT:
        return found
    for context in state.contexts_with(name.subject):
        found = state.index(context).with_id_in(schema_id, context_prefix(context) + name.subject)
        if found is not None:
            return found
    return index.any_with_id(schema_id)


def versions_with_id(state: State, schema_id: int, subject: str, *, deleted: bool) -> list[StoredVersion] | None:
    """All versions with the schema that `schema_by_id` finds; None if it finds none."""
    found = schema_by_id(state, schema_id, subject)
    if found is None:
        return None
    same = state.index(context_of(found.subject)).with_id(schema_id)
    return sorted((each for each in same if deleted or not each.deleted), key=lambda each: (each.subject, each.version))


def ids_by_guid(state: State, identity: bytes) -> list[tuple[str, int]]:
    """The contexts that have the schema, with its ids there."""
    return [(context, schema_id) for context in state.contexts for schema_id in state.index(context).ids_of(identity)]


def latest_with_metadata(
    state: State, subject: str, properties: Mapping[str, str], *, deleted: bool
) -> StoredVersion | None:
    for stored in state.versions(subject).newest_first(deleted=deleted):
        metadata = stored.value.metadata
        if metadata is not None and properties.items() <= (metadata.properties or {}).items():
            return stored
    return None


def referring_versions(state: State, subject: str, version: int) -> Iterator[StoredVersion]:
    """The live versions that reference this one."""
    for each, number in state.referrers(subject, version):
        stored = state.versions(each).get(number)
        if stored is not None:
            yield stored
