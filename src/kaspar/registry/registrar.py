"""Makes decisions about schemas from clients, on one state: whether a schema is compatible, and how it is registered.

The rules themselves are pure: decisions/registration.py and kaspar.schemas.levels. This module parses the texts and
passes them the results.
"""

from collections.abc import Iterable
from itertools import chain, islice

from kaspar.registry.decisions.decision import Decision, is_import
from kaspar.registry.decisions.registration import (
    NO_ID,
    NO_VERSION,
    NewSchema,
    earlier_versions,
    prepared,
    registered,
    registration,
)
from kaspar.registry.entities import Metadata
from kaspar.registry.errors import incompatible_schema, invalid_schema
from kaspar.registry.lookup import SchemaLookup
from kaspar.registry.options import RegistryOptions
from kaspar.registry.parsing import SchemaAnswers, Source
from kaspar.registry.records import ConfigValue
from kaspar.registry.reserved_fields import reserved_field_errors, reserved_fields
from kaspar.registry.state import State, StoredVersion
from kaspar.schemas.levels import CompatibilityLevel


class Registrar:
    def __init__(self, state: State, parser: SchemaAnswers, options: RegistryOptions) -> None:
        self._state = state
        self._parser = parser
        self._options = options
        self.lookup = SchemaLookup(state, parser)

    def config_in_scope(self, subject: str | None) -> ConfigValue:
        return self._state.config_in_scope(subject, self._options.compatibility_level.value)

    def normalizes(self, subject: str, requested: bool) -> bool:
        return requested or self.config_in_scope(subject).normalize is True

    async def incompatibilities(self, new: NewSchema, earlier: list[StoredVersion], *, normalize: bool) -> list[str]:
        """The reasons why the schema could not be registered after the versions `earlier`, newest first."""
        if new.is_empty:
            raise invalid_schema("Empty schema")
        normalize = self.normalizes(new.subject, normalize)
        schema, source = await self.lookup.canonical(new, normalize=normalize)
        return await self._compare(schema, source, earlier)

    async def registration(self, new: NewSchema, *, normalize: bool) -> Decision[StoredVersion]:
        """Nothing is written if the schema is registered already."""
        normalize = self.normalizes(new.subject, normalize)
        draft = prepared(self._state, new, self.config_in_scope(new.subject))
        if draft.is_empty:
            raise invalid_schema("Empty schema")
        schema, source = await self.lookup.canonical(draft, normalize=normalize)
        existing = registered(self._state, schema)
        if existing is None and schema.version == NO_VERSION:
            found = await self.lookup.find_canonical(schema, deleted=False)
            existing = found if found is not None and schema.id in (NO_ID, found.id) else None
        if existing is not None:
            return Decision((), existing)
        if not is_import(self._state.mode_in_scope(schema.subject)):
            messages = await self._compare(schema, source, earlier_versions(self._state, schema.subject))
            if messages:
                raise incompatible_schema(schema.subject, messages)
        return registration(self._state, schema)

    async def _compare(self, new: NewSchema, source: Source, earlier: Iterable[StoredVersion]) -> list[str]:
        config = self.config_in_scope(new.subject)
        level = CompatibilityLevel.of(config.compatibility_level or "") or self._options.compatibility_level
        versions = iter(earlier)
        latest = next(versions, None)
        errors = await self._field_errors(new, source, config, latest)
        candidates = chain([] if latest is None else [latest], versions)
        compared = islice(_of_group(candidates, new.metadata, config.compatibility_group), _versions_to_compare(level))
        # References are resolved only when a version is compared, since there may be many. The list of versions is
        # copied, because the state may change meanwhile.
        sources = ((stored.version, self.lookup.stored_source(stored)) for stored in [*compared])
        return await self._parser.incompatibilities(
            source, level, sources, validate_fields=self._validates_fields(config), field_errors=errors
        )

    async def _field_errors(
        self, new: NewSchema, source: Source, config: ConfigValue, latest: StoredVersion | None
    ) -> list[str]:
        if not self._validates_fields(config):
            return []
        fields = await self._parser.fields(source) if reserved_fields(new.metadata) else ()
        return reserved_field_errors(fields, new.metadata, None if latest is None else latest.value.metadata)

    def _validates_fields(self, config: ConfigValue) -> bool:
        return self._options.validate_fields if config.validate_fields is None else config.validate_fields


def _versions_to_compare(level: CompatibilityLevel) -> int | None:
    """How many of the latest versions are compared; None means all."""
    if level is CompatibilityLevel.NONE:
        return 0
    return None if level.transitive else 1


def _of_group(
    versions: Iterable[StoredVersion], metadata: Metadata | None, group: str | None
) -> Iterable[StoredVersion]:
    """The versions in the same compatibility group: those with the same value of a metadata property."""
    if group is None:
        return versions
    wanted = _property(metadata, group)
    return (stored for stored in versions if _property(stored.value.metadata, group) == wanted)


def _property(metadata: Metadata | None, name: str) -> str | None:
    return ((metadata.properties if metadata is not None else None) or {}).get(name)
