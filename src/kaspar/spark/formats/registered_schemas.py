"""Looks up the schemas of records by the ids in front of them, for one format.

If the registry does not know an id, or knows it as a schema of another format, this is an error of the record, which is
written to the dead letters. If the registry cannot be reached, or refuses the query, the query stops.
"""

from dataclasses import dataclass

from kaspar.schemas.schema import SchemaType
from kaspar.serialization.errors import RegistryError
from kaspar.serialization.registry_client import RegisteredSchema, shared_client
from kaspar.serialization.registry_config import RegistryConfig
from kaspar.serialization.wire_format import SchemaKey
from kaspar.spark.formats.registry_frames import as_reason

_NOT_FOUND = 404


class UnreadableSchema(Exception):
    """Records with this schema cannot be decoded. The text is the end of a sentence that says why."""


@dataclass(frozen=True, slots=True)
class RegisteredSchemas:
    registry: RegistryConfig
    type: SchemaType

    def find(self, key: SchemaKey) -> RegisteredSchema:
        """The schema with this key, requested once per Python worker. Raises UnreadableSchema and RegistryError."""
        client = shared_client(self.registry)
        try:
            found = client.schema_by_id(key) if isinstance(key, int) else client.schema_by_guid(key)
        except RegistryError as error:
            if error.status != _NOT_FOUND:
                raise
            raise UnreadableSchema(f"the registry does not know its schema {key} ({as_reason(error)})") from error
        if found.schema.type is not self.type:
            raise UnreadableSchema(
                f"its schema {key} is of the type {found.schema.type.value}, and not {self.type.value}"
            )
        return found
