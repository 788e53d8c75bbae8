"""Which schema a record was written with: the seam between the codecs and wherever schemas come from.

Some writers put a mark before each record that names its schema. A codec asks for every record, and does not know
whether the answer was declared with the query or is looked up by that mark.
"""

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

Schema = TypeVar("Schema")
Found = TypeVar("Found", covariant=True)


class SchemaLookup(Protocol[Found]):
    def find(self, record: bytes) -> tuple[Found, int]:
        """The schema of a record and where its own bytes begin. ValueError with the end of a sentence if unknown."""


@dataclass(frozen=True, slots=True)
class OneSchema(Generic[Schema]):
    """All records have the declared schema, and nothing stands before them."""

    schema: Schema

    def find(self, record: bytes) -> tuple[Schema, int]:
        return self.schema, 0
