"""The state: only replay changes it, and everything else reads it.

Replay keeps up with a long topic, because it parses only the JSON of a record and no schema.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

import msgspec

from kaspar.base.log import get_log
from kaspar.registry.entities import SchemaReference
from kaspar.registry.fingerprint import fingerprint
from kaspar.registry.names import (
    ANY_CONTEXT,
    DEFAULT_CONTEXT,
    GLOBAL_CONTEXT_PREFIX,
    context_of,
    context_prefix,
    qualified,
    within,
)
from kaspar.registry.records import (
    ConfigValue,
    Key,
    Mode,
    SchemaValue,
    decode_clear_subject,
    decode_config,
    decode_context,
    decode_delete_subject,
    decode_highest_ids,
    decode_key,
    decode_mode,
    decode_schema,
)
from kaspar.registry.state.contexts import ContextIndex
from kaspar.registry.state.forking import ForkableDict
from kaspar.registry.state.versions import StoredVersion, Versions

log = get_log(__name__)

_DEFAULT_CONTEXT_PREFIX: Final = f":{DEFAULT_CONTEXT}:"
_NO_VERSIONS: Final = Versions()
_NO_CONTEXT: Final = ContextIndex()


class Listing(Enum):
    """Which versions or subjects a list contains."""

    LIVE = 1
    ALL = 2
    DELETED = 3

    def has(self, *, deleted: bool) -> bool:
        return self is Listing.ALL or deleted is (self is Listing.DELETED)


@dataclass(frozen=True, slots=True)
class _Position:
    offset: int
    timestamp_ms: int


class State:
    def __init__(self) -> None:
        self._subjects: ForkableDict[str, Versions] = ForkableDict()
        self._sorted_subjects: list[str] = []
        self._indexes: dict[str, ContextIndex] = {}
        self._referrers: ForkableDict[tuple[str, int], set[tuple[str, int]]] = ForkableDict()
        """The live versions that reference a version, by the subject and number of that version."""
        self._configs: dict[str | None, ConfigValue] = {}
        self._modes: dict[str | None, Mode] = {}
        self._contexts: list[str] = []
        self._contexts_by_name: ForkableDict[str, list[str]] = ForkableDict()
        """By subject name: the contexts, except the default one, that have a subject with this name; sorted."""
        self._recorded_max_ids: dict[str, int] = {}
        self._replay_by_type: dict[str, Callable[[Key, bytes | None, _Position], None]] = {
            "SCHEMA": self._replay_schema,
            "CONFIG": self._replay_config,
            "MODE": self._replay_mode,
            "DELETE_SUBJECT": self._replay_delete_subject,
            "CLEAR_SUBJECT": self._replay_clear_subject,
            "CONTEXT": self._replay_context,
            "NOOP": self._replay_noop,
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and self._content() == other._content()

    __hash__ = None  # type: ignore[assignment]

    def _content(self) -> tuple[object, ...]:
        return self._subjects, self._indexes, self._referrers, self._configs, self._modes, self._contexts

    def fork(self) -> "State":
        """A state into which records can be replayed that are not in the log yet. This is cheap, because both states
        share what neither changes."""
        fork = State()
        fork._subjects = self._subjects.fork()
        fork._sorted_subjects = self._sorted_subjects.copy()
        fork._indexes = {context: index.fork() for context, index in self._indexes.items()}
        fork._referrers = self._referrers.fork()
        fork._configs = self._configs.copy()
        fork._modes = self._modes.copy()
        fork._contexts = self._contexts.copy()
        fork._contexts_by_name = self._contexts_by_name.fork()
        fork._recorded_max_ids = self._recorded_max_ids.copy()
        return fork

    # Replay

    def replay(self, key: bytes | None, value: bytes | None, offset: int, timestamp_ms: int) -> None:
        """Apply one record of `_schemas`, in offset order. Never raises: invalid records are logged and skipped."""
        try:
            decoded = decode_key(key or b"")
            replay = self._replay_by_type.get(decoded.keytype)
            if replay is None:
                log.warning("skipped a record of an unknown kind", offset=offset, kind=decoded.keytype)
            else:
                replay(decoded, value, _Position(offset, timestamp_ms))
        except (msgspec.MsgspecError, ValueError) as problem:
            log.warning("skipped a record that cannot be read", offset=offset, reason=str(problem))

    def _replay_schema(self, key: Key, value: bytes | None, position: _Position) -> None:
        if key.subject is None or key.version is None:
            raise ValueError("the key of a schema has no subject or version")
        if value is None:
            self._forget(key.subject, key.version)
            return
        schema = decode_schema(value)
        if (schema.subject, schema.version) != (key.subject, key.version):
            raise ValueError(f"the key is for {key.subject} {key.version}, the value is not")
        holder = self._indexes.get(context_of(schema.subject), _NO_CONTEXT).any_with_id(schema.id)
        if holder is not None and not _same_text(holder.value.schema, schema.schema):
            log.error("skipped a schema whose id belongs to another schema", offset=position.offset, id=schema.id)
            return
        self._put(schema, position.timestamp_ms, holder)

    def _replay_config(self, key: Key, value: bytes | None, position: _Position) -> None:
        if value is None:
            self._configs.pop(key.subject, None)
        else:
            # Old records have no subject in their value.
            self._configs[key.subject] = msgspec.structs.replace(decode_config(value), subject=key.subject)

    def _replay_mode(self, key: Key, value: bytes | None, position: _Position) -> None:
        if value is None:
            self._modes.pop(key.subject, None)
        else:
            self._modes[key.subject] = decode_mode(value).mode

    def _replay_delete_subject(self, key: Key, value: bytes | None, position: _Position) -> None:
        if value is None:
            return
        deleted = decode_delete_subject(value)
        for stored in [*self.versions(deleted.subject).oldest_first()]:
            if stored.version <= deleted.version and not stored.deleted:
                self._put(msgspec.structs.replace(stored.value, deleted=True), stored.timestamp_ms, stored)

    def _replay_clear_subject(self, key: Key, value: bytes | None, position: _Position) -> None:
        if value is None:
            return
        for subject in self.matching_subjects(decode_clear_subject(value).subject):
            for stored in [*self.versions(subject).oldest_first()]:
                if stored.deleted:
                    self._forget(subject, stored.version)

    def _replay_context(self, key: Key, value: bytes | None, position: _Position) -> None:
        context = key.context if value is None else decode_context(value).context
        if context is None:
            raise ValueError("the key of a context does not name it")
        if value is None and context in self._contexts:
            self._contexts.remove(context)
        elif value is not None and context not in self._contexts:
            insort(self._contexts, context)

    def _replay_noop(self, key: Key, value: bytes | None, position: _Position) -> None:
        if not value:  # Karapace writes an empty value
            return
        self._recorded_max_ids = decode_highest_ids(value).max_ids
        for context, max_id in self._recorded_max_ids.items():
            index = self._indexes.setdefault(context, ContextIndex())
            index.max_id = max(index.max_id, max_id)

    def _put(self, schema: SchemaValue, timestamp_ms: int, same: StoredVersion | None) -> None:
        """`same` is a version that may have the same text, which then is kept in memory once."""
        if same is not None and same.value.schema == schema.schema:
            schema = msgspec.structs.replace(schema, schema=same.value.schema)
        identity = fingerprint(schema.schema, schema.references or (), schema.metadata, schema.rule_set)
        stored = StoredVersion(schema, identity, timestamp_ms)
        if schema.subject not in self._subjects:
            self._subjects[schema.subject] = Versions()
            self._add_subject(schema.subject)
        versions = self._subjects.writable(schema.subject)
        if (old := versions.get(schema.version)) is not None:
            self._unindex(old)
        versions.put(stored)
        context = context_of(schema.subject)
        if context not in self._indexes:
            self._indexes[context] = ContextIndex()
        self._indexes[context].put(stored)
        if not stored.deleted:
            for target in _targets(stored):
                self._referrers.setdefault(target, set())
                self._referrers.writable(target).add((stored.subject, stored.version))

    def _forget(self, subject: str, version: int) -> None:
        stored = self.versions(subject).get(version)
        if stored is None:
            return
        self._unindex(stored)
        versions = self._subjects.writable(subject)
        versions.remove(version)
        if not versions:
            del self._subjects[subject]
            self._remove_subject(subject)

    def _add_subject(self, subject: str) -> None:
        insort(self._sorted_subjects, subject)
        context, name = qualified(subject)
        if context != DEFAULT_CONTEXT:
            self._contexts_by_name.setdefault(name, [])
            insort(self._contexts_by_name.writable(name), context)

    def _remove_subject(self, subject: str) -> None:
        del self._sorted_subjects[bisect_left(self._sorted_subjects, subject)]
        context, name = qualified(subject)
        if context != DEFAULT_CONTEXT:
            contexts = self._contexts_by_name.writable(name)
            contexts.remove(context)
            if not contexts:
                del self._contexts_by_name[name]

    def _unindex(self, stored: StoredVersion) -> None:
        self._indexes[context_of(stored.subject)].remove(stored)
        for target in _targets(stored):
            if target in self._referrers:
                referrers = self._referrers.writable(target)
                referrers.discard((stored.subject, stored.version))
                if not referrers:
                    del self._referrers[target]

    # Versions and ids

    def versions(self, subject: str) -> Versions:
        return self._subjects.get(subject, _NO_VERSIONS)

    def index(self, context: str) -> ContextIndex:
        return self._indexes.get(context, _NO_CONTEXT)

    def recorded_max_ids(self) -> Mapping[str, int]:
        """The content of the last record of highest ids."""
        return self._recorded_max_ids

    def same_schema(self, subject: str, schema_type: str, identity: bytes) -> tuple[int, StoredVersion | None] | None:
        """The id that the schema has in the subject's context, and the version of the subject that has it, if any.

        The fingerprint does not cover the format: a schema of another format is different, even with the same text.
        """
        index = self.index(context_of(subject))
        found: list[tuple[int, StoredVersion | None]] = []
        for schema_id in index.ids_of(identity):
            stored, holder = index.with_id_in(schema_id, subject), index.any_with_id(schema_id)
            if stored is not None and stored.value.type == schema_type:
                found.append((schema_id, stored))
            elif holder is not None and holder.value.type == schema_type:
                found.append((schema_id, None))
        live = (each for each in found if each[1] is not None and not each[1].deleted)
        return next(live, found[0] if found else None)

    def referrers(self, subject: str, version: int) -> set[tuple[str, int]]:
        """The live versions that reference this one."""
        return self._referrers.get((subject, version), set())

    # Subjects and contexts

    def subjects_with_prefix(self, prefix: str) -> Iterator[str]:
        """Subjects with the prefix, sorted. The prefix may begin with `:*:`, which means every context."""
        if not prefix.startswith(ANY_CONTEXT):
            return self._subjects_from(prefix.removeprefix(_DEFAULT_CONTEXT_PREFIX))
        rest = prefix[len(ANY_CONTEXT) :]
        if not rest:
            return iter(self._sorted_subjects)
        found = (
            subject for context in self.contexts for subject in self._subjects_from(context_prefix(context) + rest)
        )
        return iter(sorted(found))

    def _subjects_from(self, prefix: str) -> Iterator[str]:
        for at in range(bisect_left(self._sorted_subjects, prefix), len(self._sorted_subjects)):
            subject = self._sorted_subjects[at]
            if not subject.startswith(prefix):
                return
            # An empty prefix means the default context.
            if prefix or context_of(subject) == DEFAULT_CONTEXT:
                yield subject

    def matching_subjects(self, subject: str | None) -> list[str]:
        """The subject itself, all subjects of a context (`:.context:`), or all of the registry (None)."""
        if subject is None:
            return list(self._sorted_subjects)
        if subject and qualified(subject).subject:
            return [subject] if subject in self._subjects else []
        return list(self._subjects_from(subject))

    def has_subject(self, subject: str | None, *, deleted: bool) -> bool:
        return any(deleted or self._subjects[each].has_live for each in self.matching_subjects(subject))

    def contexts_with(self, name: str) -> Sequence[str]:
        """The contexts, except the default one, that have a subject with this name; sorted."""
        return self._contexts_by_name.get(name, ())

    @property
    def contexts(self) -> list[str]:
        """All contexts, sorted; the default one is first."""
        return [DEFAULT_CONTEXT, *(context for context in self._contexts if context != DEFAULT_CONTEXT)]

    # Config and mode

    def config(self, subject: str | None) -> ConfigValue | None:
        """The config of the subject, the context or the registry itself, without what it inherits."""
        return self._configs.get(subject)

    def config_in_scope(self, subject: str | None, default_level: str) -> ConfigValue:
        """The most specific config. Its compatibility level is inherited if it has none of its own."""
        found = [config for scope in _scopes(subject) if (config := self._configs.get(scope)) is not None]
        level = next((config.compatibility_level for config in found if config.compatibility_level), default_level)
        return msgspec.structs.replace(found[0] if found else ConfigValue(), compatibility_level=level)

    def configs(self) -> Iterator[tuple[str, ConfigValue]]:
        return ((subject, config) for subject, config in self._configs.items() if subject is not None)

    def mode(self, subject: str | None) -> Mode | None:
        return self._modes.get(subject)

    def modes(self) -> Iterator[str]:
        """The subjects and contexts that have their own mode."""
        return (subject for subject in self._modes if subject is not None)

    def mode_in_scope(self, subject: str | None) -> Mode:
        """The mode that applies to the subject. READONLY_OVERRIDE of a wider scope overrides the subject's own mode."""
        found = [mode for scope in _scopes(subject) if (mode := self._modes.get(scope)) is not None]
        if "READONLY_OVERRIDE" in found:
            return "READONLY_OVERRIDE"
        return found[0] if found else "READWRITE"


def _same_text(one: str, other: str) -> bool:
    """Whether the texts differ only in white space, as those that Karapace has written for one schema."""
    return one == other or "".join(one.split()) == "".join(other.split())


def _scopes(subject: str | None) -> list[str | None]:
    """The scopes whose config and mode apply to a subject, the most specific first. A context does not inherit from the
    default one; that of `:.__GLOBAL:` applies to all."""
    if subject is None:
        return [None, GLOBAL_CONTEXT_PREFIX]
    context = qualified(subject).context_prefix or None
    return [*dict.fromkeys([subject, context, GLOBAL_CONTEXT_PREFIX])]


def _targets(stored: StoredVersion) -> Iterator[tuple[str, int]]:
    return (_target(stored.subject, reference) for reference in stored.references)


def _target(subject: str, reference: SchemaReference) -> tuple[str, int]:
    return within(subject, reference.subject), reference.version
