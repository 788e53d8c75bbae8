"""A caching client of the schema registry.

The schema with an id or a version never changes. The latest version of a subject does, so it is requested again after a
while. That an id is unknown is cached only briefly, because another registry may just not have read it yet.
"""

import json
import os
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypeAlias
from urllib.parse import quote
from uuid import UUID

from kaspar.base.bounded_cache import FOREVER, BoundedCache
from kaspar.schemas.schema import Reference, SchemaType
from kaspar.serialization.errors import RegistryError
from kaspar.serialization.registry_config import RegistryConfig
from kaspar.serialization.registry_http import HttpRequests, Requests

_MAX_REFERENCED: Final = 1000
_MAX_DEPTH: Final = 100
_NOT_FOUND: Final = 404


@dataclass(frozen=True, slots=True)
class SchemaText:
    """A schema as it is sent to the registry."""

    type: SchemaType
    text: str
    references: tuple[Reference, ...] = ()
    metadata: str = ""
    """As JSON, or empty, like the rule set."""
    rule_set: str = ""


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    schema: SchemaText
    id: int | None
    """None for a schema that was requested by its GUID."""
    guid: UUID | None = None
    subject: str | None = None
    """Set together with the version; None for a schema that was requested by its id."""
    version: int | None = None
    referenced: Mapping[str, str] = field(default_factory=dict, hash=False)
    """The texts of everything it refers to, directly or not, by the names used in the texts, dependencies first."""


_Schemas: TypeAlias = BoundedCache[Hashable, RegisteredSchema]


