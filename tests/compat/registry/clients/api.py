"""The face that the tests give to every registry client: what it asks of the registry, and what its serializers write.

A refusal is a ClientError whose code is what the client reports: the registry's error code, or, for a client that hides
it, the name of its exception.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, Protocol

Reference = dict[str, Any]
Headers = list[tuple[str, bytes]]


class Call(Enum):
    """What not every client can do."""

    ADMINISTER = "list subjects and versions, delete, set and check compatibility"
    SCHEMA = "fetch a schema by its id"
    HEADER = "name the schema in a header"
    MESSAGE_INDEXES = "write and read which message of a .proto file a record is"


@dataclass(frozen=True, slots=True)
class Definition:
    """A schema as a program writes it; for Protobuf also what protoc makes of it, and which message is meant."""

    type: str
    schema: str
    references: Sequence[Reference] = ()
    message: str = ""
    descriptors: bytes = b""


@dataclass(frozen=True, slots=True)
class Written:
    data: bytes
    headers: Headers = field(default_factory=list)


class RegistryClient(Protocol):
    name: ClassVar[str]
    cannot: ClassVar[frozenset[Call]]

    def register(self, subject: str, definition: Definition) -> int: ...

    def lookup(self, subject: str, definition: Definition) -> int: ...

    def schema(self, subject: str, schema_id: int) -> dict[str, Any]:
        """Its `schema`, `type` and `references`."""

    def subjects(self) -> list[str]: ...

    def versions(self, subject: str) -> list[int]: ...

    def compatible(self, subject: str, definition: Definition) -> bool: ...

    def set_level(self, subject: str, level: str) -> str: ...

    def delete(self, subject: str, *, permanent: bool = False) -> list[int]: ...

    def serialize(self, topic: str, definition: Definition, value: Any, *, header: bool = False) -> Written: ...

    def deserialize(self, topic: str, definition: Definition, written: Written) -> Any: ...

    def close(self) -> None: ...
