"""The registry itself, as the API calls it.

Reads come from the state. Writes are decided on the leader, one at a time, and are answered after their records were
replayed. On any other instance a write raises NotLeader, and the API forwards the request.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from itertools import chain, islice
from typing import Any, TypeVar

from kaspar.registry.decisions.decision import Decision, is_import
from kaspar.registry.decisions.deletion import context_deletion, subject_deletion, version_deletion
from kaspar.registry.decisions.registration import (
    NO_ID,
    NO_VERSION,
    NewSchema,
    earlier_versions,
    prepared,
    registered,
    registration,
)
from kaspar.registry.decisions.settings import config_change, config_deletion, mode_change, mode_deletion
from kaspar.registry.entities import Metadata
from kaspar.registry.errors import incompatible_schema, invalid_schema
from kaspar.registry.interfaces import Leadership, NotLeader, SchemaLog
from kaspar.registry.lookup import SchemaLookup
from kaspar.registry.options import RegistryOptions
from kaspar.registry.parsing import Parser
from kaspar.registry.records import ConfigValue, Mode
from kaspar.registry.reserved_fields import reserved_field_errors
from kaspar.registry.state import State, StoredVersion
from kaspar.schemas import ParsedSchema
from kaspar.schemas.levels import CompatibilityLevel, EarlierVersion, check

T = TypeVar("T")

LATEST = -1


class RegistryService:
    def __init__(self, state: State, schema_log: SchemaLog, leadership: Leadership, options: RegistryOptions) -> None:
        self.state = state
        self.leadership = leadership
        self.options = options
        self._log = schema_log
        self._parser = Parser()
        self.lookup = SchemaLookup(state, self._parser)
        self._deciding = asyncio.Lock()

    def close(self) -> None:
        self._parser.close()

    def config_in_scope(self, subject: str | None) -> ConfigValue:
        return self.state.config_in_scope(subject, self.options.compatibility_level.value)

    def normalizes(self, subject: str, requested: bool) -> bool:
        return requested or self.config_in_scope(subject).normalize is True

    async def formatted(self, stored: StoredVersion, form: str) -> str:
        """The text in the form that a client asks for; without one as it is stored."""
        if not form.strip():
            return stored.value.schema
        source = self.lookup.stored_source(stored)
        return await self._parser.run([source], lambda: self._parser.parse(source).formatted(form))

    async def find_version(self, new: NewSchema, *, normalize: bool, deleted: bool) -> StoredVersion | None:
        """The version that has the schema."""
        config = self.config_in_scope(new.subject)
        normalize = self.normalizes(new.subject, normalize)
        return await self.lookup.find_in_contexts(new, config, normalize=normalize, deleted=deleted)

    async def incompatibilities(self, new: NewSchema, earlier: list[StoredVersion], *, normalize: bool) -> list[str]:
        """Why the schema could not be registered after the versions `earlier`, newest first."""
        if new.is_empty:
            raise invalid_schema("Empty schema")
        normalize = self.normalizes(new.subject, normalize)
        schema, parsed = await self.lookup.canonical(new, normalize=normalize)
        return await self._compare(schema, parsed, earlier)

    async def register(self, new: NewSchema, *, normalize: bool) -> StoredVersion:
        """A schema that is there already is returned, also where nothing can be written."""
        normalize = self.normalizes(new.subject, normalize)
        existing = await self._existing(new, normalize=normalize)
        if existing is not None:
            return existing
        async with self._leading():
            return await self._register(new, normalize=normalize)

    async def delete_version(self, subject: str, version: int, *, permanent: bool, requested: str) -> int:
        return await self._write(
            lambda state: version_deletion(state, subject, version, permanent=permanent, requested=requested)
        )

    async def delete_subject(self, subject: str, *, permanent: bool) -> list[int]:
        return await self._write(lambda state: subject_deletion(state, subject, permanent=permanent))

    async def delete_context(self, context_prefix: str) -> None:
        await self._write(lambda state: context_deletion(state, context_prefix))

    async def change_config(self, subject: str | None, changes: Mapping[str, Any]) -> ConfigValue:
        return await self._write(lambda state: config_change(state, subject, changes))

    async def delete_config(self, subject: str | None) -> ConfigValue | None:
        return await self._write(lambda state: config_deletion(state, subject))

    async def change_mode(self, subject: str | None, mode: Mode, *, force: bool) -> Mode:
        mutable = self.options.mode_mutability
        return await self._write(lambda state: mode_change(state, subject, mode, mutable=mutable, force=force))

    async def delete_mode(self, subject: str | None) -> Mode | None:
        mutable = self.options.mode_mutability
        return await self._write(lambda state: mode_deletion(state, subject, mutable=mutable))

    async def catch_up(self) -> None:
        """After a write was carried out elsewhere: return when it was replayed here."""
        await self._log.catch_up()

    @asynccontextmanager
    async def _leading(self) -> AsyncIterator[None]:
        """One decision at a time, on a leader that knows everything its predecessors have written."""
        if not self.leadership.is_leader:
            raise NotLeader("this instance is not the leader")
        async with self._deciding:
            await self.leadership.ready()
            yield

    async def _write(self, decide: Callable[[State], Decision[T]]) -> T:
        async with self._leading():
            decision = decide(self.state)
            if decision.records:
                await self._log.append(decision.records)
            return decision.reply

    async def _existing(self, new: NewSchema, *, normalize: bool) -> StoredVersion | None:
        """What can be answered without a decision."""
        if self.config_in_scope(new.subject).has_defaults_or_overrides:
            return None
        latest_only = new.version == LATEST
        found = await self.lookup.find_as_is(new, normalize=normalize, deleted=False, latest_only=latest_only)
        if found is None:
            return None
        if new.version in (NO_VERSION, LATEST):
            return found if new.id in (NO_ID, found.id) else None
        if new.id != found.id:
            return None
        # An import may have brought one schema as several versions.
        stored = self.state.versions(new.subject).get(new.version)
        same = stored is not None and not stored.deleted and (stored.id, stored.identity) == (found.id, found.identity)
        return stored if same else None

    async def _register(self, new: NewSchema, *, normalize: bool) -> StoredVersion:
        draft = prepared(self.state, new, self.config_in_scope(new.subject))
        if draft.is_empty:
            raise invalid_schema("Empty schema")
        schema, parsed = await self.lookup.canonical(draft, normalize=normalize)
        existing = registered(self.state, schema)
        if existing is None and schema.version == NO_VERSION:
            found = await self.lookup.find_canonical(schema, deleted=False)
            existing = found if found is not None and schema.id in (NO_ID, found.id) else None
        if existing is not None:
            return existing
        if not is_import(self.state.mode_in_scope(schema.subject)):
            messages = await self._compare(schema, parsed, earlier_versions(self.state, schema.subject))
            if messages:
                raise incompatible_schema(schema.subject, messages)
        decision = registration(self.state, schema)
        await self._log.append(decision.records)
        stored = self.state.versions(decision.reply.subject).get(decision.reply.version)
        assert stored is not None, "an appended schema was not replayed"
        return stored

    async def _compare(self, new: NewSchema, parsed: ParsedSchema, earlier: Iterable[StoredVersion]) -> list[str]:
        config = self.config_in_scope(new.subject)
        level = CompatibilityLevel.of(config.compatibility_level or "") or self.options.compatibility_level
        versions = iter(earlier)
        latest = next(versions, None)
        errors = self._field_errors(new, parsed, config, latest)
        candidates = chain([] if latest is None else [latest], versions)
        compared = islice(_of_group(candidates, new.metadata, config.compatibility_group), _versions_to_compare(level))
        sources = [(stored.version, self.lookup.stored_source(stored)) for stored in compared]
        return await self._parser.run(
            [source for _, source in sources],
            lambda: check(
                level,
                parsed,
                (EarlierVersion(version, self._parser.parse(source)) for version, source in sources),
                validate_fields=self._validates_fields(config),
                field_errors=errors,
            ),
        )

    def _field_errors(
        self, new: NewSchema, parsed: ParsedSchema, config: ConfigValue, latest: StoredVersion | None
    ) -> list[str]:
        if not self._validates_fields(config):
            return []
        return reserved_field_errors(parsed, new.metadata, None if latest is None else latest.value.metadata)

    def _validates_fields(self, config: ConfigValue) -> bool:
        return self.options.validate_fields if config.validate_fields is None else config.validate_fields


def _versions_to_compare(level: CompatibilityLevel) -> int | None:
    """None: all."""
    if level is CompatibilityLevel.NONE:
        return 0
    return None if level.transitive else 1


def _of_group(
    versions: Iterable[StoredVersion], metadata: Metadata | None, group: str | None
) -> Iterable[StoredVersion]:
    """Versions are only compared within a compatibility group: those with the same value of a metadata property."""
    if group is None:
        return versions
    wanted = _property(metadata, group)
    return (stored for stored in versions if _property(stored.value.metadata, group) == wanted)


def _property(metadata: Metadata | None, name: str) -> str | None:
    return ((metadata.properties if metadata is not None else None) or {}).get(name)