class RegistryClient:
    """May be used by several threads. Every method raises RegistryError."""

    def __init__(
        self,
        config: RegistryConfig,
        *,
        requests: Requests | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises InvalidSetting."""
        self.config = config
        self._requests = requests or _requests(config)
        # A registry in this process is as fast as a cache, and may be dropped between two tests.
        longest = FOREVER if config.mock_scope is None else 0

        def schemas(max_entries: int, lifetime_s: float) -> _Schemas:
            return BoundedCache(max_entries, lifetime_s=min(longest, lifetime_s), monotonic=monotonic)

        self._by_key = schemas(config.max_schemas, FOREVER)
        self._by_version = schemas(config.max_schemas, FOREVER)
        self._by_text = schemas(config.max_schemas, FOREVER)
        self._latest = schemas(config.max_latest, config.latest_ttl_s)
        self._missing: BoundedCache[Hashable, RegistryError] = BoundedCache(
            config.max_schemas, lifetime_s=min(longest, config.missing_ttl_s), monotonic=monotonic
        )

    def close(self) -> None:
        self._requests.close()

    def schema_by_id(self, schema_id: int, subject: str | None = None) -> RegisteredSchema:
        """`subject` is only needed for an id in a context other than the default one."""
        parameters = {} if subject is None else {"subject": subject}
        return self._known(
            self._by_key,
            (schema_id, subject),
            lambda: self._fetched(f"/schemas/ids/{schema_id}", parameters, schema_id),
        )

    def schema_by_guid(self, guid: UUID) -> RegisteredSchema:
        return self._known(self._by_key, guid, lambda: self._fetched(f"/schemas/guids/{guid}", {}, None))

    def cached(self, key: int | UUID) -> RegisteredSchema | None:
        """What `schema_by_id` or `schema_by_guid` would return without a request; None if they would send one."""
        return self._by_key.get(key if isinstance(key, UUID) else (key, None))

    def register(self, subject: str, schema: SchemaText, *, normalize: bool = False) -> RegisteredSchema:
        """Register the schema, which gets an id unless it has one already."""
        path, parameters = f"/subjects/{_quoted(subject)}/versions", _flags(normalize=normalize)
        return self._known(
            self._by_text,
            ("register", subject, schema, normalize),
            lambda: self._of_text(subject, schema, self._requests.request("POST", path, parameters, _body(schema))),
        )

    def lookup(self, subject: str, schema: SchemaText, *, normalize: bool = False) -> RegisteredSchema:
        """The id and version of a registered schema. RegistryError has status 404 if it is not registered."""
        path, parameters = f"/subjects/{_quoted(subject)}", _flags(normalize=normalize)
        return self._known(
            self._by_text,
            ("lookup", subject, schema, normalize),
            lambda: self._of_text(subject, schema, self._requests.request("POST", path, parameters, _body(schema))),
        )

    def latest(self, subject: str) -> RegisteredSchema:
        return self._known(
            self._latest, subject, lambda: self._fetched(f"/subjects/{_quoted(subject)}/versions/latest", {}, None)
        )

    def version(self, subject: str, version: int) -> RegisteredSchema:
        """This version of the subject, even if it was deleted, but not permanently: others may refer to it."""
        return self._known(
            self._by_version,
            (subject, version),
            lambda: self._fetched(f"/subjects/{_quoted(subject)}/versions/{version}", _flags(deleted=True), None),
        )

    def subjects(self) -> list[str]:
        found: list[str] = self._requests.request("GET", "/subjects", {})
        return found

    def with_references(self, schema: SchemaText) -> Mapping[str, str]:
        """The texts that a schema refers to, as in `RegisteredSchema.referenced`."""
        found: dict[str, str] = {}
        self._collect(schema.references, found, {}, 0)
        return found

    # --- Requests -----------------------------------------------------------------------------------------------------

    def _known(self, cache: _Schemas, key: Hashable, fetch: Callable[[], RegisteredSchema]) -> RegisteredSchema:
        found = cache.get(key)
        if found is not None:
            return found
        if (missing := self._missing.get(key)) is not None:
            raise RegistryError(str(missing), status=missing.status, error_code=missing.error_code)
        try:
            fetched = fetch()
        except RegistryError as error:
            if error.status == _NOT_FOUND and cache is self._by_key:
                self._missing.put(key, error)
            raise
        cache.put(key, fetched)
        return fetched

    def _fetched(self, path: str, parameters: Mapping[str, str], schema_id: int | None) -> RegisteredSchema:
        found = self._requests.request("GET", path, parameters)
        try:
            return self._registered(_schema_text(found), found, schema_id)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _no_schema(path, found) from error

    def _of_text(self, subject: str, schema: SchemaText, found: Any) -> RegisteredSchema:
        """The registered schema from a response that contains the id, but not always the schema."""
        try:
            return self._registered(schema, {"subject": subject, **found}, int(found["id"]))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _no_schema(f"subject {subject}", found) from error

    def _registered(self, schema: SchemaText, found: Mapping[str, Any], schema_id: int | None) -> RegisteredSchema:
        guid = found.get("guid")
        version = found.get("version")
        return RegisteredSchema(
            schema,
            id=found.get("id") if schema_id is None else schema_id,
            guid=UUID(guid) if guid else None,
            subject=found.get("subject"),
            version=None if version is None else int(version),
            referenced=self.with_references(schema),
        )

    def _collect(
        self,
        references: tuple[Reference, ...],
        found: dict[str, str],
        texts: dict[tuple[str, int], SchemaText],
        depth: int,
    ) -> None:
        """Collect referenced texts. `texts` has those already requested: a cycle, which no registry accepts, ends."""
        for reference in references:
            where = (reference.subject, reference.version)
            if where not in texts:
                if len(texts) >= _MAX_REFERENCED or depth >= _MAX_DEPTH:
                    sentence = f"A schema refers to more than {_MAX_REFERENCED} others, or {_MAX_DEPTH} in a row."
                    raise RegistryError(sentence, status=422, error_code=42201)
                texts[where] = self._text_of_version(*where)
                self._collect(texts[where].references, found, texts, depth + 1)
            found.setdefault(reference.name, texts[where].text)

    def _text_of_version(self, subject: str, version: int) -> SchemaText:
        """The schema of this version, without the texts that it refers to."""
        cached = self._by_version.get((subject, version))
        if cached is not None:
            return cached.schema
        path = f"/subjects/{_quoted(subject)}/versions/{version}"
        found = self._requests.request("GET", path, _flags(deleted=True))
        try:
            return _schema_text(found)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _no_schema(path, found) from error


def _requests(config: RegistryConfig) -> Requests:
    if config.mock_scope is None:
        return HttpRequests(config)
    from kaspar.serialization.mock_registry import MockRequests

    return MockRequests(config.mock_scope)


def _schema_text(found: Mapping[str, Any]) -> SchemaText:
    references = tuple(
        Reference(each["name"], each["subject"], int(each["version"])) for each in found.get("references") or ()
    )
    metadata, rule_set = found.get("metadata"), found.get("ruleSet")
    return SchemaText(
        SchemaType(found.get("schemaType") or "AVRO"),
        found["schema"],
        references,
        json.dumps(metadata) if metadata else "",
        json.dumps(rule_set) if rule_set else "",
    )


def _body(schema: SchemaText) -> dict[str, Any]:
    body: dict[str, Any] = {"schema": schema.text}
    if schema.type is not SchemaType.AVRO:  # registries before Confluent 5.5 do not have types
        body["schemaType"] = schema.type.value
    if schema.references:
        body["references"] = [
            {"name": each.name, "subject": each.subject, "version": each.version} for each in schema.references
        ]
    if schema.metadata:
        body["metadata"] = json.loads(schema.metadata)
    if schema.rule_set:
        body["ruleSet"] = json.loads(schema.rule_set)
    return body


def _flags(**flags: bool) -> dict[str, str]:
    return {name: "true" for name, value in flags.items() if value}


def _quoted(subject: str) -> str:
    return quote(subject, safe="")


def _no_schema(where: str, found: Any) -> RegistryError:
    return RegistryError(f"The registry sent no schema for {where}: {found!r:.200}", status=502, error_code=50201)


# --- One client for each process --------------------------------------------------------------------------------------

_lock = threading.Lock()


def shared_client(config: RegistryConfig) -> RegistryClient:
    """This process's client for a configuration, for short-lived users such as Spark's tasks."""
    with _lock:  # keyed by process id, because a forked process needs its own connections
        return _shared(config, os.getpid())


@lru_cache(maxsize=32)
def _shared(config: RegistryConfig, process: int) -> RegistryClient:
    del process
    return RegistryClient(config)
