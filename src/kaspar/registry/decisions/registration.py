"""Registering a schema: chooses its version and id (KafkaSchemaRegistry.register).

draft = prepared(state, new, config)      # checks the mode, adds inherited metadata and rules
...                                       # the caller parses it: draft.with_text(canonical text)
existing = registered(state, draft)       # if there is one, nothing is written
...                                       # the caller checks compatibility
decision = registration(state, draft)
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from kaspar.registry.decisions.decision import Decision, check_writable, is_import, place_of
from kaspar.registry.decisions.purging import highest_ids_kept
from kaspar.registry.entities import (
    Metadata,
    RuleSet,
    SchemaReference,
    merged_metadata,
    merged_rule_sets,
    with_confluent_version,
)
from kaspar.registry.errors import invalid_schema, not_permitted, store_failed
from kaspar.registry.fingerprint import fingerprint
from kaspar.registry.interfaces import LogRecord
from kaspar.registry.names import DEFAULT_CONTEXT, context_of, context_prefix
from kaspar.registry.records import (
    AVRO,
    ConfigValue,
    SchemaValue,
    context_record,
    schema_record,
    schema_tombstone,
)
from kaspar.registry.state import ContextIndex, State, StoredVersion

NO_VERSION: Final = 0
NO_ID: Final = -1
_MAX_NUMBER: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class NewSchema:
    """A schema from a client. `version`: NO_VERSION is any, -1 is the one after the latest. `id`: NO_ID lets the
    registry choose one."""

    subject: str
    text: str
    type: str = AVRO
    references: tuple[SchemaReference, ...] = ()
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    version: int = NO_VERSION
    id: int = NO_ID

    @property
    def is_empty(self) -> bool:
        return not self.text.strip()

    @property
    def identity(self) -> bytes:
        return fingerprint(self.text, self.references, self.metadata, self.rule_set)

    def with_text(self, canonical: str, references: tuple[SchemaReference, ...]) -> "NewSchema":
        return replace(self, text=canonical, references=references)


def prepared(state: State, new: NewSchema, config: ConfigValue) -> NewSchema:
    _check_mode(state, new)
    if is_import(state.mode_in_scope(new.subject)):
        return new
    latest = state.versions(new.subject).latest_live()
    if new.is_empty:
        if latest is None:
            raise invalid_schema("Empty schema")
        new = replace(new, text=latest.value.schema, type=latest.value.type, references=latest.references)
    return with_inherited(new, config, latest, version=next_version(state, new.subject))


def with_inherited(
    new: NewSchema, config: ConfigValue, latest: StoredVersion | None, *, version: int | None
) -> NewSchema:
    """Add inherited metadata and rules: those of the request, or else of the latest version, merged with the config's
    defaults and overrides. `version` is the number to set as `confluent:version`, if it is requested or already
    present."""
    metadata, rule_set = new.metadata, new.rule_set
    if latest is not None:
        metadata = latest.value.metadata if metadata is None else metadata
        rule_set = latest.value.rule_set if rule_set is None else rule_set
    metadata = merged_metadata(merged_metadata(config.default_metadata, metadata), config.override_metadata)
    rule_set = merged_rule_sets(merged_rule_sets(config.default_rule_set, rule_set), config.override_rule_set)
    wanted = new.version != NO_VERSION or (metadata is not None and metadata.confluent_version is not None)
    if version is not None and wanted:
        metadata = with_confluent_version(metadata, version)
    return replace(new, metadata=metadata, rule_set=rule_set)


def next_version(state: State, subject: str) -> int:
    return state.versions(subject).highest + 1


def registered(state: State, new: NewSchema) -> StoredVersion | None:
    """The live version that already has the schema, with the requested id."""
    same = state.same_schema(new.subject, new.type, new.identity)
    if new.version != NO_VERSION or same is None:
        return None
    schema_id, stored = same
    if stored is None or stored.deleted or new.id not in (NO_ID, schema_id):
        return None
    return stored


def earlier_versions(state: State, subject: str) -> Iterator[StoredVersion]:
    """The versions that a new schema may have to be compatible with, newest first."""
    return state.versions(subject).newest_first()


def registration(state: State, new: NewSchema) -> Decision[StoredVersion]:
    """Register a schema that is parsed, compatible and not registered yet. The reply is the new version."""
    index = state.index(context_of(new.subject))
    same = state.same_schema(new.subject, new.type, new.identity)
    version = _version(state, new)
    if new.id != NO_ID:
        schema_id = new.id
        _check_id(state, new, schema_id)
    else:
        schema_id = _next_id(index) if same is None else same[0]
    value = SchemaValue(
        subject=new.subject,
        version=version,
        id=schema_id,
        schema_type=None if new.type == AVRO else new.type,
        references=new.references or None,
        metadata=new.metadata,
        rule_set=new.rule_set,
        schema=new.text,
    )
    # Deleted versions of the same schema are replaced by the new version.
    replaced = (
        schema_tombstone(old.subject, old.version)
        for old in index.all_with_id_in(schema_id, new.subject)
        if old.deleted and old.version < version
    )
    # An import may overwrite a version that has another id.
    overwritten = state.versions(new.subject).get(version)
    kept = () if overwritten is None or overwritten.id == schema_id else highest_ids_kept(state, [overwritten])
    records = (*_context_records(state, new.subject), *replaced, *kept, schema_record(value))
    return Decision(records, StoredVersion(value, new.identity, timestamp_ms=0))


def _context_records(state: State, subject: str) -> Iterator[LogRecord]:
    context = context_of(subject)
    if context != DEFAULT_CONTEXT and context not in state.contexts:
        yield context_record(context)


def _next_id(index: ContextIndex) -> int:
    if index.max_id >= _MAX_NUMBER:
        raise store_failed("Error while registering the schema: the context has no more ids")
    return index.max_id + 1


def _version(state: State, new: NewSchema) -> int:
    following = next_version(state, new.subject)
    if new.version <= NO_VERSION:
        if following > _MAX_NUMBER:
            raise invalid_schema("The subject has no more versions")
        return following
    if new.version != following and not is_import(state.mode_in_scope(new.subject)):
        raise invalid_schema("Version is not one more than previous version")
    return new.version


def _check_id(state: State, new: NewSchema, schema_id: int) -> None:
    context = context_of(new.subject)
    holder = state.index(context).any_with_id(schema_id)
    if holder is not None and (holder.value.type, holder.identity) != (new.type, new.identity):
        raise not_permitted(
            f"Overwrite new schema with id {schema_id} in context {context_prefix(context)} is not permitted."
        )


def _check_mode(state: State, new: NewSchema) -> None:
    check_writable(state, new.subject)
    mode = state.mode_in_scope(new.subject)
    if new.id >= 0 and not is_import(mode):
        raise not_permitted(f"Subject {place_of(new.subject)} is not in import mode")
    if new.id < 0 and mode != "READWRITE":
        raise not_permitted(f"Subject {place_of(new.subject)} is not in read-write mode")


def same_without_confluent_version(new: NewSchema, stored: StoredVersion) -> bool:
    """Whether the schemas differ only in the `confluent:version` that the registry added to the stored version."""
    return (
        stored.has_confluent_version
        and (new.metadata is None or new.metadata.confluent_version is None)
        and new.type == stored.value.type
        and new.identity == stored.identity_without_confluent_version()
    )


def same_but_for_references(new: NewSchema, stored: StoredVersion) -> bool:
    """Whether the stored version, with its references resolved, may be the same schema."""
    value = stored.value
    return (
        not new.references
        and bool(stored.references)
        and (new.type, new.metadata, new.rule_set) == (value.type, value.metadata, value.rule_set)
    )
