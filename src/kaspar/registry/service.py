"""The registry itself, as the API calls it.

Reads use the state. Writes are decided on the leader, one after the other, and complete once their records have been
replayed (group_commit.py). On other instances a write raises NotLeader, and the API forwards the request.
"""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from kaspar.registry.decisions.decision import Decision
from kaspar.registry.decisions.deletion import context_deletion, subject_deletion, version_deletion
from kaspar.registry.decisions.registration import NO_ID, NO_VERSION, NewSchema
from kaspar.registry.decisions.settings import config_change, config_deletion, mode_change, mode_deletion
from kaspar.registry.entities import SchemaTags
from kaspar.registry.errors import RegistryError
from kaspar.registry.group_commit import GroupCommit
from kaspar.registry.interfaces import Leadership, SchemaLog
from kaspar.registry.options import RegistryOptions
from kaspar.registry.parsing import KnownAnswers, Parser, SchemaAnswers, Unprepared
from kaspar.registry.records import ConfigValue, Mode
from kaspar.registry.registrar import Registrar
from kaspar.registry.state import State, StoredVersion

T = TypeVar("T")

LATEST = -1

_ATTEMPTS: Final = 5
"""Attempts to register a large schema without delaying other writes. One fails if its subject changed meanwhile."""


class RegistryService:
    def __init__(self, state: State, schema_log: SchemaLog, leadership: Leadership, options: RegistryOptions) -> None:
        self.state = state
        self.leadership = leadership
        self.options = options
        self._log = schema_log
        self._parser = Parser()
        self._registrar = Registrar(state, self._parser, options)
        self.lookup = self._registrar.lookup
        self._writes = GroupCommit(state, schema_log, leadership)

    def close(self) -> None:
        self._parser.close()

    def config_in_scope(self, subject: str | None) -> ConfigValue:
        return self._registrar.config_in_scope(subject)

    def normalizes(self, subject: str, requested: bool) -> bool:
        return self._registrar.normalizes(subject, requested)

    async def formatted(self, stored: StoredVersion, form: str) -> str:
        """The text in the requested form, or as it is stored if none is requested."""
        if not form.strip():
            return stored.value.schema
        source = self.lookup.stored_source(stored)
        return await self._parser.formatted(source, form)

    async def tags(self, stored: StoredVersion) -> list[SchemaTags]:
        """The tags in the schema's text."""
        return await self._parser.tags(self.lookup.stored_source(stored))

    async def tagged(self, new: NewSchema, added: tuple[SchemaTags, ...], removed: tuple[SchemaTags, ...]) -> NewSchema:
        """The schema with changed tags in its text."""
        canonical, source = await self.lookup.canonical(new, normalize=False)
        return replace(canonical, text=await self._parser.tagged(source, added, removed))

    async def find_version(self, new: NewSchema, *, normalize: bool, deleted: bool) -> StoredVersion | None:
        """The version that has the schema; None if there is none."""
        config = self.config_in_scope(new.subject)
        normalize = self.normalizes(new.subject, normalize)
        return await self.lookup.find_in_contexts(new, config, normalize=normalize, deleted=deleted)

    async def incompatibilities(self, new: NewSchema, earlier: list[StoredVersion], *, normalize: bool) -> list[str]:
        """The reasons why the schema could not be registered after the versions `earlier`, newest first."""
        return await self._registrar.incompatibilities(new, earlier, normalize=normalize)

    async def register(self, new: NewSchema, *, normalize: bool) -> StoredVersion:
        """Register a schema. One that is registered already is returned, even where nothing can be written."""
        existing = await self._existing(new, normalize=self.normalizes(new.subject, normalize))
        if existing is not None:
            return existing
        for _ in range(_ATTEMPTS):
            try:
                return await self._decide_registration(new, KnownAnswers(self._parser), normalize=normalize)
            except Unprepared:
                # Other writes wait for a decision. So the outcomes for a large schema are computed before, by a trial
                # decision.
                with contextlib.suppress(RegistryError):
                    await self._registrar.registration(new, normalize=normalize)
        return await self._decide_registration(new, self._parser, normalize=normalize)

    async def _decide_registration(self, new: NewSchema, parser: SchemaAnswers, *, normalize: bool) -> StoredVersion:
        return await self._writes.write(
            lambda state: Registrar(state, parser, self.options).registration(new, normalize=normalize)
        )

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

    async def delete_mode(self, subject: str | None, *, recursive: bool) -> Mode | None:
        mutable = self.options.mode_mutability
        return await self._write(lambda state: mode_deletion(state, subject, mutable=mutable, recursive=recursive))

    async def catch_up(self) -> None:
        """Return once a write that the leader carried out has been replayed here."""
        await self._log.catch_up()

    async def _write(self, decide: Callable[[State], Decision[T]]) -> T:
        async def decided(state: State) -> Decision[T]:
            return decide(state)

        return await self._writes.write(decided)

    async def _existing(self, new: NewSchema, *, normalize: bool) -> StoredVersion | None:
        """The registered version, if that is clear without a decision."""
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
        # An import may have registered one schema as several versions.
        stored = self.state.versions(new.subject).get(new.version)
        same = stored is not None and not stored.deleted and (stored.id, stored.identity) == (found.id, found.identity)
        return stored if same else None
