"""Finds the version of a subject that has the schema that a client sent (lookUpSchemaUnderSubject).

The same schema is found by its format and fingerprint. Two other schemas also match a stored version: one that contains
the text of all schemas that the stored one references, and one without the `confluent:version` that the registry added
to the stored one's metadata.
"""

import asyncio
from dataclasses import replace
from itertools import islice
from typing import Final

from kaspar.registry.decisions.registration import (
    NewSchema,
    same_but_for_references,
    same_without_confluent_version,
    with_inherited,
)
from kaspar.registry.errors import RegistryError
from kaspar.registry.names import DEFAULT_CONTEXT, context_of, context_prefix, qualified
from kaspar.registry.parsing import SchemaAnswers, Source, source_of, unparseable
from kaspar.registry.records import ConfigValue
from kaspar.registry.references import pinned_references, resolved_references
from kaspar.registry.state import State, StoredVersion
from kaspar.schemas import InvalidSchema

_MAX_RESOLVED: Final = 100
"""The maximum number of versions with references that are resolved for one lookup, newest first."""


class SchemaLookup:
    def __init__(self, state: State, parser: SchemaAnswers) -> None:
        self._state = state
        self._parser = parser

    def source(self, subject: str, type_name: str, text: str, new: NewSchema | StoredVersion) -> Source:
        """Raises RegistryError if a reference cannot be resolved."""
        try:
            references = resolved_references(self._state, subject, new.references)
        except InvalidSchema as problem:
            raise unparseable(type_name, problem) from None
        return source_of(type_name, text, references)

    async def canonical(self, new: NewSchema, *, normalize: bool) -> tuple[NewSchema, Source]:
        """The schema with the text that would be stored, and the source that was parsed. Raises RegistryError."""
        try:
            new = replace(new, references=pinned_references(self._state, new.subject, new.references))
        except InvalidSchema as problem:
            raise unparseable(new.type, problem) from None
        source = self.source(new.subject, new.type, new.text, new)
        text = await (self._parser.normalized(source) if normalize else self._parser.canonical(source))
        return replace(new, text=text), source

    def stored_source(self, stored: StoredVersion) -> Source:
        return self.source(stored.subject, stored.value.type, stored.value.schema, stored)

    async def find(
        self, new: NewSchema, config: ConfigValue, *, normalize: bool, deleted: bool
    ) -> StoredVersion | None:
        """The version of the subject that has the schema. If there is none, the lookup is repeated with the metadata
        and rules that the schema would inherit on registration."""
        found = await self.find_as_is(new, normalize=normalize, deleted=deleted)
        latest = self._state.versions(new.subject).latest_live()
        if found is not None or latest is None:
            return found
        inherited = with_inherited(new, config, latest, version=None)
        if inherited == new:
            return None
        return await self.find_as_is(inherited, normalize=normalize, deleted=deleted)

    async def find_in_contexts(
        self, new: NewSchema, config: ConfigValue, *, normalize: bool, deleted: bool
    ) -> StoredVersion | None:
        """Like `find`, but searches an unqualified subject in every context."""
        found = await self.find(new, config, normalize=normalize, deleted=deleted)
        if found is not None or context_of(new.subject) != DEFAULT_CONTEXT:
            return found
        name = qualified(new.subject).subject
        for context in [*self._state.contexts_with(name)]:
            elsewhere = replace(new, subject=context_prefix(context) + name)
            try:
                found = await self.find(elsewhere, config, normalize=normalize, deleted=deleted)
            except RegistryError:
                continue  # Its references may exist in another context only.
            if found is not None:
                return found
        return None

    async def find_as_is(
        self, new: NewSchema, *, normalize: bool, deleted: bool, latest_only: bool = False
    ) -> StoredVersion | None:
        if new.is_empty:
            return None
        schema, _ = await self.canonical(new, normalize=normalize)
        return await self.find_canonical(schema, deleted=deleted, latest_only=latest_only)

    async def find_canonical(
        self, schema: NewSchema, *, deleted: bool, latest_only: bool = False
    ) -> StoredVersion | None:
        same = self._state.same_schema(schema.subject, schema.type, schema.identity)
        stored = same[1] if same is not None else None
        latest = self._state.versions(schema.subject).latest_live()
        if stored is not None and (stored is latest if latest_only else deleted or not stored.deleted):
            return stored
        return await self._find_otherwise(schema, deleted=deleted, latest_only=latest_only)

    async def _find_otherwise(self, new: NewSchema, *, deleted: bool, latest_only: bool) -> StoredVersion | None:
        versions = self._state.versions(new.subject)
        if not versions.looked_up_otherwise:
            return None
        candidates = [
            stored
            for stored in islice(versions.newest_first(deleted=deleted), 1 if latest_only else None)
            if stored.version in versions.looked_up_otherwise
        ]
        for stored in candidates:
            if same_without_confluent_version(new, stored):
                return stored
        with_references = (stored for stored in candidates if same_but_for_references(new, stored))
        for stored in islice(with_references, _MAX_RESOLVED):
            await asyncio.sleep(0)  # each may have many references
            if await self._is_resolved_form(new, stored):
                return stored
        return None

    async def _is_resolved_form(self, new: NewSchema, stored: StoredVersion) -> bool:
        source = self.stored_source(stored)
        return await self._parser.formatted(source, "resolved") == new.text
