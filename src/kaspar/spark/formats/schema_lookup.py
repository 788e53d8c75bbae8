"""The schema that a record was written with: the interface between the codecs and the source of schemas.

Some writers prefix each record with the id of its schema. A codec looks up the schema of every record, and does not
know whether it was declared with the query or comes from that prefix.
"""

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

Schema = TypeVar("Schema")
Found = TypeVar("Found", covariant=True)


class SchemaLookup(Protocol[Found]):
    def find(self, record: bytes) -> tuple[Found, int]:
        """The schema of a record and the offset of its data. Raises ValueError with the end of a sentence if
        unknown."""


@dataclass(frozen=True, slots=True)
class OneSchema(Generic[Schema]):
    """All records have the declared schema, without a prefix."""

    schema: Schema

    def find(self, record: bytes) -> tuple[Schema, int]:
        return self.schema, 0
