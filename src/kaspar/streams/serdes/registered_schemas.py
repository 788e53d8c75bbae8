"""Schemas of a registry for serdes: the id that prefixes written values, and the schema of read values.

A schema is registered under the topic's subject when the first record is written. This follows Confluent's serdes and
their properties: `auto.register.schemas`, `use.latest.version`, `normalize.schemas`, `key.subject.name.strategy` and
`value.subject.name.strategy`. Each process has one registry client, with a cache.

A schema that the registry rejects, or an id that it does not know, is an error of the record: SerializationError. An
unreachable registry is not, and handlers of bad records must not skip records because of it: RegistryUnavailable ends
the program.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from kaspar.schemas.schema import SchemaType
from kaspar.serialization import subject_names
from kaspar.serialization.errors import RegistryError, RegistryUnavailable, UnreadableBytes
from kaspar.serialization.errors import SerializationError as Unserializable
from kaspar.serialization.registry_client import RegisteredSchema, RegistryClient, SchemaText, shared_client
from kaspar.serialization.registry_config import URL, registry_config
from kaspar.serialization.wire_format import id_prefix, read_frame
from kaspar.streams.serdes.errors import reason_of, unreadable, unwritable

Registry = str | Mapping[str, str]
"""A URL, or Confluent's properties of a registry client."""


class RegisteredSchemas:
    """The schemas of one serde. `name` is the serde's name in error messages."""

    def __init__(self, name: str, registry: Registry, *, is_key: bool) -> None:
        """Raises InvalidSetting."""
        self.name = name
        self.is_key = is_key
        self.given = registry
        self._properties = {URL: registry} if isinstance(registry, str) else dict(registry)
        self._config = registry_config(self._properties)
        part = "key" if is_key else "value"
        self._strategy = subject_names.strategy(
            self._properties.get(f"{part}.subject.name.strategy", subject_names.DEFAULT)
        )

    @property
    def client(self) -> RegistryClient:
        return shared_client(self._config)

    def written(self, topic: str, schema: SchemaText, record_name: str | None, value: Any) -> RegisteredSchema:
        """The schema with which values are written to a topic: the serde's own, or the latest of the subject. It has an
        id. Raises SerializationError."""
        try:
            registered = self._registered(self._strategy(topic, self.is_key, record_name), schema)
        except RegistryUnavailable:
            raise
        except (RegistryError, Unserializable) as problem:
            raise unwritable(
                self.name, topic, value, f"the registry has no id for its schema ({reason_of(problem)})"
            ) from problem
        if registered.schema.type is not schema.type:
            kinds = f"{registered.schema.type.value}, not {schema.type.value}"
            raise unwritable(self.name, topic, value, f"the latest schema of the subject is of {kinds}")
        return registered

    def _registered(self, subject: str, schema: SchemaText) -> RegisteredSchema:
        normalize = self._is_set("normalize.schemas", default="false")
        if self._is_set("auto.register.schemas", default="true"):
            return self.client.register(subject, schema, normalize=normalize)
        if self._is_set("use.latest.version", default="false"):
            return self.client.latest(subject)
        return self.client.lookup(subject, schema, normalize=normalize)

    @staticmethod
    def prefix(registered: RegisteredSchema) -> bytes:
        """The prefix of a value."""
        assert registered.id is not None, "it was asked for by its text or subject"
        return id_prefix(registered.id)

    def _is_set(self, name: str, *, default: str) -> bool:
        return self._properties.get(name, default).strip().lower() == "true"

    def split(self, topic: str, data: bytes) -> tuple[int | UUID, bytes]:
        """The id or GUID of the schema, and the bytes after the prefix. Raises SerializationError."""
        try:
            framed = read_frame(data, is_key=self.is_key)
        except UnreadableBytes as problem:
            raise unreadable(self.name, topic, data, reason_of(problem)) from problem
        return framed.schema, data[framed.start :]

    def schema(self, topic: str, data: bytes, key: int | UUID, kind: SchemaType) -> RegisteredSchema:
        """The schema with an id or GUID. Raises SerializationError."""
        try:
            found = self.client.schema_by_guid(key) if isinstance(key, UUID) else self.client.schema_by_id(key)
        except RegistryUnavailable:
            raise
        except RegistryError as problem:
            raise unreadable(self.name, topic, data, reason_of(problem)) from problem
        if found.schema.type is not kind:
            raise unreadable(self.name, topic, data, f"schema {key} is of {found.schema.type.value}, not {kind.value}")
        return found
